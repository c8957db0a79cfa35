package streamable_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]streamable.Options{
		"no URL":       {},
		"scheme":       {URL: "ftp://host/" + secret},
		"no host":      {URL: "http:///mcp?" + secret},
		"malformed":    {URL: "http://user:" + secret + "@[::1"},
		"Accept":       {URL: "http://h", Headers: http.Header{"accept": {"x"}}},
		"Content-Type": {URL: "http://h", Headers: http.Header{"CONTENT-TYPE": {"x"}}},
		"length":       {URL: "http://h", Headers: http.Header{"Content-length": {"1"}}},
		"Host":         {URL: "http://h", Headers: http.Header{"host": {"x"}}},
		"session":      {URL: "http://h", Headers: http.Header{"MCP-Session-ID": {"x"}}},
		"version":      {URL: "http://h", Headers: http.Header{"mcp-protocol-version": {"x"}}},
		"parameter":    {URL: "http://h", Headers: http.Header{"Mcp-Param-X": {"x"}}},
		"repeatable":   {URL: "http://h", Headers: http.Header{"Idempotency-Key": {"x"}}},
		"repeatable X": {URL: "http://h", Headers: http.Header{"x-idempotency-key": {"x"}}},
		"connection":   {URL: "http://h", Headers: http.Header{"proxy-connection": {"x"}}},
		"twice":        {URL: "http://h", Headers: http.Header{"X-Key": {"x"}, "x-key": {"y"}}},
		"name":         {URL: "http://h", Headers: http.Header{"X Key": {"x"}}},
		"no name":      {URL: "http://h", Headers: http.Header{"": {"x"}}},
		"line feed":    {URL: "http://h", Headers: http.Header{"X-Key": {secret + "\nX-Other: y"}}},
		"two masters":  {URL: "http://h", Headers: http.Header{"authorization": {secret}}, OAuth: &fixed{}},
		"limit":        {URL: "http://h", MaxMessageBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, build := range []func(streamable.Options) (*streamable.Transport, error){streamable.New, streamable.NewSSE} {
				_, err := build(o)
				require.Error(t, err)
				require.NotContains(t, err.Error(), secret)
				for header := range o.Headers {
					require.Contains(t, strings.ToLower(err.Error()), `header "`+strings.ToLower(header)+`"`)
				}
			}
		})
	}
}

// fixed hands out tokens from a list, the next one after each 401.
type fixed struct {
	mu         sync.Mutex
	tokens     []string
	authorized int
	err        error
}

func (f *fixed) TokenSource(context.Context) (oauth2.TokenSource, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: f.tokens[min(f.authorized, len(f.tokens)-1)]}), nil
}

func (f *fixed) Authorize(_ context.Context, _ *http.Request, resp *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.authorized++
	_ = resp.Body.Close()
	return f.err
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler *fixed
		posts   int
		outcome mcpclient.Outcome
		ok      bool
		message string
	}{
		"good":     {handler: &fixed{tokens: []string{"good"}}, posts: 1, ok: true},
		"old":      {handler: &fixed{tokens: []string{"old", "good"}}, posts: 2, ok: true},
		"never":    {handler: &fixed{tokens: []string{secret}}, posts: 2, outcome: mcpclient.Refused},
		"narrow":   {handler: &fixed{tokens: []string{"narrow", "good"}}, posts: 2, ok: true},
		"both":     {handler: &fixed{tokens: []string{"old", "narrow", "good"}}, posts: 3, ok: true},
		"too few":  {handler: &fixed{tokens: []string{"old", "narrow"}}, posts: 3, outcome: mcpclient.Refused},
		"no more":  {handler: &fixed{tokens: []string{"narrow"}, err: errors.New(secret)}, posts: 1, outcome: mcpclient.Refused, message: "403), and there is no token with more scopes"},
		"nobody":   {handler: &fixed{tokens: []string{"nobody", "good"}}, posts: 1, outcome: mcpclient.Refused},
		"no token": {handler: &fixed{tokens: []string{"old"}, err: context.DeadlineExceeded}, posts: 1, outcome: mcpclient.NotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int32
			link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				posts.Add(1)
				switch r.Header.Get("Authorization") {
				case "Bearer good":
					reply(w, answer7)
				case "Bearer narrow":
					w.Header().Set("WWW-Authenticate", `Basic realm="x", Bearer error="insufficient_scope", scope="more"`)
					w.WriteHeader(http.StatusForbidden)
				case "Bearer nobody":
					w.Header().Set("WWW-Authenticate", `Bearer error="invalid_request"`)
					w.WriteHeader(http.StatusForbidden)
				default:
					w.WriteHeader(http.StatusUnauthorized)
				}
			}, func(o *streamable.Options) { o.OAuth = c.handler })
			_, err := link.Exchange(t.Context(), call())
			require.EqualValues(t, c.posts, posts.Load())
			if c.ok {
				require.NoError(t, err)
				return
			}
			e := failure(t, err)
			require.Equal(t, c.outcome, e.Outcome)
			require.Contains(t, e.Message, c.message)
		})
	}
}

