package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

const (
	patience = 20 * time.Second
	id       = "client:ä"
	secret   = "planted s3cret+value"
)

// server is an authorization server and an MCP server in one.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []url.Values // token requests that were granted or refused
	metadata []string     // paths of metadata that were asked for

	takes   []string                                // authentication methods it takes; nil: both
	states  []string                                // those that its metadata states
	algs    []string                                // of signatures, as its metadata states them
	signed  func(form url.Values) bool              // whether an assertion is the client's
	answer  func(w http.ResponseWriter, n int) bool // of token request n, unless it returns false
	paths   map[string]func() any                   // metadata by path
	expires any
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{takes: []string{"client_secret_basic", "client_secret_post"}, expires: 3600}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.paths = map[string]func() any{
		"/.well-known/oauth-protected-resource/mcp": func() any {
			return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": []string{"tools"}}
		},
		"/.well-known/oauth-authorization-server": s.authorizationServer,
	}
	return s
}

func (s *server) authorizationServer() any {
	m := map[string]any{"issuer": s.URL, "token_endpoint": s.URL + "/token"}
	if s.states != nil {
		m["token_endpoint_auth_methods_supported"] = s.states
	}
	if s.algs != nil {
		m["token_endpoint_auth_signing_alg_values_supported"] = s.algs
	}
	return m
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/token" {
		s.metadata = append(s.metadata, r.URL.Path)
		if r.Header.Get("Authorization") != "" {
			panic("credentials at the metadata")
		}
		if f := s.paths[r.URL.Path]; f != nil {
			_ = json.NewEncoder(w).Encode(f())
			return
		}
		http.NotFound(w, r)
		return
	}
	_ = r.ParseForm()
	method := ""
	if user, password, ok := r.BasicAuth(); ok {
		u, _ := url.QueryUnescape(user)
		p, _ := url.QueryUnescape(password)
		if u == id && p == secret {
			method = "client_secret_basic"
		}
	} else if r.PostForm.Get("client_id") == id && r.PostForm.Get("client_secret") == secret {
		method = "client_secret_post"
	} else if s.signed != nil && s.signed(r.PostForm) {
		method = "private_key_jwt"
	}
	s.requests = append(s.requests, r.PostForm)
	n := len(s.requests)
	if s.answer != nil && s.answer(w, n) {
		return
	}
	if !slices.Contains(s.takes, method) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"`+secret+`"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("token-%d", n), "token_type": "bearer", "expires_in": s.expires})
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *server) first() url.Values { return s.request(0) }

func (s *server) request(n int) url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[n]
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.metadata)
}

func newHandler(t *testing.T, o oauth.Options) *oauth.Handler {
	t.Helper()
	o.ClientID = id
	if o.PrivateKey == nil {
		o.ClientSecret = secret
	}
	h, err := oauth.New(o)
	require.NoError(t, err)
	return h
}

func token(t *testing.T, h *oauth.Handler) (string, error) {
	t.Helper()
	source, err := h.TokenSource(t.Context())
	require.NoError(t, err)
	require.NotNil(t, source)
	tok, err := source.Token()
	if err != nil {
		noSecrets(t, err)
		return "", err
	}
	return tok.AccessToken, nil
}

// refused tells the handler of a 401.
func refused(t *testing.T, h *oauth.Handler, mcp, used string, challenge ...string) error {
	t.Helper()
	return authorize(t, h, http.StatusUnauthorized, mcp, used, challenge...)
}

func authorize(t *testing.T, h *oauth.Handler, status int, mcp, used string, challenge ...string) error {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, mcp, nil)
	if used != "" {
		req.Header.Set("Authorization", "Bearer "+used)
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": challenge}, Body: io.NopCloser(strings.NewReader("no"))}
	err := h.Authorize(t.Context(), req, resp)
	if err != nil {
		noSecrets(t, err)
	}
	return err
}

func noSecrets(t *testing.T, err error) {
	t.Helper()
	var e *oauth.Error
	require.ErrorAs(t, err, &e)
	for _, text := range []string{err.Error(), e.Message, e.Detail} {
		for _, s := range []string{secret, url.QueryEscape(secret), "s3cret", "token-"} {
			require.NotContains(t, text, s)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]oauth.Options{
		"no ID":         {ClientSecret: secret},
		"no secret":     {ClientID: id},
		"two secrets":   {ClientID: id, ClientSecret: secret, PrivateKey: newKey(t, "P-256")},
		"other curve":   {ClientID: id, PrivateKey: newKey(t, "P-224")},
		"short key":     {ClientID: id, PrivateKey: newKey(t, "RSA 1024")},
		"other key":     {ClientID: id, PrivateKey: otherKey{}},
		"http":          {ClientID: id, ClientSecret: secret, TokenURL: "http://auth.example/token?key=" + secret},
		"user info":     {ClientID: id, ClientSecret: secret, TokenURL: "https://u:" + secret + "@auth.example/token"},
		"no URL":        {ClientID: id, ClientSecret: secret, TokenURL: "::" + secret},
		"no resource":   {ClientID: id, ClientSecret: secret, Resource: "::" + secret},
		"resource path": {ClientID: id, ClientSecret: secret, Resource: "/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := oauth.New(o)
			require.Error(t, err)
			require.NotContains(t, err.Error(), secret)
		})
	}
	_, err := oauth.New(oauth.Options{ClientID: id, ClientSecret: secret, TokenURL: "https://auth.example/token"})
	require.NoError(t, err)
}

