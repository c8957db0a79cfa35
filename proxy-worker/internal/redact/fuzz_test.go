package redact_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/redact"
)

// FuzzNew: whatever stands around them, no secret is left, and a text without one
// stays as it is.
func FuzzNew(f *testing.F) {
	for _, seed := range [][3]string{
		{"abcd", "cdef", "abcdef abcd cdef"}, {"line one\nline two", "two", "one: line two"}, {"aaaa", "aaaaa", "aaaaaaaaaaa"}, {"", "ab", "abab"}, {"\xff\xfe\xfd\xfc", " abcd ", "\xff\xfe\xfd\xfcabcd"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, one, two, text string) {
		if strings.Contains(one+two, "*") {
			return // the mark could make a part of such a secret
		}
		clean := redact.New(one, two)
		for _, input := range []string{text, text + one + text + two, one + one + two + two} {
			got := clean(input)
			for _, secret := range []string{one, two} {
				if len(secret) >= 4 {
					require.NotContains(t, got, secret)
				}
				for line := range strings.Lines(secret) {
					if line = strings.TrimSpace(line); len(line) >= 4 {
						require.NotContains(t, got, line)
					}
				}
			}
			if !strings.Contains(got, redact.Mark) {
				require.Equal(t, input, got)
			}
		}
	})
}

// FuzzURL: what is secret in a URL is known, as it is written and as it is meant.
func FuzzURL(f *testing.F) {
	for _, seed := range [][2]string{{"user", "p@ss word"}, {"", "key"}, {"a:b", "%zz"}, {"\x00", "ünï"}, {"token", ""}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, secret string) {
		redact.URL(secret)
		redact.Header(secret)
		written := (&url.URL{
			Scheme: "https", Host: "example.com", Path: "/", User: url.UserPassword(name, secret), RawQuery: url.Values{name: {secret}}.Encode(),
		}).String()
		clean := redact.New(append(redact.URL(written), redact.Header("Bearer "+secret)...)...)
		if len(secret) < 4 || strings.Contains(secret, "*") || strings.Contains("https://example.com/", secret) {
			return
		}
		for _, text := range []string{written, secret, "Bearer " + secret, url.QueryEscape(secret)} {
			require.NotContains(t, clean(text), secret)
		}
	})
}
