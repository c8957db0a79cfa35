package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The revisions of the protocol, newest first.
var revisions = []string{modern, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const modern = "2026-07-28"

// Options are the flags of the command.
type Options struct {
	Dir       string
	Listen    string
	Protocols []string
	Without   []string
	Page      int
	Generated int
	Odd       bool
	Secret    string
}

// Run serves until the client, or a signal, ends it.
func Run(o Options) error {
	if len(o.Protocols) == 0 {
		o.Protocols = revisions
	}
	s := &server{
		Options: o, journal: journal{JournalPath(o.Dir)}, sessions: map[string]*session{},
		listeners: map[*listener]struct{}{}, values: map[string]string{}, tokens: map[string]time.Time{}, streams: streams{},
	}
	s.journal.add(Entry{Event: EventStart, Text: strings.Join(os.Args, " ")})
	if err := s.begin(); err != nil {
		return err
	}
	go s.watchTools()
	if o.Listen != "" {
		return s.serveHTTP()
	}
	return s.serveStdio(os.Stdin, os.Stdout)
}

type server struct {
	Options
	journal journal

	mu        sync.Mutex
	sessions  map[string]*session
	listeners map[*listener]struct{}
	values    map[string]string // of tools without a session
	tokens    map[string]time.Time
	streams   streams
	stubborn  bool
}

// session is one of the revisions that have them: what a process or a header
// belongs to.
type session struct {
	id       string
	version  string
	ready    bool // notifications/initialized has come
	location string
	running  map[string]*running // by request ID
}

// message is what a client sends.
type message struct {
	raw     json.RawMessage
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`

	session *session
	// hears says that the request has noted its cancel; nil where nothing can cancel it.
	hears   func()
	headers http.Header // nil over stdio
	tool    string
	meta    map[string]json.RawMessage
	// send sends a message that belongs to this request.
	send func(json.RawMessage)
	// end cuts the connection.
	end func()
	cut atomic.Bool // it is
}

// modern reports whether the request says all about itself.
func (m *message) modern() bool { return m.meta["io.modelcontextprotocol/protocolVersion"] != nil }

func (m *message) version() (v string) {
	_ = json.Unmarshal(m.meta["io.modelcontextprotocol/protocolVersion"], &v)
	return v
}

func parse(raw []byte) (*message, error) {
	m := &message{raw: raw}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	var params struct {
		Name string                     `json:"name"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	m.meta = params.Meta
	if m.Method == "tools/call" {
		m.tool = params.Name
	}
	return m, nil
}

// rpcError is the error of an answer.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

func fail(code int, format string, args ...any) error {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func answer(id, result json.RawMessage, err error) json.RawMessage {
	if err != nil {
		e, ok := err.(*rpcError) //nolint:errorlint // nobody wraps one
		if !ok {
			e = &rpcError{Code: -32603, Message: err.Error()}
		}
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, data)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (s *server) violation(m *message, format string, args ...any) {
	s.journal.add(Entry{Event: EventViolation, Method: m.Method, Tool: m.tool, Text: fmt.Sprintf(format, args...)})
}

// record writes down that a message came.
func (s *server) record(m *message) {
	e := Entry{Event: EventRequest, Method: m.Method, Tool: m.tool, Params: m.Params, Headers: m.headers}
	if m.session != nil {
		e.Session = m.session.id
	}
	s.journal.add(e)
}

// dispatch answers a request.
func (s *server) dispatch(ctx context.Context, m *message) (json.RawMessage, error) {
	if m.JSONRPC != "2.0" {
		s.violation(m, "jsonrpc is %q", m.JSONRPC)
	}
	if f, ok := s.fault(FaultRPCError, m.Method, m.tool); ok {
		return nil, fail(f.Code, "%s", f.Text)
	}
	switch m.Method {
	case "server/discover":
		return s.discover(m)
	case "initialize":
		return s.initialize(m)
	case "ping":
		return json.RawMessage(`{}`), nil
	}
	if err := s.admit(m); err != nil {
		return nil, err
	}
	if f, ok := s.fault(FaultResult, m.Method, m.tool); ok {
		return json.RawMessage(f.Text), nil
	}
	result, err := s.serve(ctx, m)
	if err == nil && m.modern() {
		result = typed(result)
	}
	return result, err
}

func (s *server) serve(ctx context.Context, m *message) (json.RawMessage, error) {
	switch {
	case m.Method == "tools/list" && s.has("tools"):
		return s.listTools(m)
	case m.Method == "tools/call" && s.has("tools"):
		return s.call(ctx, m)
	case m.Method == "subscriptions/listen" && m.modern():
		return s.listen(ctx, m)
	}
	if result, err, ok := s.library(m); ok {
		return result, err
	}
	return nil, fail(-32601, "Method not found: %s", m.Method)
}

// typed adds what every result of the newest revision has.
func typed(result json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(string(result))
	if strings.HasPrefix(text, `{"resultType"`) {
		return result
	}
	comma := ","
	if strings.TrimSpace(text[1:]) == "}" {
		comma = ""
	}
	return json.RawMessage(`{"resultType":"complete"` + comma + text[1:])
}

// notified takes a notification.
func (s *server) notified(m *message) {
	switch m.Method {
	case "notifications/initialized":
		if m.session == nil {
			s.violation(m, "initialized without a session")
			return
		}
		s.mu.Lock()
		again := m.session.ready
		m.session.ready = true
		s.mu.Unlock()
		if again {
			s.violation(m, "initialized twice")
		}
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
			Reason    string          `json:"reason"`
		}
		_ = json.Unmarshal(m.Params, &p)
		if m.session != nil {
			s.mu.Lock()
			r := m.session.running[string(p.RequestID)]
			s.mu.Unlock()
			if r != nil {
				r.cancel(errCancelled)
				<-r.heard // what the client says next may be the end of the process
			}
		}
	}
}

var errCancelled = fmt.Errorf("the client cancelled the request")

// track makes a request one that notifications/cancelled can end.
func (s *server) track(ctx context.Context, m *message) (context.Context, func()) {
	if m.session == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	id := string(m.ID)
	s.mu.Lock()
	if m.session.running[id] != nil {
		s.violation(m, "request ID %s is in use", id)
	}
	r := &running{cancel: cancel, heard: make(chan struct{})}
	m.hears = sync.OnceFunc(func() { close(r.heard) })
	m.session.running[id] = r
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(m.session.running, id)
		s.mu.Unlock()
		m.hears()
		cancel(nil)
	}
}

// running is a request under way.
type running struct {
	cancel context.CancelCauseFunc
	heard  chan struct{} // closed when it has noted its cancel, or has ended
}
