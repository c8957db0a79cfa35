package oauth_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

// refuse is an authorization server that grants no token but the first.
func refuse(status int, body string) func(http.ResponseWriter, int) bool {
	return func(w http.ResponseWriter, n int) bool {
		if n == 1 {
			return false
		}
		w.Header().Set("Location", "https://auth.example/token")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// A server whose tokens come from elsewhere by now is asked anew where that is.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone    func(old *server)
		refuses bool // the server refuses the tokens that the old endpoint still grants
	}{
		"unreachable":    {gone: func(old *server) { old.CloseClientConnections(); old.Close() }},
		"not found":      {gone: func(old *server) { old.answer = refuse(404, "") }},
		"redirect":       {gone: func(old *server) { old.answer = refuse(308, "") }},
		"a page":         {gone: func(old *server) { old.answer = refuse(200, "<html>") }},
		"client unknown": {gone: func(old *server) { old.answer = refuse(401, `{"error":"invalid_client"}`) }},
		"scope unknown":  {gone: func(old *server) { old.answer = refuse(400, `{"error":"invalid_scope"}`) }},
		"no such tokens": {gone: func(*server) {}, refuses: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mcp, before, after := newServer(t), newServer(t), newServer(t)
			var at atomic.Pointer[server]
			at.Store(before)
			mcp.paths["/.well-known/oauth-protected-resource/mcp"] = func() any {
				return map[string]any{"resource": mcp.URL + "/mcp", "authorization_servers": []string{at.Load().URL}, "scopes_supported": []string{at.Load().URL}}
			}
			h := newHandler(t, oauth.Options{})
			require.NoError(t, refused(t, h, mcp.URL+"/mcp", ""))
			at.Store(after)
			before.mu.Lock()
			c.gone(before)
			before.mu.Unlock()
			err := refused(t, h, mcp.URL+"/mcp", "token-1")
			if c.refuses {
				require.NoError(t, err)
				require.NoError(t, refused(t, h, mcp.URL+"/mcp", "token-2"))
			} else {
				var e *oauth.Error
				require.ErrorAs(t, err, &e)
				require.True(t, e.Retryable)
				source, err := h.TokenSource(t.Context())
				require.NoError(t, err)
				require.Nil(t, source, "the next request is to lead to the new endpoint")
				require.NoError(t, refused(t, h, mcp.URL+"/mcp", ""))
			}
			require.LessOrEqual(t, before.count(), 2)
			require.Equal(t, 1, after.count())
			require.Equal(t, after.URL, after.first().Get("scope"))
			got, err := token(t, h)
			require.NoError(t, err)
			require.Equal(t, "token-1", got)
		})
	}
}

// Where what is discovered anew does not do either, that is the end.
func TestNotMoved(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer = refuse(404, "")
	h := newHandler(t, oauth.Options{})
	require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
	var e *oauth.Error
	require.ErrorAs(t, refused(t, h, s.URL+"/mcp", "token-1"), &e)
	require.True(t, e.Retryable)
	require.ErrorAs(t, refused(t, h, s.URL+"/mcp", ""), &e)
	require.False(t, e.Retryable)
	require.Equal(t, 3, s.count())
	require.Equal(t, 4, s.asked())
}

// A token endpoint that is configured, or has only a bad moment, stays.
func TestStays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		configured bool
		status     int
	}{
		"configured":  {configured: true, status: 404},
		"unavailable": {status: 503},
		"busy":        {status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.answer = refuse(c.status, "")
			o := oauth.Options{}
			if c.configured {
				o.TokenURL = s.URL + "/token"
			}
			h := newHandler(t, o)
			require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
			asked := s.asked()
			for range 3 {
				var e *oauth.Error
				require.ErrorAs(t, refused(t, h, s.URL+"/mcp", "token-1"), &e)
				require.Equal(t, !c.configured, e.Retryable)
				_, err := token(t, h)
				require.Error(t, err)
			}
			require.Equal(t, asked, s.asked())
		})
	}
}

// A token serves to its end, wherever the next one comes from.
func TestMovedWhileTokenServes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.expires = 2
	gone := refuse(404, "")
	s.answer = func(w http.ResponseWriter, n int) bool { return n == 2 && gone(w, n) }
	h := newHandler(t, oauth.Options{})
	require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
	require.Eventually(t, func() bool {
		source, err := h.TokenSource(t.Context())
		require.NoError(t, err)
		if source == nil {
			return true
		}
		tok, err := source.Token()
		if err == nil { // else it has ended in between
			require.Equal(t, "token-1", tok.AccessToken)
		}
		return false
	}, patience, 20*time.Millisecond)
	require.Equal(t, 2, s.count(), "one attempt to replace it")
	require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
	source, err := h.TokenSource(t.Context())
	require.NoError(t, err)
	require.NotNil(t, source)
	require.Equal(t, 3, s.count())
}

// And what it is good for is asked for anew beside what a call needs more.
func TestMovedBeforeMoreScopes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	gone := refuse(404, "")
	s.answer = func(w http.ResponseWriter, n int) bool { return n == 2 && gone(w, n) }
	h := newHandler(t, oauth.Options{})
	require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
	require.ErrorContains(t, narrow(t, h, s, "token-1", "write"), "404")
	got, err := token(t, h)
	require.NoError(t, err)
	require.Equal(t, "token-1", got)
	require.NoError(t, narrow(t, h, s, "token-1", "write"))
	require.Equal(t, "tools write", s.request(2).Get("scope"))
}
