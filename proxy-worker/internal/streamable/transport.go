package streamable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/redact"
)

// maxMaxMessageBytes is no limit at all, and far from an overflow.
const maxMaxMessageBytes = 1 << 40

// Options are the options of [New] and [NewSSE].
type Options struct {
	// URL is the server's endpoint, http or https.
	URL string
	// Headers go along with every request to the server, and to nobody else.
	Headers http.Header
	// OAuth, unless it is nil, gives the access tokens.
	OAuth auth.OAuthHandler
	// Client sends the requests; its redirect policy is not used, and its Timeout
	// would end streams. Defaults to one without an overall timeout that honours
	// the proxy variables of the environment.
	Client *http.Client
	// MaxMessageBytes bounds a message, in each direction. Defaults to 16 MiB.
	MaxMessageBytes int64
	// Logger defaults to none.
	Logger *slog.Logger
	// Redact takes secrets out of what is logged. The values of Headers and the
	// secrets in URL are taken out without it.
	Redact func(string) string
}

// Transport opens links to one server. It is safe for concurrent use.
type Transport struct {
	url     *url.URL
	headers http.Header
	oauth   auth.OAuthHandler
	client  *http.Client
	traced  bool // the client tells when it has a connection
	max     int64
	log     *slog.Logger
	redact  func(string) string
	sse     bool
}

// New returns a transport for Streamable HTTP. It returns an error for a URL that
// is not http or https, and for headers that are malformed or not to be
// configured.
func New(o Options) (*Transport, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		// What is wrong with it may be the password in it: it is not repeated.
		return nil, errors.New("streamable: the URL must be http:// or https:// with a host")
	}
	u.Fragment, u.RawFragment = "", ""
	headers, err := checkHeaders(o.Headers, o.OAuth != nil)
	if err != nil {
		return nil, err
	}
	if o.MaxMessageBytes < 0 {
		return nil, fmt.Errorf("streamable: the size limit of messages is %d bytes, below zero", o.MaxMessageBytes)
	}
	t := &Transport{
		url:     u,
		headers: headers,
		oauth:   o.OAuth,
		max:     min(cmp.Or(o.MaxMessageBytes, mcpclient.DefaultMaxMessageBytes), maxMaxMessageBytes),
		log:     o.Logger,
		redact:  redactor(o),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.log = mcpclient.Limited(t.log)
	base := o.Client
	if base == nil {
		base = &http.Client{Transport: newHTTPTransport()}
	}
	client := *base
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport = cmp.Or(client.Transport, http.DefaultTransport)
	_, t.traced = client.Transport.(*http.Transport)
	t.client = &client
	return t, nil
}

// newHTTPTransport bounds what comes before a response and nothing after: a call
// takes as long as its context lets it.
func newHTTPTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           200,
		MaxIdleConnsPerHost:    100,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// redactor takes the secrets of the options out of a text, then what the
// operator's own redactor knows.
func redactor(o Options) func(string) string {
	secrets := redact.URL(o.URL)
	for _, values := range o.Headers {
		for _, value := range values {
			secrets = append(secrets, redact.Header(value)...)
		}
	}
	own := redact.New(secrets...)
	if o.Redact == nil {
		return own
	}
	return func(s string) string { return o.Redact(own(s)) }
}

// Open implements [mcpclient.Transport]. Streamable HTTP has no connection to
// make: nothing is sent before the first message.
func (t *Transport) Open(ctx context.Context, h mcpclient.Handler) (mcpclient.Link, error) {
	if t.sse {
		return t.openSSE(ctx, h)
	}
	return newLink(t, h), nil
}

// FreshAfterProbe implements [mcpclient.Transport].
func (t *Transport) FreshAfterProbe() bool { return t.sse }