func TestTokenURL(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token", Scopes: []string{"a", "b"}, Resource: "https://user:pw@MCP.example/mcp?x=y#f"})
	for range 3 {
		got, err := token(t, h)
		require.NoError(t, err)
		require.Equal(t, "token-1", got)
	}
	require.Equal(t, url.Values{
		"grant_type": {"client_credentials"}, "scope": {"a b"}, "resource": {"https://mcp.example/mcp"},
	}, s.first())
}

func TestConcurrentCallersShareOneRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token"})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			source, err := h.TokenSource(t.Context())
			if err == nil {
				_, err = source.Token()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, s.count())
	for range 50 {
		wg.Go(func() {
			if err := refused(t, h, s.URL+"/mcp", "token-1"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, s.count(), "a token refused many times is replaced once")
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-2", got)
}

// Requests that went out before there was a token share the first one.
func TestFirstRefusalsShareOneRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newHandler(t, oauth.Options{})
	for range 3 {
		require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
	}
	require.Equal(t, 1, s.count())
}

func TestRefreshBeforeExpiry(t *testing.T) {
	t.Parallel()
	for name, expires := range map[string]any{"number": 2, "text": "2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.expires = expires
			h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token"})
			source, err := h.TokenSource(t.Context())
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				tok, err := source.Token()
				require.NoError(t, err)
				require.True(t, time.Now().Before(tok.Expiry), "an expired token was handed out")
				return tok.AccessToken == "token-2"
			}, patience, 20*time.Millisecond)
		})
	}
}

// A refresh that fails leaves the old token for as long as it is valid.
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.expires = 2
	s.answer = func(w http.ResponseWriter, n int) bool {
		if n == 1 {
			return false
		}
		http.Error(w, secret, http.StatusServiceUnavailable)
		return true
	}
	h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token"})
	source, err := h.TokenSource(t.Context())
	require.NoError(t, err)
	var last error
	require.Eventually(t, func() bool {
		tok, err := source.Token()
		last = err
		if err != nil {
			return true
		}
		require.Equal(t, "token-1", tok.AccessToken)
		return false
	}, patience, 20*time.Millisecond)
	require.Greater(t, s.count(), 2)
	noSecrets(t, last)
	var e *oauth.Error
	require.ErrorAs(t, last, &e)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, "503")
}

// A caller that gives up takes the token from nobody.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.answer = func(http.ResponseWriter, int) bool {
		close(arrived)
		<-release
		return false
	}
	h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token"})
	ctx, cancel := context.WithCancel(t.Context())
	source, err := h.TokenSource(ctx)
	require.NoError(t, err)
	go func() { <-arrived; cancel() }()
	_, err = source.Token()
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-1", got)
	require.Equal(t, 1, s.count())
}

