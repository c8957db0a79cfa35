package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// HTTP+SSE of 2024-11-05: a stream that names where messages go, and answers to
// them.

type streams map[string]*stream

type stream struct {
	session *session
	send    func(json.RawMessage)
	context context.Context //nolint:containedctx // that of the stream, for the messages of others
	end     func()
}

func (s *server) sse(w http.ResponseWriter, r *http.Request) {
	s.journal.add(Entry{Event: EventRequest, Method: "SSE", Headers: r.Header})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &reply{w: w}
	if f, ok := s.fault(FaultSSE, "SSE", ""); ok {
		out.spelled = f.Text
	}
	e := out.begin(nil)
	var cut atomic.Bool
	send := func(m json.RawMessage) {
		if !cut.Load() {
			e.event(m)
		}
	}
	st := &stream{session: newSession(), send: send, context: ctx, end: func() {
		cut.Store(true)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
		cancel()
	}}
	s.mu.Lock()
	s.streams[st.session.id] = st
	s.mu.Unlock()
	defer s.join(&listener{send: send})()
	e.mu.Lock()
	e.write("event: endpoint\ndata: /messages?session=" + st.session.id + "\n\n")
	e.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.streams, st.session.id)
	s.mu.Unlock()
}

func (s *server) messages(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	st := s.streams[r.URL.Query().Get("session")]
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := parse(body)
	switch {
	case st == nil:
		http.Error(w, "no session", http.StatusNotFound)
		return
	case err != nil:
		s.violation(&message{}, "a body that is no message: %.200q", body)
		http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		return
	}
	m.session, m.headers, m.send, m.end = st.session, r.Header, st.send, st.end
	s.record(m)
	if f, ok := s.fault(FaultStatus, m.Method, m.tool); ok {
		respond(w, f)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	switch {
	case m.Method == "":
		s.journal.add(Entry{Event: EventAnswered, Params: m.raw})
	case m.ID == nil:
		s.notified(m)
	default:
		ctx, done := s.track(st.context, m)
		go func() {
			defer done()
			if !s.before(ctx, m) {
				return
			}
			result, err := s.dispatch(ctx, m)
			s.after(m)
			if _, ok := s.fault(FaultCutAfter, m.Method, m.tool); ok {
				m.end()
				return
			}
			ahead, a := s.spoil(m, answer(m.ID, result, err))
			for _, msg := range append(ahead, a) {
				m.send(msg)
			}
		}()
	}
}
