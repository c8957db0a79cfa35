package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

const (
	closeTimeout = 2 * time.Second
	replyTimeout = 30 * time.Second
	maxReplies   = 64 // answers to the server's own requests under way at once
)

// link is one session with a server, or none where the server has no sessions.
type link struct {
	t       *Transport
	handler mcpclient.Handler
	handle  sync.Mutex // the handler is called by one at a time
	replies chan struct{}

	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	done   chan struct{}
	closed sync.Once
	wg     sync.WaitGroup // the listener and the replies

	mu      sync.Mutex
	err     error
	session string
	version string
}

var _ mcpclient.Link = (*link)(nil)

func newLink(t *Transport, h mcpclient.Handler) *link {
	ctx, cancel := context.WithCancel(context.Background())
	return &link{
		t: t, handler: h, ctx: ctx, cancel: cancel,
		done:    make(chan struct{}),
		replies: make(chan struct{}, maxReplies),
	}
}

// Negotiated implements [mcpclient.Link].
func (l *link) Negotiated(version string, listen bool) {
	l.mu.Lock()
	l.version = version
	l.mu.Unlock()
	if listen {
		l.start(l.listen)
	}
}

// start runs f until it ends, which Close waits for.
func (l *link) start(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.wg.Go(f)
	}
}

// Notify implements [mcpclient.Link]. Since 2026-07-28 the end of a request's
// response stream is what cancels it.
func (l *link) Notify(ctx context.Context, m mcpclient.Message) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if m.Version != "" && m.Method == mcpclient.MethodCancelled {
		return nil
	}
	scope, _, cancel := l.scope(ctx)
	defer cancel()
	if err := l.post(scope, m); err != nil {
		return l.ended(ctx, err)
	}
	return nil
}

// post sends a message that has no answer.
func (l *link) post(ctx context.Context, m mcpclient.Message) error {
	r, session, err := l.message(m)
	if err != nil {
		return err
	}
	resp, err := l.t.do(ctx, r)
	if err != nil {
		return err
	}
	discard(resp) // whatever it says beyond its status, nobody has asked for
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	return l.t.status(resp, session)
}

// message makes the request for a message, and says whether it names a session.
func (l *link) message(m mcpclient.Message) (request, bool, error) {
	if err := l.Err(); err != nil {
		return request{}, false, &mcpclient.Error{
			Outcome: mcpclient.NotSent, Lost: true, Retryable: true,
			Message: "the session is no more", Cause: err,
		}
	}
	if int64(len(m.Data)) > l.t.max {
		return request{}, false, tooLong()
	}
	header, session := l.header()
	header.Set("Accept", mediaJSON+", "+mediaEvents)
	header.Set("Content-Type", mediaJSON)
	if m.Version != "" {
		header.Set(headerVersion, m.Version)
		header.Set(headerMethod, m.Method)
		if m.Name != "" {
			header.Set(headerName, encodeValue(m.Name))
		}
		for name, value := range m.Headers {
			if !ValidName(name) {
				return request{}, false, &mcpclient.Error{Outcome: mcpclient.NotSent, Message: "the tool's schema asks for a header whose name is none"}
			}
			header.Set(name, encodeValue(value))
		}
	}
	return request{method: http.MethodPost, url: l.t.url, header: header, body: m.Data, once: m.Once, sending: m.Sending}, session, nil
}

// tooLong is the error of a message that is not sent for its size.
func tooLong() *mcpclient.Error {
	return &mcpclient.Error{Outcome: mcpclient.NotSent, Message: "the request is over the size limit of messages"}
}

// header returns the headers that every request of the session has.
func (l *link) header() (h http.Header, session bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h = make(http.Header)
	if l.version != "" {
		h.Set(headerVersion, l.version)
	}
	if l.session != "" {
		h.Set(headerSession, l.session)
	}
	return h, l.session != ""
}

// setSession keeps the session that the answer to initialize names.
func (l *link) setSession(h http.Header) error {
	id := h.Get(headerSession)
	for _, c := range []byte(id) {
		if c < '!' || c > '~' {
			return l.t.noAnswer("the server's session ID is not visible ASCII", nil)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = id
	return nil
}

// scope returns a context that ends with ctx or with the link, and a function
// that frees it from ctx.
func (l *link) scope(ctx context.Context) (scope context.Context, free func(), cancel context.CancelFunc) {
	scope, end := context.WithCancel(context.WithoutCancel(ctx))
	fromCall := context.AfterFunc(ctx, end)
	fromLink := context.AfterFunc(l.ctx, end)
	return scope, func() { fromCall() }, func() { fromCall(); fromLink(); end() }
}

// receive takes a message that is no response.
func (l *link) receive(m mcpclient.Incoming) {
	l.handle.Lock()
	defer l.handle.Unlock()
	if m.ID == nil {
		if m.Fault == nil {
			l.handler.Notification(m.Method, m.Params)
		}
		return
	}
	reply := mcpclient.Reply(l.handler, m)
	select {
	case l.replies <- struct{}{}:
	default: // to wait would hold up the answers to calls, which come the same way
		l.t.log.Warn("the server asks more than it takes answers; one is left out")
		return
	}
	l.start(func() {
		defer func() { <-l.replies }()
		ctx, cancel := context.WithTimeout(l.ctx, replyTimeout)
		defer cancel()
		if err := l.post(ctx, mcpclient.Message{Data: reply}); err != nil {
			l.t.log.Debug("the server did not take the answer to its request", "error", err)
		}
	})
}

// Done implements [mcpclient.Link].
func (l *link) Done() <-chan struct{} { return l.done }

// Err implements [mcpclient.Link].
func (l *link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail makes the link one of no more use; what is under way goes on.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

var errClosed = &mcpclient.Error{Outcome: mcpclient.NotSent, Lost: true, Retryable: true, Message: "the connection was closed"}

// Close implements [mcpclient.Link]: it ends what is under way, and tells the
// server that its session is over, for at most 2 s.
func (l *link) Close() {
	l.closed.Do(func() {
		lost := l.Err() != nil
		l.fail(errClosed)
		l.mu.Lock()
		l.cancel()
		l.mu.Unlock()
		if header, session := l.header(); session && !lost {
			l.deleteSession(header)
		}
		l.wg.Wait()
	})
}

// deleteSession ends the session at the server. That it cannot is its own affair:
// it may not allow it (405), or know no such session any more (404).
func (l *link) deleteSession(header http.Header) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	resp, err := l.t.do(ctx, request{method: http.MethodDelete, url: l.t.url, header: header})
	if err != nil {
		l.t.log.Debug("the server was not told of the session's end", "error", err)
		return
	}
	_ = resp.Body.Close()
}