func TestAuthenticationMethods(t *testing.T) {
	t.Parallel()
	const basic, post = "client_secret_basic", "client_secret_post"
	for name, c := range map[string]struct {
		takes, states []string
		requests      int
		fails         bool
	}{
		"Basic only":        {takes: []string{basic}, requests: 1},
		"post only":         {takes: []string{post}, requests: 2},
		"post only, stated": {takes: []string{post}, states: []string{post}, requests: 1},
		"both stated":       {takes: []string{basic}, states: []string{post, basic}, requests: 1},
		"stated wrongly":    {takes: []string{post}, states: []string{basic}, requests: 1, fails: true},
		"no secret, stated": {takes: []string{post}, states: []string{"private_key_jwt"}, fails: true},
		"wrong credentials": {takes: []string{"none"}, requests: 2, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.takes, s.states = c.takes, c.states
			h := newHandler(t, oauth.Options{})
			err := refused(t, h, s.URL+"/mcp", "")
			require.Equal(t, c.requests, s.count())
			if c.fails {
				var e *oauth.Error
				require.ErrorAs(t, err, &e)
				require.False(t, e.Retryable)
				return
			}
			require.NoError(t, err)
			got, err := token(t, h)
			require.NoError(t, err)
			// What worked is what the next request begins with.
			require.NoError(t, refused(t, h, s.URL+"/mcp", got))
			require.Equal(t, c.requests+1, s.count())
		})
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	resource := func(s *server, of string) func() any {
		return func() any {
			return map[string]any{"resource": s.URL + of, "authorization_servers": []string{s.URL}}
		}
	}
	for name, c := range map[string]struct {
		prepare   func(s *server)
		challenge string // with %s for the server, a value a line
		scope     string
		resource  string // a path
		fails     string
	}{
		"well-known": {scope: "tools", resource: "/mcp"},
		"challenge": {
			prepare: func(s *server) {
				s.paths = map[string]func() any{"/meta": resource(s, "/mcp"), "/.well-known/oauth-authorization-server": s.authorizationServer}
			},
			challenge: `Basic realm="x", Bearer error="invalid_token", scope="one two", resource_metadata="%s/meta"`,
			scope:     "one two", resource: "/mcp",
		},
		"challenge beside others": {
			prepare: func(s *server) {
				s.paths = map[string]func() any{"/meta": resource(s, "/mcp"), "/.well-known/oauth-authorization-server": s.authorizationServer}
			},
			challenge: "Basic realm=\"\"\nBearer error_description=\"\", scope=\"one\", resource_metadata=\"%s/meta\"\nBasic realm=\"",
			scope:     "one", resource: "/mcp",
		},
		"root": {
			prepare: func(s *server) {
				s.paths = map[string]func() any{
					"/.well-known/oauth-protected-resource": resource(s, ""), "/.well-known/oauth-authorization-server": s.authorizationServer,
				}
			},
			resource: "",
		},
		"OpenID Connect": {
			prepare: func(s *server) {
				delete(s.paths, "/.well-known/oauth-authorization-server")
				s.paths["/.well-known/openid-configuration"] = s.authorizationServer
			},
			scope: "tools", resource: "/mcp",
		},
		"issuer with a path": {
			prepare: func(s *server) {
				s.paths = map[string]func() any{
					"/.well-known/oauth-protected-resource/mcp": func() any {
						return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{"https://127.0.0.1:1", s.URL + "/tenant"}}
					},
					"/tenant/.well-known/openid-configuration": func() any {
						return map[string]any{"issuer": s.URL + "/tenant", "token_endpoint": s.URL + "/token"}
					},
				}
			},
			resource: "/mcp",
		},
		"server of 2025-03-26": {
			prepare:  func(s *server) { delete(s.paths, "/.well-known/oauth-protected-resource/mcp") },
			resource: "/mcp",
		},
		"one place fails": {
			prepare: func(s *server) {
				s.paths["/.well-known/oauth-protected-resource"] = s.paths["/.well-known/oauth-protected-resource/mcp"]
				s.paths["/.well-known/oauth-protected-resource/mcp"] = func() any { panic(http.ErrAbortHandler) }
			},
			scope: "tools", resource: "/mcp",
		},
		"every place fails": {
			prepare: func(s *server) {
				s.paths["/.well-known/oauth-protected-resource/mcp"] = func() any { panic(http.ErrAbortHandler) }
			},
			fails: "cannot be reached",
		},
		"nothing": {
			prepare: func(s *server) { s.paths = nil },
			fails:   "no token endpoint was found",
		},
		"another resource": {
			prepare: func(s *server) { s.paths["/.well-known/oauth-protected-resource/mcp"] = resource(s, "/mcp2") },
			fails:   "another resource",
		},
		"another issuer": {
			prepare: func(s *server) {
				s.paths["/.well-known/oauth-authorization-server"] = func() any {
					return map[string]any{"issuer": "https://other.example", "token_endpoint": s.URL + "/token"}
				}
			},
			fails: "another issuer",
		},
		"token endpoint in the clear": {
			prepare: func(s *server) {
				s.paths["/.well-known/oauth-authorization-server"] = func() any {
					return map[string]any{"issuer": s.URL, "token_endpoint": "http://auth.example/token"}
				}
			},
			fails: "the token endpoint that was discovered must be https",
		},
		"metadata in the clear": {
			challenge: `Bearer resource_metadata="http://meta.example/x"`,
			fails:     "OAuth metadata must be https",
		},
		"metadata without end": {
			prepare: func(s *server) {
				s.paths["/.well-known/oauth-protected-resource/mcp"] = func() any { return strings.Repeat("x", 2<<20) }
			},
			fails: "size limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			h := newHandler(t, oauth.Options{})
			source, err := h.TokenSource(t.Context())
			require.NoError(t, err)
			require.Nil(t, source, "nothing is known yet")
			var challenge []string
			if c.challenge != "" {
				challenge = strings.Split(strings.ReplaceAll(c.challenge, "%s", s.URL), "\n")
			}
			err = refused(t, h, s.URL+"/mcp?key=x", "", challenge...)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.Zero(t, s.count(), "the credentials were sent")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.scope, s.first().Get("scope"))
			require.Equal(t, s.URL+c.resource, s.first().Get("resource"))
			asked := s.asked()
			got, err := token(t, h)
			require.NoError(t, err)
			require.NoError(t, refused(t, h, s.URL+"/mcp", got))
			require.Equal(t, asked, s.asked(), "what was discovered is kept")
		})
	}
}

