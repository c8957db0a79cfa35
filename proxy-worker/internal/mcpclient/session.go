package mcpclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Options configure a session.
type Options struct {
	// ClientName and ClientVersion are the clientInfo that the server sees.
	ClientName, ClientVersion string
	// ProtocolVersion pins a revision; empty negotiates.
	ProtocolVersion string
	// MaxMessageBytes bounds an outgoing message with its line feed. 0: 16 MiB.
	MaxMessageBytes int64
	// StartupTimeout bounds Dial. 0: 30 s.
	StartupTimeout time.Duration
	// ProbeTimeout is how long a server may be silent on the modern probe before
	// the older handshake is tried, half of StartupTimeout at most: a server that is
	// slow to start is not one that does not know the probe. 0: 10 s.
	ProbeTimeout time.Duration
	// Logger is nil for none.
	Logger *slog.Logger
	// Changed hears which list changed: "tools", "resources" or "prompts". It must
	// not block. Nil: the server is not asked to tell.
	Changed func(what string)
}

// The defaults of Options.
const (
	DefaultMaxMessageBytes = 16 << 20
	defaultStartupTimeout  = 30 * time.Second
	defaultProbeTimeout    = 10 * time.Second
)

func (o Options) withDefaults() Options {
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if o.StartupTimeout <= 0 {
		o.StartupTimeout = defaultStartupTimeout
	}
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = defaultProbeTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is what a server said of itself.
type Server struct {
	ProtocolVersion string
	// Stateless: the server keeps nothing for a session (2026-07-28 and later).
	Stateless bool
	// Info and Capabilities are objects as they came, nil where there are none.
	Info, Capabilities json.RawMessage
	Instructions       string
}

// Has reports whether the server has a capability: "tools", "resources",
// "prompts", "completions".
func (sv Server) Has(capability string) bool {
	o, err := contract.ParseObject(sv.Capabilities)
	return err == nil && contract.TypeName(o.Get(capability)) == "an object"
}

// tells reports whether the server says when a list changes.
func (sv Server) tells(capability string) bool {
	o, err := contract.ParseObject(sv.Capabilities)
	if err != nil {
		return false
	}
	c, err := contract.ParseObject(o.Get(capability))
	return err == nil && string(c.Get("listChanged")) == "true"
}

// Session is one connection to a server. It is safe for concurrent use.
type Session struct {
	options Options
	link    Link
	server  atomic.Pointer[Server]
	told    atomic.Pointer[time.Time] // when the server said what it is
	lastID  atomic.Int64

	closing context.Context // ends with Close
	close   context.CancelFunc
	work    sync.WaitGroup // what goes on in the background
	words   sync.WaitGroup // those of cancelled requests

	mu     sync.Mutex
	closed bool

	subscription subscription
}

func newSession(o Options) *Session {
	s := &Session{options: o}
	s.server.Store(&Server{})
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

// Server returns what the server last said of itself: when the session began, or to
// [Session.Renew].
func (s *Session) Server() Server { return *s.server.Load() }

func (s *Session) setServer(sv Server) {
	s.server.Store(&sv)
	now := time.Now()
	s.told.Store(&now)
}

// Done is closed when the session is of no more use; Err says why.
func (s *Session) Done() <-chan struct{} { return s.link.Done() }

// Err returns why the session ended, nil before that.
func (s *Session) Err() error { return s.link.Err() }

// Close ends the session in bounded time. Calls under way fail. It may be called
// more than once.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	hurry := time.AfterFunc(lastWords, s.close)
	s.words.Wait()
	hurry.Stop()
	s.close()
	s.link.Close()
	s.work.Wait()
}

// background runs f beside the calls; Close waits for the group.
func (s *Session) background(group *sync.WaitGroup, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		group.Go(f)
	}
}

// Notification implements [Handler].
func (s *Session) Notification(method string, _ json.RawMessage) {
	if what, ok := listChanged[method]; ok && s.options.Changed != nil {
		s.options.Changed(what)
	}
}

// Request implements [Handler]. The session offers the server nothing, so a ping
// is all that it may ask.
func (s *Session) Request(method string, _ json.RawMessage) (json.RawMessage, error) {
	if method == methodPing {
		return json.RawMessage("{}"), nil
	}
	return nil, &contract.ProtocolError{Code: CodeMethodNotFound, Message: "Method not found"}
}

func (s *Session) nextID() string { return strconv.FormatInt(s.lastID.Add(1), 10) }