// The whole way: a 401 leads to the token endpoint, and the call goes through.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	var denied atomic.Bool
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			reply(w, `{"issuer":"`+server.URL+`","token_endpoint":"`+server.URL+`/token"}`)
		case r.URL.Path == "/token" && denied.Load():
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"unauthorized_client","error_description":"`+secret+`"}`)
		case r.URL.Path == "/token":
			reply(w, `{"access_token":"good","token_type":"Bearer","expires_in":60}`)
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") == "Bearer good":
			reply(w, answer7)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	open := func() mcpclient.Link {
		h, err := oauth.New(oauth.Options{ClientID: "me", ClientSecret: secret})
		require.NoError(t, err)
		link, _ := dial(t, server.URL+"/mcp", func(o *streamable.Options) { o.OAuth = h })
		return link
	}
	_, err := open().Exchange(t.Context(), call())
	require.NoError(t, err)
	denied.Store(true)
	_, err = open().Exchange(t.Context(), call())
	e := failure(t, err)
	require.Equal(t, mcpclient.NotSent, e.Outcome)
	require.False(t, e.Retryable)
	require.Contains(t, e.Message, "unauthorized_client")
}

// A server that never has enough of scopes is asked for a token with more of them
// once, however many calls it refuses.
func TestScopesThatNeverSuffice(t *testing.T) {
	t.Parallel()
	var server *httptest.Server
	var mu sync.Mutex
	var scopes []string
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/oauth-authorization-server":
			reply(w, `{"issuer":"`+server.URL+`","token_endpoint":"`+server.URL+`/token"}`)
		case r.URL.Path == "/token":
			mu.Lock()
			defer mu.Unlock()
			scopes = append(scopes, r.FormValue("scope"))
			reply(w, `{"access_token":"good","token_type":"Bearer","expires_in":60}`)
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="all"`)
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	h, err := oauth.New(oauth.Options{ClientID: "me", ClientSecret: secret})
	require.NoError(t, err)
	link, _ := dial(t, server.URL+"/mcp", func(o *streamable.Options) { o.OAuth = h })
	for range 3 {
		_, err := link.Exchange(t.Context(), call())
		e := failure(t, err)
		require.Equal(t, mcpclient.Refused, e.Outcome)
		require.False(t, e.Retryable)
		require.Contains(t, e.Message, "HTTP status 403")
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"", "all"}, scopes)
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another origin was asked") }))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		to    string
		chain int
		ok    bool
		http2 bool
	}{
		"same origin":    {to: "/b", chain: 1, ok: true},
		"over HTTP/2":    {to: "/b", chain: 5, ok: true, http2: true},
		"whole address":  {to: "http://HOST/b", chain: 1, ok: true},
		"five":           {to: "/b", chain: 5, ok: true},
		"six":            {to: "/b", chain: 6},
		"another origin": {to: elsewhere.URL + "/?" + secret, chain: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if int(n.Add(1)) <= c.chain {
					http.Redirect(w, r, strings.Replace(c.to, "HOST", r.Host, 1), http.StatusTemporaryRedirect)
					return
				}
				user, password, _ := r.BasicAuth()
				if r.Method == http.MethodPost && string(body) == string(call().Data) && r.Header.Get("X-Key") == secret && user == "me" && password == secret {
					reply(w, answer7)
				}
			}))
			if server.EnableHTTP2 = c.http2; c.http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			t.Cleanup(server.CloseClientConnections)
			link, _ := dial(t, strings.Replace(server.URL, "://", "://me:"+secret+"@", 1), func(o *streamable.Options) {
				o.Client = server.Client()
				o.Headers = http.Header{"X-Key": {secret}}
			})
			once := call()
			once.Once = true
			_, err := link.Exchange(t.Context(), once)
			if c.ok {
				require.NoError(t, err)
				return
			}
			e := failure(t, err)
			require.Equal(t, mcpclient.Refused, e.Outcome)
			require.Contains(t, e.Message, "redirects")
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	link, _ := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		reply(w, answer7)
	}), func(o *streamable.Options) { o.Headers = http.Header{"x-key": {secret}} })

	m := modern()
	m.Name = "größe\nx"
	m.Headers = map[string]string{
		"Mcp-Param-Plain": "us-west1", "Mcp-Param-Space": " x", "Mcp-Param-Uni": "日本語", "Mcp-Param-Like": "=?base64?eA==?=", "Mcp-Param-Empty": "",
	}
	_, err := link.Exchange(t.Context(), m)
	require.NoError(t, err)
	h := <-got
	for name, want := range map[string]string{
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "X-Key": secret,
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?Z3LDtsOfZQp4?=",
		"Mcp-Param-Plain": "us-west1", "Mcp-Param-Space": "=?base64?IHg=?=", "Mcp-Param-Uni": "=?base64?5pel5pys6Kqe?=",
		"Mcp-Param-Like": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=", "Mcp-Param-Empty": "", "Mcp-Session-Id": "",
	} {
		require.Equal(t, want, h.Get(name), name)
	}
	m.Headers = map[string]string{"Mcp-Param-\n": "x"}
	_, err = link.Exchange(t.Context(), m)
	require.Equal(t, mcpclient.NotSent, failure(t, err).Outcome)

	initialize(t, link, false)
	_, err = link.Exchange(t.Context(), call())
	require.NoError(t, err)
	h = <-got
	require.Equal(t, "2025-11-25", h.Get("Mcp-Protocol-Version"))
	require.Equal(t, "session-1", h.Get("Mcp-Session-Id"))
	require.Empty(t, h.Get("Mcp-Method"))
	require.Empty(t, h.Get("Mcp-Name"))
}

