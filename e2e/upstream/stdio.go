package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"
)

// pipe is standard output.
type pipe struct {
	mu  sync.Mutex
	out *os.File
}

// line writes a message in one piece, or byte by byte.
func (p *pipe) line(message json.RawMessage, piece int, between func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data := append(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), '\n')
	for i := 0; i < len(data); i += piece {
		if i > 0 && between != nil && i >= len(data)/2 {
			between()
			between = nil
		}
		if _, err := p.out.Write(data[i:min(i+piece, len(data))]); err != nil {
			return
		}
	}
}

func (s *server) serveStdio(in io.Reader, out *os.File) error {
	p := &pipe{out: out}
	session := newSession()
	session.id = fmt.Sprint("process-", os.Getpid())
	defer s.join(&listener{send: func(m json.RawMessage) {
		s.mu.Lock()
		ready := session.ready
		s.mu.Unlock()
		if ready {
			p.line(m, 1<<30, nil)
		}
	}})()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		m, err := parse(line)
		if err != nil {
			s.violation(&message{}, "a line that is no message: %.200q", line)
			p.line(answer(json.RawMessage("null"), nil, fail(-32700, "Parse error")), 1<<30, nil)
			continue
		}
		m.session = session
		m.send = func(msg json.RawMessage) { p.line(msg, 1<<30, nil) }
		m.end = func() { _ = out.Close() }
		s.record(m)
		switch {
		case m.Method == "":
			s.journal.add(Entry{Event: EventAnswered, Params: m.raw})
		case m.ID == nil:
			s.notified(m)
		case m.Method == "initialize" || m.Method == "server/discover":
			s.stdioRequest(ctx, m, p, func() {}) // what follows waits
		default:
			ctx, done := s.track(ctx, m)
			go s.stdioRequest(ctx, m, p, done)
		}
	}
	if s.stubborn {
		<-time.After(math.MaxInt64) // a time, since without cgo the runtime ends a program that waits for nothing
	}
	return nil
}

func (s *server) stdioRequest(ctx context.Context, m *message, p *pipe, done func()) {
	defer done()
	if !s.before(ctx, m) {
		return
	}
	if _, ok := s.fault(FaultCutBefore, m.Method, m.tool); ok {
		m.end()
		return
	}
	result, err := s.dispatch(ctx, m)
	a := answer(m.ID, result, err)
	if m.tool != "" {
		s.journal.add(Entry{Event: EventAnswer, Tool: m.tool})
	}
	s.after(m)
	if _, ok := s.fault(FaultCutAfter, m.Method, m.tool); ok {
		m.end()
		return
	}
	if _, ok := s.fault(FaultHalf, m.Method, m.tool); ok {
		p.mu.Lock()
		_, _ = p.out.Write(a[:len(a)/2])
		_ = p.out.Close()
		p.mu.Unlock()
		return
	}
	if f, ok := s.fault(FaultEndless, m.Method, m.tool); ok {
		a = answer(m.ID, text(string(bytes.Repeat([]byte("x"), f.Count)), false), nil)
	}
	ahead, a := s.spoil(m, a)
	for _, message := range ahead {
		m.send(message)
	}
	piece, between := 1<<30, (func())(nil)
	if _, ok := s.fault(FaultFragments, m.Method, m.tool); ok {
		piece = 1
	}
	if _, ok := s.fault(FaultPing, m.Method, m.tool); ok {
		piece = 1
		m.send(json.RawMessage(`{"jsonrpc":"2.0","id":"ping-1","method":"ping"}`))
		between = func() { s.pinged("ping-1") }
	}
	p.line(a, piece, between)
}

// pinged waits until the client has answered a ping, or for some time.
func (s *server) pinged(id string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		entries, _ := ReadJournal(s.Dir)
		for _, e := range entries {
			if e.Event == EventAnswered && bytes.Contains(e.Params, []byte(id)) {
				return
			}
		}
	}
	s.violation(&message{Method: "ping"}, "no answer to a ping while an answer is on its way")
}

// before is what a fault does to a request before it runs. It reports whether the
// request goes on.
func (s *server) before(ctx context.Context, m *message) bool {
	if f, ok := s.fault(FaultExit, m.Method, m.tool); ok {
		os.Exit(f.Code)
	}
	if f, ok := s.fault(FaultDelay, m.Method, m.tool); ok {
		select {
		case <-time.After(time.Duration(f.Millis) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if _, ok := s.fault(FaultSilent, m.Method, m.tool); ok {
		return false
	}
	return true
}

// after is what a fault does once a request has run.
func (s *server) after(m *message) {
	if f, ok := s.fault(FaultExitAfter, m.Method, m.tool); ok {
		os.Exit(f.Code)
	}
}
