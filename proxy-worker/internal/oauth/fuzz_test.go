package oauth

// Internal tests of what servers write: discovery shows from outside only through
// servers that have TLS.

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// planted stands for what a server repeats of the secrets that it was sent.
const planted = "pl4nted-s3cret"

// FuzzToken: a token fits in a header, ends some day, and no error shows what came.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"a","token_type":"Bearer","expires_in":3600}`, `{"access_token":"a","expires_in":"60"}`, `{"access_token":"a","expires_in":1e400}`,
		`{"access_token":"a\r\nX-Evil: 1"}`, `{"access_token":""}`, `{"access_token":"a","token_type":"mac"}`, `{"access_token":"a","expires_in":-1}`,
		`{"error":"invalid_client","error_description":"` + planted + `"}`, `{"error":"` + planted + `"}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if code := errorCode(raw); code != "" {
			require.Contains(t, codes, code)
		}
		now := time.Now()
		got, err := parseToken(raw, now)
		if err != nil {
			return // its text is a cause, which nobody prints
		}
		require.NotEmpty(t, got.AccessToken)
		for _, c := range []byte(got.AccessToken) {
			require.True(t, c > ' ' && c <= '~')
		}
		require.Equal(t, "Bearer", got.Type())
		if !got.Expiry.IsZero() {
			require.True(t, got.Expiry.After(now) || got.Expiry.Equal(now))
			require.False(t, got.stale.After(got.Expiry))
		}
	})
}

// hostile is a server that answers every request for metadata alike, the first times
// with a redirect.
type hostile struct {
	t                *testing.T
	resource, server []byte
	status           int
	location         string
	requests         int
}

func (h *hostile) RoundTrip(r *http.Request) (*http.Response, error) {
	h.requests++
	require.Equal(h.t, "https", r.URL.Scheme, "a request to %s", r.URL)
	require.False(h.t, isLoopback(r.URL.Hostname()), "a request to %s", r.URL)
	require.Equal(h.t, http.MethodGet, r.Method)
	require.Empty(h.t, r.Header.Get("Authorization"))
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	body := h.server
	switch {
	case h.location != "" && h.requests%5 != 0:
		resp.StatusCode, body = http.StatusFound, nil
		resp.Header.Set("Location", h.location)
	case h.status != 0 && h.requests%2 == 0:
		resp.StatusCode = h.status
	case strings.Contains(r.URL.Path, wellKnownResource):
		body = h.resource
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// FuzzDiscover: whatever a server says of where its tokens are, nothing is asked over a
// plain connection or of this machine, asking ends, and no error shows what came.
func FuzzDiscover(f *testing.F) {
	const (
		resource = `{"resource":"https://example.com/mcp","authorization_servers":["https://auth.example.com/t"],"scopes_supported":["a"]}`
		server   = `{"issuer":"https://auth.example.com/t","token_endpoint":"https://auth.example.com/token","token_endpoint_auth_methods_supported":["client_secret_post"]}`
	)
	for _, challenge := range []string{
		`Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource", scope="a b"`, `Bearer`, `Basic realm="x"`, `Bearer a="`, `Bearer ,,=`, "",
		`bearer resource_metadata="http://evil.com/` + planted + `"`,
	} {
		f.Add(challenge, []byte(resource), []byte(server), uint16(0), "")
	}
	f.Add("", []byte(`{"resource":"https://example.com","authorization_servers":["http://evil.com"]}`), []byte(server), uint16(0), "")
	f.Add("", []byte(`{"resource":"https://example.com","authorization_servers":["https://a/%zz","https://me:pw@a/","https://a?x=`+planted+`"]}`), []byte(`[]`), uint16(503), "")
	f.Add("", []byte(resource), []byte(`{"issuer":"https://auth.example.com/t/","token_endpoint":"http://evil.com/`+planted+`"}`), uint16(404), "")
	f.Add("", []byte(resource), []byte(server), uint16(0), "http://evil.com/"+planted)
	f.Add("", []byte(resource), []byte(server), uint16(429), "/elsewhere")
	f.Add("", []byte(resource), []byte(server), uint16(0), "http://127.0.0.1:1/")
	f.Add(`Bearer resource_metadata="https://localhost/"`, []byte(resource), []byte(server), uint16(0), "")
	f.Fuzz(func(t *testing.T, header string, resource, server []byte, status uint16, location string) {
		transport := &hostile{t: t, resource: resource, server: server, location: location}
		if status != 0 {
			transport.status = 200 + int(status)%400
		}
		h, err := New(Options{ClientID: "id", ClientSecret: planted, Client: &http.Client{Transport: transport}})
		require.NoError(t, err)
		mcp := &url.URL{Scheme: "https", Host: "example.com", Path: "/mcp", User: url.UserPassword("u", planted)}
		c := newChallenge(mcp, http.Header{"Www-Authenticate": {header}})
		found, err := h.discover(t.Context(), c)
		places := 3 + 3*maxServers
		require.LessOrEqual(t, transport.requests, places*(maxRedirects+1))
		if err != nil {
			e := &Error{}
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Message, planted)
			require.NotContains(t, e.Message, "\n")
			return
		}
		require.NoError(t, c.check(found.endpoint.url))
		require.Subset(t, []string{methodBasic, methodPost}, found.endpoint.methods)
	})
}
