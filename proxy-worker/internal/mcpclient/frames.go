package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Frames carries whole messages to one peer and back: what a link over a pipe or
// over a go-sdk connection is made of.
type Frames interface {
	// Read returns the next message, in memory of its own. Only one goroutine
	// reads. Its error ends the link; an [*Error] says in words why. An [*Oversize]
	// ends it only where that says so.
	Read() (json.RawMessage, error)
	// Write writes a message and returns how many bytes of it may have gone out.
	// Only one goroutine writes. Its error ends the link, unless it is an [*Error]
	// that is not Lost.
	Write(json.RawMessage) (int, error)
	// Close ends Read and Write, in bounded time. It may be called more than once.
	Close()
}

// NewLink returns a [Link] over frames, which it owns from now on. The logger
// sees no content of a message but through redact.
func NewLink(f Frames, h Handler, log *slog.Logger, redact func(string) string) Link {
	l := &frameLink{
		frames: f, handler: h, log: log, redact: redact,
		writes: make(chan *write), replies: make(chan json.RawMessage, maxReplies),
		pending: map[string]*exchange{}, done: make(chan struct{}),
	}
	l.work.Go(l.read)
	l.work.Go(l.write)
	return l
}

// maxReplies bounds the answers that wait for a peer that asks and does not read.
const maxReplies = 64

// frameLink correlates responses with requests. A writer of its own lets a
// request end while its peer does not read.
type frameLink struct {
	frames  Frames
	handler Handler
	log     *slog.Logger
	redact  func(string) string
	writes  chan *write
	replies chan json.RawMessage
	ready   atomic.Bool // the handshake is over
	work    sync.WaitGroup

	mu      sync.Mutex
	pending map[string]*exchange
	done    chan struct{}
	err     *Error
}

// write is a message on its way out.
type write struct {
	data   json.RawMessage
	result chan error // of one; nil when the whole message has gone out
}

// exchange is a request that waits for its response.
type exchange struct {
	method string
	answer chan answer // of one
}

type answer struct {
	raw json.RawMessage
	err *Error
}

// Exchange implements [Link].
func (l *frameLink) Exchange(ctx context.Context, m Message) (json.RawMessage, error) {
	x := &exchange{method: m.Method, answer: make(chan answer, 1)}
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return nil, l.err.as(NotSent)
	}
	l.pending[m.ID] = x
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pending, m.ID)
		l.mu.Unlock()
	}()
	gone, err := l.send(ctx, m)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-gone:
			if err != nil {
				return nil, err
			}
			gone = nil // the whole message has gone out
		case a := <-x.answer:
			if a.err == nil {
				return a.raw, nil
			}
			if gone != nil {
				if err := l.unsent(ctx, gone); err != nil {
					return nil, err
				}
			}
			return nil, a.err
		}
	}
}

// writeGrace is how long a write may take to fail on a link that has ended.
const writeGrace = time.Second

// unsent returns the error of a write that sent nothing, if that is known soon.
func (l *frameLink) unsent(ctx context.Context, gone <-chan error) error {
	timer := time.NewTimer(writeGrace)
	defer timer.Stop()
	select {
	case err := <-gone:
		return err
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil
}

// Notify implements [Link].
func (l *frameLink) Notify(ctx context.Context, m Message) error {
	result, err := l.send(ctx, m)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-result:
		return err
	}
}

// send hands a message to the writer. An error means that it will not go out.
func (l *frameLink) send(ctx context.Context, m Message) (<-chan error, error) {
	if m.Sending != nil {
		m.Sending()
	}
	w := &write{data: m.Data, result: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l.writes <- w:
		return w.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.done:
		return nil, l.err.as(NotSent)
	}
}

// write writes one message after the other.
func (l *frameLink) write() {
	for {
		select {
		case <-l.done:
			return
		case data := <-l.replies:
			if _, err := l.frames.Write(data); err != nil {
				l.fail(asError(err))
			}
		case w := <-l.writes:
			n, err := l.frames.Write(w.data)
			if err == nil {
				w.result <- nil
				continue
			}
			e := asError(err)
			outcome := Sent
			switch {
			case e.Outcome == Refused: // it came whole, and the peer has said what it thinks of it
				outcome = Refused
			case n == 0:
				outcome = NotSent
			}
			w.result <- e.as(outcome)
			l.fail(e)
		}
	}
}

// asError words an error of the frames.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Lost: true, Retryable: true, Message: "the connection to the server broke", Detail: err.Error(), Cause: err}
}

// fail ends the link for an error, unless that concerns one message alone.
func (l *frameLink) fail(e *Error) {
	if e.Lost {
		l.die(e)
	}
}

// die ends the link once: every request under way may have run.
func (l *frameLink) die(e *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = e
	close(l.done)
	for _, x := range l.pending {
		x.end(answer{err: e.as(Sent)})
	}
}

func (x *exchange) end(a answer) {
	select {
	case x.answer <- a:
	default: // it has one
	}
}