// elsewhere answers as servers on other machines do, each URL with a document.
type elsewhere map[string]string

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := e[r.URL.String()]
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	if !ok {
		resp.StatusCode = http.StatusNotFound
	} else if to, ok := strings.CutPrefix(body, "to "); ok {
		resp.StatusCode, body = http.StatusFound, ""
		resp.Header.Set("Location", to)
	}
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp, nil
}

// A server on another machine leads to nothing on this one.
func TestDiscoveryLeadsNotHere(t *testing.T) {
	t.Parallel()
	const (
		meta, auth = "https://mcp.example/.well-known/oauth-protected-resource/mcp", "https://auth.example/.well-known/oauth-authorization-server"
		token      = "https://auth.example/token"
		granted    = `{"access_token":"token-1","token_type":"bearer"}`
	)
	server := func(issuer, token string) string {
		return `{"issuer":"` + issuer + `","token_endpoint":"` + token + `"}`
	}
	resource := func(issuer string) string {
		return `{"resource":"https://mcp.example/mcp","authorization_servers":["` + issuer + `"]}`
	}
	for name, c := range map[string]struct {
		challenge string
		documents elsewhere
		fails     string
	}{
		"elsewhere": {documents: elsewhere{
			meta: resource("https://auth.example"), auth: "to https://cdn.example/auth", token: granted,
			"https://cdn.example/auth": server("https://auth.example", token),
		}},
		"metadata": {
			challenge: `Bearer resource_metadata="http://127.0.0.1:1/meta"`,
			documents: elsewhere{"http://127.0.0.1:1/meta": resource("https://auth.example"), auth: server("https://auth.example", token), token: granted},
			fails:     "as the server is not",
		},
		"authorization server": {
			documents: elsewhere{
				meta: resource("http://localhost:1"), "http://localhost:1/.well-known/oauth-authorization-server": server("http://localhost:1", token), token: granted,
			},
			fails: "as the server is not",
		},
		"by https": {
			documents: elsewhere{
				meta: resource("https://[::1]:1"), "https://[::1]:1/.well-known/oauth-authorization-server": server("https://[::1]:1", token), token: granted,
			},
			fails: "as the server is not",
		},
		"token endpoint": {
			documents: elsewhere{
				meta: resource("https://auth.example"), auth: server("https://auth.example", "https://LocalHost./token"), "https://LocalHost./token": granted,
			},
			fails: "as the server is not",
		},
		"redirect": {
			documents: elsewhere{
				meta: "to http://127.0.0.1:1/meta", "http://127.0.0.1:1/meta": resource("https://auth.example"), auth: server("https://auth.example", token), token: granted,
			},
			fails: "redirects elsewhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHandler(t, oauth.Options{Client: &http.Client{Transport: c.documents}})
			err := refused(t, h, "https://mcp.example/mcp", "", c.challenge)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
		})
	}
}

func TestTokenEndpointErrors(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	respond := func(code int, body string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, _ int) bool {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for name, c := range map[string]struct {
		answer    func(http.ResponseWriter, int) bool
		message   string
		retryable bool
	}{
		"code":             {respond(400, `{"error":"invalid_scope","error_description":"`+secret+`"}`), "(invalid_scope)", false},
		"unknown code":     {respond(400, `{"error":"`+secret+`"}`), "HTTP status 400", false},
		"429":              {respond(429, secret), "429", true},
		"500":              {respond(500, secret), "500", true},
		"redirect":         {respond(307, ""), "redirects elsewhere", false},
		"no token":         {respond(200, `{"token_type":"bearer"}`), "no bearer token", false},
		"no JSON":          {respond(200, secret), "no bearer token", false},
		"other type":       {respond(200, `{"access_token":"`+secret+`","token_type":"mac"}`), "no bearer token", false},
		"token with break": {respond(200, `{"access_token":"a\nb","token_type":"bearer"}`), "no bearer token", false},
		"without end":      {respond(200, strings.Repeat(secret, 1<<17)), "size limit", false},
		"cut":              {func(http.ResponseWriter, int) bool { panic(http.ErrAbortHandler) }, "cannot be reached", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.answer = c.answer
			h := newHandler(t, oauth.Options{TokenURL: s.URL + "/token?key=" + url.QueryEscape(secret)})
			_, err := token(t, h)
			require.ErrorContains(t, err, c.message)
			var e *oauth.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.retryable, e.Retryable)
			require.Zero(t, elsewhere.Load())
		})
	}
}
