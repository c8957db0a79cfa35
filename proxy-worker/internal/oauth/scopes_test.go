package oauth_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

// narrow tells the handler of a 403 that asks for scopes.
func narrow(t *testing.T, h *oauth.Handler, s *server, used, scope string) error {
	t.Helper()
	return authorize(t, h, http.StatusForbidden, s.URL+"/mcp", used, `Bearer error="insufficient_scope", scope="`+scope+`"`)
}

// first gets a token with the scope "read".
func first(t *testing.T, h *oauth.Handler, s *server) {
	t.Helper()
	require.NoError(t, refused(t, h, s.URL+"/mcp", "", `Bearer scope="read"`))
	require.Equal(t, "read", s.first().Get("scope"))
}

func TestMoreScopes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newHandler(t, oauth.Options{})
	first(t, h, s)
	require.NoError(t, narrow(t, h, s, "token-1", "write admin"))
	require.Equal(t, "read write admin", s.request(1).Get("scope"), "what was granted stays")
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-2", got)
	// A request that went out with the old token has only to go out again.
	require.NoError(t, narrow(t, h, s, "token-1", "write"))
	require.Equal(t, 2, s.count())
	require.NoError(t, narrow(t, h, s, "token-1", "delete"))
	require.Equal(t, "read write admin delete", s.request(2).Get("scope"))
	// And the next token has them too.
	require.NoError(t, refused(t, h, s.URL+"/mcp", "token-3", `Bearer scope="read"`))
	require.Equal(t, "read write admin delete", s.request(3).Get("scope"))
}

// The token that another request got in the meantime may have become stale since. Its
// scopes are what was missing all the same.
func TestMoreScopesOfAStaleToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.expires = 0.000001
	h := newHandler(t, oauth.Options{})
	first(t, h, s)
	require.NoError(t, narrow(t, h, s, "token-1", "write"))
	require.NoError(t, narrow(t, h, s, "token-1", "write"))
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-3", got)
	require.Equal(t, "read write", s.request(2).Get("scope"))
}

func TestNoMoreScopes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configured []string
		asked      string
		message    string
	}{
		"the same":   {asked: "read", message: "asks for no others"},
		"none":       {asked: "", message: "asks for no others"},
		"configured": {configured: []string{"read"}, asked: "write", message: "not configured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			h := newHandler(t, oauth.Options{Scopes: c.configured})
			first(t, h, s)
			err := narrow(t, h, s, "token-1", c.asked)
			require.ErrorContains(t, err, c.message)
			var e *oauth.Error
			require.ErrorAs(t, err, &e)
			require.False(t, e.Retryable)
			require.Equal(t, 1, s.count())
			got, err := token(t, h)
			require.NoError(t, err)
			require.Equal(t, "token-1", got, "it serves the other calls")
		})
	}
}

// Scopes that are not granted take nothing from the calls that do without them.
func TestMoreScopesRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, n int) bool {
		if n != 2 {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_scope"}`)
		return true
	}
	h := newHandler(t, oauth.Options{})
	first(t, h, s)
	require.ErrorContains(t, narrow(t, h, s, "token-1", "write"), "invalid_scope")
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-1", got)
	asked := s.asked()
	require.NoError(t, refused(t, h, s.URL+"/mcp", "token-1"))
	require.Equal(t, "read", s.request(2).Get("scope"))
	require.Equal(t, asked, s.asked(), "what was discovered is kept")
}

// A server that takes back what it granted gets a request for what it began with, once.
func TestMoreScopesTakenBack(t *testing.T) {
	t.Parallel()
	var granted, base atomic.Bool
	granted.Store(true)
	base.Store(true)
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, n int) bool {
		if scope := s.requests[n-1].Get("scope"); scope == "read" && base.Load() || scope != "read" && granted.Load() {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_scope"}`)
		return true
	}
	h := newHandler(t, oauth.Options{})
	first(t, h, s)
	require.NoError(t, narrow(t, h, s, "token-1", "write"))
	granted.Store(false)
	require.NoError(t, refused(t, h, s.URL+"/mcp", "token-2", `Bearer scope="read"`))
	require.Equal(t, 4, s.count())
	require.Equal(t, "read write", s.request(2).Get("scope"))
	require.Equal(t, "read", s.request(3).Get("scope"))
	// A call that needs more asks for it again, and takes nothing from the others.
	require.ErrorContains(t, narrow(t, h, s, "token-4", "write"), "invalid_scope")
	require.Equal(t, 5, s.count())
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-4", got)
	granted.Store(true)
	require.NoError(t, narrow(t, h, s, "token-4", "write"))
	require.Equal(t, "read write", s.request(5).Get("scope"))
	// Where nothing is granted there is no third request.
	granted.Store(false)
	base.Store(false)
	require.ErrorContains(t, refused(t, h, s.URL+"/mcp", "token-6", `Bearer scope="read"`), "invalid_scope")
	require.Equal(t, 8, s.count())
	base.Store(true)
	require.NoError(t, refused(t, h, s.URL+"/mcp", "", `Bearer scope="read"`))
	require.Equal(t, "read", s.request(s.count()-1).Get("scope"))
}