// as returns a copy of the error of a lost link for one request.
func (e *Error) as(o Outcome) *Error {
	c := *e
	c.Outcome = o
	return &c
}

// read takes what the peer sends until the link ends.
func (l *frameLink) read() {
	for {
		raw, err := l.frames.Read()
		over, large := errors.AsType[*Oversize](err)
		switch {
		case large && l.oversize(over):
			continue
		case large:
			return
		case err != nil:
			l.die(asError(err))
			return
		}
		raw = bytes.TrimSpace(bytes.TrimPrefix(raw, bom))
		if len(raw) == 0 {
			continue
		}
		if raw[0] != '[' {
			l.take(raw)
			continue
		}
		batch, err := contract.ParseArray(raw) // as of 2025-03-26
		if err != nil {
			l.unreadable(raw)
		}
		for _, m := range batch {
			l.take(m)
		}
	}
}

func (l *frameLink) take(raw json.RawMessage) {
	m, err := DecodeIncoming(raw)
	if err != nil {
		l.unreadable(raw)
		return
	}
	switch {
	case m.IsResponse():
		l.answer(m)
	case m.ID == nil:
		if m.Fault == nil {
			l.handler.Notification(m.Method, m.Params)
		}
	default:
		select {
		case l.replies <- Reply(l.handler, m):
		default:
			l.log.Warn("the server asks more than it reads answers; one is left out", "method", brief(l.redact(m.Method)))
		}
	}
}

// answer ends the request that a response is for.
func (l *frameLink) answer(m Incoming) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.pending[string(m.ID)]
	fault := m.Fault
	if x == nil && !l.ready.Load() {
		// One request is under way, and the peer has not shown yet that it can
		// answer: better a clear error now than a timeout.
		for _, x = range l.pending {
			fault = errors.New("it has another ID than the request")
		}
	}
	switch {
	case x == nil:
		l.log.Debug("a response that nobody waits for", "id", brief(l.redact(string(m.ID))))
	case fault != nil:
		x.end(answer{err: Malformed(x.method, fault)})
	default:
		x.end(answer{raw: m.Raw})
	}
}

// unreadable ends the request whose answer is no JSON, as that of Python's NaN is
// not; it would wait for ever. What is no answer to a request under way is skipped.
func (l *frameLink) unreadable(raw json.RawMessage) {
	if id, response := ReadableID(raw); response {
		l.mu.Lock()
		defer l.mu.Unlock()
		if x := l.asked(id); x != nil {
			x.end(answer{err: Unreadable(x.method)})
			return
		}
	}
	l.skip(raw)
}

// oversize ends the request that a message over the limit answers, and reports
// whether the link goes on. It does not if it may be any of several requests
// that would wait for ever.
func (l *frameLink) oversize(o *Oversize) bool {
	l.log.Warn("a message of the server is over the size limit", "bytes", o.Size, "limit", o.Limit)
	id, response := Recognize(o.Start, o.End)
	l.mu.Lock()
	x := (*exchange)(nil)
	if response {
		x = l.asked(id)
	}
	if x != nil {
		x.end(answer{err: o.answer(x.method)})
	}
	lost := o.Lost
	if lost == nil && x == nil && response && id == "" && len(l.pending) > 0 {
		lost = &Error{Lost: true, Retryable: true, Message: "the connection was given up because of another message of the server"}
	}
	l.mu.Unlock()
	if lost != nil {
		l.die(lost)
	}
	return lost == nil
}

// asked returns the request with an ID; without one, the only one there is. The
// lock is held.
func (l *frameLink) asked(id string) *exchange {
	if id != "" {
		return l.pending[id]
	}
	if len(l.pending) == 1 {
		for _, x := range l.pending {
			return x
		}
	}
	return nil
}

// skip reports what is no message: some servers greet on stdout.
func (l *frameLink) skip(raw []byte) {
	l.log.Warn("the server wrote something that is no JSON-RPC message; skipped", "bytes", len(raw))
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("what the server wrote", "text", brief(l.redact(string(raw))))
	}
}

// brief bounds what a peer wrote for a log line.
func brief(s string) string { return fmt.Sprintf("%.200q", s) }

// Stderr returns the last that the peer wrote beside its messages, if it can.
func (l *frameLink) Stderr() []string {
	if f, ok := l.frames.(interface{ Stderr() []string }); ok {
		return f.Stderr()
	}
	return nil
}

// Negotiated implements [Link].
func (l *frameLink) Negotiated(string, bool) { l.ready.Store(true) }

// Done implements [Link].
func (l *frameLink) Done() <-chan struct{} { return l.done }

// Err implements [Link].
func (l *frameLink) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return l.err
}

// Close implements [Link].
func (l *frameLink) Close() {
	l.die(&Error{Lost: true, Retryable: true, Message: "the session was closed"})
	l.frames.Close()
	l.work.Wait()
}
