package streamable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

const maxRedirects = 5

// request is what is sent, wherever a redirect leads and whatever token it needs.
type request struct {
	method  string
	url     *url.URL
	header  http.Header
	body    []byte
	once    bool   // it must not reach the server twice
	sending func() // once, right before the first byte
}

// do sends a request until there is a response that is the server's own: over
// redirects within the origin, once more with a new token, and once more with one
// of more scopes. The errors are ctx's or an [*mcpclient.Error].
func (t *Transport) do(ctx context.Context, r request) (*http.Response, error) {
	sending := sync.OnceFunc(func() {
		if r.sending != nil {
			r.sending()
		}
	})
	target, authorized, widened := r.url, false, false
	for redirects := 0; ; {
		req, err := t.newRequest(ctx, r, target)
		if err != nil {
			return nil, err
		}
		resp, err := t.send(req, r.once, sending)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			discard(resp)
			if redirects++; redirects > maxRedirects {
				return nil, t.misdirected("the server redirects in circles", resp, nil)
			}
			if target, err = t.redirect(req, resp); err != nil {
				return nil, err
			}
		case resp.StatusCode == http.StatusUnauthorized && t.oauth != nil && !authorized:
			authorized = true
			if err := t.oauth.Authorize(ctx, req, resp); err != nil {
				return nil, t.unauthorized(ctx, err)
			}
		case t.oauth != nil && !widened && oauth.ScopesInsufficient(resp):
			widened = true
			if err := t.oauth.Authorize(ctx, req, resp); err != nil {
				return nil, t.forbidden(ctx, resp, err)
			}
		default:
			return resp, nil
		}
	}
}

func (t *Transport) newRequest(ctx context.Context, r request, target *url.URL) (*http.Request, error) {
	// http.NewRequest gives the body a GetBody, with which net/http tries again; see
	// try for when it may.
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, &mcpclient.Error{Message: "the request cannot be made", Detail: t.detail(err), Cause: err}
	}
	maps.Copy(req.Header, t.headers)
	maps.Copy(req.Header, r.header)
	if t.oauth == nil {
		return req, nil
	}
	source, err := t.oauth.TokenSource(ctx)
	if err == nil && source != nil {
		token, tokenErr := source.Token()
		if tokenErr == nil {
			token.SetAuthHeader(req)
		}
		err = tokenErr
	}
	if err != nil {
		return nil, t.unauthorized(ctx, err)
	}
	return req, nil
}

// send sends one request to one address.
func (t *Transport) send(req *http.Request, once bool, sending func()) (*http.Response, error) {
	c, try := *t.client, &try{base: t.client.Transport, traced: t.traced, once: once, sending: sending}
	c.Transport = try
	resp, err := c.Do(req)
	if err != nil {
		if ctx := req.Context(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A client that does not tell has to be believed capable of anything.
		return nil, t.unanswered(err, try.touched.Load() || !try.began.Load())
	}
	return resp, nil
}

// try is the way of one request through the client, and what it tells of it.
type try struct {
	base    http.RoundTripper
	traced  bool // base is net/http's own
	once    bool
	sending func()

	began, touched, streamed atomic.Bool
}

var errWritten = errors.New("the stream of the request failed after it was written")

// RoundTrip implements [http.RoundTripper]. Over HTTP/1 net/http tries a POST again
// only where it found the connection dead before it wrote. Over HTTP/2 it also does so
// after a stream error that says nothing of what the server has done with the request,
// and which one it was does not show here.
func (t *try) RoundTrip(req *http.Request) (*http.Response, error) {
	r := req.WithContext(httptrace.WithClientTrace(req.Context(), t.trace()))
	if again := req.GetBody; again != nil {
		r.GetBody = func() (io.ReadCloser, error) {
			if t.once && t.streamed.Load() {
				return nil, errWritten
			}
			return again()
		}
	}
	if !t.traced {
		t.sending()
	}
	return t.base.RoundTrip(r)
}

func (t *try) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			t.began.Store(true)
			// Over HTTP/1 net/http has tried with what it has not written; others may do
			// so with anything.
			if t.traced && !t.streamed.Load() {
				t.touched.Store(false)
			}
		},
		GotConn: func(httptrace.GotConnInfo) {
			if t.traced {
				t.sending()
			}
		},
		WroteHeaderField: func(name string, _ []string) {
			if strings.HasPrefix(name, ":") { // a pseudo-header: of HTTP/2
				t.streamed.Store(true)
			}
		},
		WroteHeaders: func() { t.touched.Store(true) },
	}
}

// redirect returns where a response leads: within the origin, and with the method
// and the body kept. Whatever else is in a redirect is refused, for the request
// has the server's secrets in it.
func (t *Transport) redirect(req *http.Request, resp *http.Response) (*url.URL, error) {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return nil, t.misdirected(fmt.Sprintf("the server answers with HTTP status %d, a redirect that keeps no request", resp.StatusCode), resp, nil)
	}
	location, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, t.misdirected("the server redirects to nowhere", resp, nil)
	}
	if !sameOrigin(location, req.URL) {
		return nil, t.misdirected("the server redirects to another origin, which is not followed", resp, location)
	}
	location.User = req.URL.User
	return location, nil
}

func (t *Transport) misdirected(message string, resp *http.Response, to *url.URL) *mcpclient.Error {
	e := &mcpclient.Error{
		Outcome: mcpclient.Refused,
		Message: message,
		Detail:  fmt.Sprintf("%s: HTTP status %d", t.origin(), resp.StatusCode),
	}
	if to != nil {
		e.Detail = t.redact(e.Detail + " to " + to.Scheme + "://" + to.Host)
	}
	return e
}

// unauthorized is the error of a request for which there is no token.
func (t *Transport) unauthorized(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &mcpclient.Error{Outcome: mcpclient.NotSent, Retryable: true, Message: "there is no access token for the server", Cause: err}
	// Only of our own handler is it known that its errors hold no secret.
	if own, ok := errors.AsType[*oauth.Error](err); ok {
		e.Message += ": " + own.Message
		e.Detail = t.redact(own.Detail)
		e.Retryable = own.Retryable
	}
	return e
}

// forbidden is the error of a request whose token has too few scopes, and for which
// there is none with more.
func (t *Transport) forbidden(ctx context.Context, resp *http.Response, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := t.status(resp, false)
	e.Retryable, e.Cause = true, err
	if own, ok := errors.AsType[*oauth.Error](err); ok {
		e.Message += ": " + own.Message
		e.Detail = cmp.Or(t.redact(own.Detail), e.Detail)
		e.Retryable = own.Retryable
	} else {
		e.Message += ", and there is no token with more scopes"
	}
	return e
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// discard ends a response of which nothing is wanted, in a way that keeps the
// connection if little is left of it.
func discard(resp *http.Response) {
	if resp.ContentLength >= 0 && resp.ContentLength <= 4<<10 {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	_ = resp.Body.Close()
}