// Calls that need different scopes at once end with a token for all of them.
func TestMoreScopesAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newHandler(t, oauth.Options{})
	first(t, h, s)
	wanted := []string{"a", "b", "c", "d", "e", "f"}
	var wg sync.WaitGroup
	for range 4 {
		for _, scope := range wanted {
			wg.Go(func() {
				if err := narrow(t, h, s, "token-1", scope); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.NoError(t, refused(t, h, s.URL+"/mcp", "none"))
	require.LessOrEqual(t, s.count(), 1+len(wanted), "a request for each scope at most")
	require.NoError(t, narrow(t, h, s, "none", strings.Join(wanted, " ")))
	last := strings.Fields(s.request(s.count() - 1).Get("scope"))
	require.ElementsMatch(t, append(wanted, "read"), last)
}

// However many scopes a server names, few are asked for.
func TestTooManyScopes(t *testing.T) {
	t.Parallel()
	numbered := func(from, to int) (scopes []string) {
		for n := from; n < to; n++ {
			scopes = append(scopes, fmt.Sprint("s", n))
		}
		return scopes
	}
	asked := func(s *server) []string { return strings.Fields(s.request(s.count() - 1).Get("scope")) }
	t.Run("metadata", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.paths["/.well-known/oauth-protected-resource/mcp"] = func() any {
			return map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": numbered(0, 1000)}
		}
		require.NoError(t, refused(t, newHandler(t, oauth.Options{}), s.URL+"/mcp", ""))
		require.Equal(t, numbered(0, 100), asked(s))
	})
	t.Run("challenge", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		require.NoError(t, refused(t, newHandler(t, oauth.Options{}), s.URL+"/mcp", "", `Bearer scope="`+strings.Join(numbered(0, 1000), " ")+`"`))
		require.Equal(t, numbered(0, 100), asked(s))
	})
	t.Run("more and more", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		h := newHandler(t, oauth.Options{})
		first(t, h, s)
		require.NoError(t, narrow(t, h, s, "token-1", strings.Join(numbered(0, 60), " ")))
		require.NoError(t, narrow(t, h, s, "token-2", strings.Join(numbered(60, 120), " ")))
		require.Equal(t, append([]string{"read"}, numbered(0, 99)...), asked(s))
		require.ErrorContains(t, narrow(t, h, s, "token-3", "another"), "asks for no others")
		require.Equal(t, 3, s.count())
	})
}

// answers are those of a token endpoint in the test's own process: a bubble knows when
// all wait for it.
type answers func(form url.Values) (int, string)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	status, body := a(r.PostForm)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// That more scopes are refused is told to the call that needs them, not to those which
// wait for a token beside it.
func TestMoreScopesRefusedBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		release := make(chan struct{})
		h := newHandler(t, oauth.Options{TokenURL: "https://auth.example/token", Client: &http.Client{Transport: answers(func(form url.Values) (int, string) {
			asked = append(asked, form.Get("scope"))
			if form.Get("scope") == "" {
				return http.StatusOK, `{"access_token":"token-1"}`
			}
			<-release
			return http.StatusBadRequest, `{"error":"invalid_scope"}`
		})}})
		source, err := h.TokenSource(t.Context())
		require.NoError(t, err)
		const mcp, challenge = "https://mcp.example/mcp", `Bearer error="insufficient_scope", scope="write"`
		var wg sync.WaitGroup
		var refusals [2]error
		for n := range refusals {
			wg.Go(func() { refusals[n] = authorize(t, h, http.StatusForbidden, mcp, "", challenge) })
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		var other, plain, left error
		var got *oauth2.Token
		wg.Go(func() { got, plain = source.Token() })
		wg.Go(func() { other = refused(t, h, mcp, "") })
		wg.Go(func() {
			source, _ := h.TokenSource(gone)
			_, left = source.Token()
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.ErrorIs(t, left, context.Canceled)
		close(release)
		wg.Wait()
		for _, err := range refusals {
			require.ErrorContains(t, err, "invalid_scope")
		}
		require.NoError(t, plain)
		require.NoError(t, other)
		require.Equal(t, "token-1", got.AccessToken)
		require.Equal(t, []string{"write", ""}, asked)
	})
}
