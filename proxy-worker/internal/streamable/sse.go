package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// ssePostTimeout bounds the delivery of one message. It is not the time of a
// call: the answer comes on the stream.
const ssePostTimeout = 30 * time.Second

// NewSSE returns a transport for HTTP+SSE, the transport of 2024-11-05: one
// stream on which the server answers, and an address that it names to send to.
// The errors are those of [New].
func NewSSE(o Options) (*Transport, error) {
	t, err := New(o)
	if err != nil {
		return nil, err
	}
	t.sse = true
	return t, nil
}

// openSSE opens the stream and waits for the address to send to.
func (t *Transport) openSSE(ctx context.Context, h mcpclient.Handler) (mcpclient.Link, error) {
	f := &sseFrames{t: t}
	// The stream outlives the context that it is opened with.
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, f.cancel)
	err := f.connect()
	if !stop() || err != nil {
		f.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e, ok := errors.AsType[*mcpclient.Error](err); ok {
			e.Outcome, e.Lost = mcpclient.NotSent, false
		}
		return nil, err
	}
	return mcpclient.NewLink(f, h, t.log, t.redact), nil
}

// sseFrames are the messages of an HTTP+SSE connection.
type sseFrames struct {
	t      *Transport
	ctx    context.Context
	cancel context.CancelFunc
	stream *events
	body   io.Closer
	post   *url.URL
}

func (f *sseFrames) connect() error {
	l := &link{t: f.t}
	body, err := l.open(f.ctx, position{})
	if err != nil {
		return err
	}
	f.body = body
	f.stream = newEvents(body, f.t.max)
	for {
		ev, err := f.stream.next()
		if err != nil {
			return f.t.noAnswer("the server's stream ended before it named an address to send to", err)
		}
		if ev.name != "endpoint" {
			continue
		}
		f.post, err = f.t.postAddress(ev.data)
		return err
	}
}

// postAddress is the address that a server names to send to. The requests have the
// server's secrets in them, so it must be of the server's own origin.
func (t *Transport) postAddress(named []byte) (*url.URL, error) {
	post, err := t.url.Parse(string(named))
	if err != nil || len(named) == 0 {
		return nil, &mcpclient.Error{Message: "the server names no address to send to", Detail: t.origin()}
	}
	if !sameOrigin(post, t.url) {
		return nil, &mcpclient.Error{
			Message: "the server names an address to send to of another origin, which is not used",
			Detail:  t.redact(t.origin() + " names " + post.Scheme + "://" + post.Host),
		}
	}
	post.User = t.url.User
	return post, nil
}

// Read implements [mcpclient.Frames].
func (f *sseFrames) Read() (json.RawMessage, error) {
	for {
		ev, err := f.stream.next()
		if err != nil {
			e := f.t.noAnswer("the server ended its stream", err)
			e.Lost = true
			if errors.Is(err, errTooLarge) {
				e.Message = "the connection was given up because of another message of the server"
				return nil, &mcpclient.Oversize{Start: f.stream.large, Size: int64(len(f.stream.large)), Limit: f.t.max, Lost: e}
			}
			return nil, e
		}
		if len(ev.data) > 0 && (ev.name == "" || ev.name == "message") {
			return ev.data, nil
		}
	}
}

// Write implements [mcpclient.Frames].
func (f *sseFrames) Write(data json.RawMessage) (int, error) {
	if int64(len(data)) > f.t.max {
		return 0, tooLong()
	}
	ctx, cancel := context.WithTimeout(f.ctx, ssePostTimeout)
	defer cancel()
	resp, err := f.t.do(ctx, request{
		method: http.MethodPost,
		url:    f.post,
		header: http.Header{"Content-Type": {mediaJSON}},
		body:   data,
		once:   true, // of which message it is, a frame does not say
	})
	var e *mcpclient.Error
	switch {
	case err == nil && resp.StatusCode >= 200 && resp.StatusCode < 300:
		discard(resp)
		return len(data), nil
	case err == nil:
		discard(resp)
		e = f.t.status(resp, true)
	case !errors.As(err, &e):
		e = f.t.noAnswer("the server did not take the message in time", err)
	}
	if e.Outcome == mcpclient.Sent {
		return len(data), e
	}
	return 0, e
}

// Close implements [mcpclient.Frames].
func (f *sseFrames) Close() {
	f.cancel()
	if f.body != nil {
		_ = f.body.Close()
	}
}