func TestNotify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		respond http.HandlerFunc
		ok      bool
	}{
		"202":    {status(202, "Accepted"), true},
		"200":    {status(200, "{}"), true},
		"stream": {func(w http.ResponseWriter, r *http.Request) { stream(w, ": hi\n\n"); <-r.Context().Done() }, true},
		"400":    {status(400, "no"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c.respond(w, r)
			})
			err := link.Notify(t.Context(), mcpclient.Message{Method: "notifications/initialized", Data: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.Equal(t, mcpclient.Refused, failure(t, err).Outcome)
		})
	}
}

// retrying sends everything twice, the second time to nobody.
type retrying struct{ nowhere string }

func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if _, err := transport.RoundTrip(r); err == nil {
		return nil, errors.New("there is an answer")
	}
	again := r.Clone(r.Context())
	again.URL.Host = t.nowhere
	again.Body, _ = r.GetBody()
	return transport.RoundTrip(again)
}

func TestAClientThatTriesAgainHasSentTheRequest(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	link, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		posts.Add(1)
		panic(http.ErrAbortHandler)
	}, func(o *streamable.Options) {
		o.Client = &http.Client{Transport: retrying{"127.0.0.1:1"}}
	})
	_, err := link.Exchange(t.Context(), call())
	require.Equal(t, mcpclient.Sent, failure(t, err).Outcome)
	require.EqualValues(t, 1, posts.Load())
}
