package mcpserver

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

type streamKey struct{}

// openStream sends the headers of the response stream now and keeps the stream
// alive from here on, where the request came by HTTP. The SDK alone would send
// nothing before the first event, which may be minutes away.
func openStream(ctx context.Context) {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		s.open()
	}
}

// stream is the response to one POST. Before open it passes everything through;
// after it, the response is an event stream whatever the SDK writes.
type stream struct {
	http.ResponseWriter
	keepAlive time.Duration

	mu     sync.Mutex
	opened bool
	wrote  bool // the SDK sent headers itself
	reject bool // the SDK answers with a status, which is too late
	done   bool
	timer  *time.Timer
}

// Unwrap is for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stream) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened || s.wrote || s.done || s.Header().Get("Content-Type") != "text/event-stream" {
		return
	}
	s.opened = true
	s.ResponseWriter.WriteHeader(http.StatusOK)
	s.flush()
	s.timer = time.AfterFunc(s.keepAlive, s.beat)
}

// beat writes a comment, which every client skips and every proxy counts as
// life.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	if _, err := s.ResponseWriter.Write([]byte(": keep-alive\n\n")); err != nil {
		return
	}
	s.flush()
	s.timer.Reset(s.keepAlive)
}

func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		s.reject = true
		return
	}
	if s.done {
		return
	}
	s.wrote = true
	s.ResponseWriter.WriteHeader(status)
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return 0, http.ErrHandlerTimeout
	}
	s.wrote = true
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
	if s.timer != nil {
		s.timer.Stop()
	}
}
