package redact_test

import (
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/redact"
	"github.com/stretchr/testify/require"
)

func TestNew(t *testing.T) {
	t.Parallel()

	hide := redact.New("secret", "secret-and-more", "abc", "", "-----BEGIN-----\nAAAABBBB\n  CCCCDDDD\r\n--")
	for in, want := range map[string]string{
		"":                             "",
		"nothing":                      "nothing",
		"a secret":                     "a ***",
		"secretsecret":                 "******",
		"x secret-and-more y":          "x *** y",
		"abc is too short":             "abc is too short",
		"key AAAABBBB":                 "key ***",
		"CCCCDDDD -- x":                "*** -- x",
		"-----BEGIN-----\nAAAABBBB\nx": "***\n***\nx",
	} {
		require.Equal(t, want, hide(in))
	}
	require.Equal(t, "abc", redact.New("abc")("abc"))
	require.Equal(t, "abc", redact.New()("abc"))
}

func TestHeader(t *testing.T) {
	t.Parallel()

	hide := redact.New(redact.Header("Bearer t0ken-1")...)
	require.Equal(t, "got *** and ***", hide("got Bearer t0ken-1 and t0ken-1"))
	require.Equal(t, "the Bearer scheme", hide("the Bearer scheme"))
	require.Equal(t, "***", redact.New(redact.Header("plain")...)("plain"))
}

func TestURL(t *testing.T) {
	t.Parallel()

	hide := redact.New(redact.URL("https://user1:p%40ssword@example.com/mcp?api_key=k%2Bey-1&token-2&v=1")...)
	for in, want := range map[string]string{
		"https://user1:p%40ssword@example.com/mcp": "https://***@example.com/mcp",
		"p@ssword":             "***",
		"p%40ssword":           "***",
		"api_key=k+ey-1":       "api_key=***",
		"api_key=k%2Bey-1&v=1": "api_key=***&v=1",
		"token-2":              "***",
		"example.com/mcp":      "example.com/mcp",
	} {
		require.Equal(t, want, hide(in))
	}
	require.Equal(t, []string{"http://a b"}, redact.URL("http://a b"))
	require.Equal(t, "https://example.com", redact.New(redact.URL("https://example.com")...)("https://example.com"))
}
