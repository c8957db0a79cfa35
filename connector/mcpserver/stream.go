package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openDelay is how long a response stream may stay without headers: an error
// that comes before it still has the HTTP status that it is due (MCP 2026-07-28,
// Streamable HTTP), and nobody waits longer to see that the request is served.
const openDelay = 500 * time.Millisecond

type streamKey struct{}

// openStream opens the response stream soon and keeps it alive from then on,
// where the request came by HTTP. The SDK alone would send nothing before the
// first event, which may be minutes away.
func openStream(ctx context.Context) {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		s.open()
	}
}

// stream is the response to one POST. Until its headers are out it passes
// everything through; then it is an event stream whatever the SDK writes, unless
// the SDK has begun another kind of body.
type stream struct {
	http.ResponseWriter
	keepAlive time.Duration
	client    context.Context // ends when the client's connection does
	header    http.Header     // the SDK's own, which only it touches

	mu     sync.Mutex
	opened http.Header // the headers of the event stream, nil before open
	sent   bool        // the headers are out
	reject bool        // the SDK answers with a status, which is too late
	done   bool
	timer  *time.Timer // nil unless the stream is kept alive
}

// newStream returns the stream of a client, which is there until its context ends.
func newStream(client context.Context, w http.ResponseWriter, keepAlive time.Duration) *stream {
	return &stream{ResponseWriter: w, client: client, keepAlive: keepAlive, header: w.Header().Clone()}
}

// errClientGone is the cause of a context that ends with its client's connection.
var errClientGone = errors.New("mcpserver: the connection of the client ended")

// whileConnected returns a context that ends when the client of an HTTP request is
// gone. Before 2026-07-28 the SDK does not tell, since a connection that ends cancels
// nothing there; but the answer could reach nobody, and to wait for it would hold a
// connection and a place among the calls for as long as the wait budget. From
// 2026-07-28 on the SDK cancels the request itself.
func whileConnected(ctx context.Context, req mcp.Request) (context.Context, context.CancelFunc) {
	s, ok := ctx.Value(streamKey{}).(*stream)
	r, known := req.(interface{ ProtocolVersion() string })
	if !ok || !known || isModern(r.ProtocolVersion()) {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(s.client, func() { cancel(errClientGone) })
	return ctx, func() { forget(); cancel(nil) }
}

// Unwrap is for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Header implements [http.ResponseWriter].
func (s *stream) Header() http.Header { return s.header }

// open is called by the handler of the request, before the SDK has its answer.
func (s *stream) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil && !s.sent && !s.done && s.header.Get("Content-Type") == "text/event-stream" {
		s.opened = s.header.Clone()
		s.timer = time.AfterFunc(min(openDelay, s.keepAlive), s.beat)
	}
}

// send sends the headers, unless they are out.
func (s *stream) send(status int, header http.Header) {
	if !s.sent {
		s.sent = true
		clear(s.ResponseWriter.Header())
		maps.Copy(s.ResponseWriter.Header(), header)
		s.ResponseWriter.WriteHeader(status)
	}
}

// beat sends the headers, and once they are out a comment, which every client
// skips and every proxy counts as life.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil { // it was stopped while this waited
		return
	}
	if !s.sent {
		s.send(http.StatusOK, s.opened)
	} else if _, err := s.ResponseWriter.Write([]byte(": keep-alive\n\n")); err != nil {
		return
	}
	s.flush()
	s.timer.Reset(s.keepAlive)
}

func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.done:
	case s.sent:
		s.reject = true
	default:
		s.send(status, s.header)
		s.stop() // the answer follows, whatever its kind
	}
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return 0, http.ErrHandlerTimeout
	}
	s.send(http.StatusOK, s.header)
	if s.timer != nil {
		s.timer.Reset(s.keepAlive)
	}
	message := restore(p) // the SDK writes an event, or a body, at once
	if !s.reject {
		if _, err := s.ResponseWriter.Write(message); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	// A JSON-RPC error that would have had a status of its own: an event now.
	var b bytes.Buffer
	b.WriteString("event: message\ndata: ")
	b.Write(bytes.TrimSpace(message))
	b.WriteString("\n\n")
	if _, err := s.ResponseWriter.Write(b.Bytes()); err != nil {
		return 0, err
	}
	s.flush()
	return len(p), nil
}

// Flush implements [http.Flusher].
func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.send(http.StatusOK, s.header)
		s.flush()
	}
}

func (s *stream) flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// close ends the stream's own writes: after the handler returns nobody may
// touch the response.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.stop()
}

func (s *stream) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
