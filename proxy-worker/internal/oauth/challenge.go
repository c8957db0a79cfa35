package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// challenge is what a 401 says about where to go (RFC 9728, section 5.1).
type challenge struct {
	server   *url.URL // the MCP server, without query and user info
	metadata string
	scopes   []string
	widens   bool // the token serves, and its scopes do not suffice
}

func newChallenge(server *url.URL, h http.Header) *challenge {
	c := &challenge{server: &url.URL{Scheme: server.Scheme, Host: server.Host, Path: server.Path}}
	for _, params := range bearer(h) {
		if c.metadata == "" {
			c.metadata = params["resource_metadata"]
		}
		if len(c.scopes) == 0 {
			c.scopes = some(strings.Fields(params["scope"]))
		}
	}
	return c
}

// check returns an error for a URL that the server may not lead to, in words that
// follow its name. An address on this machine (a loopback address) it may only name
// where it is on this machine itself: what listens there may trust whoever reaches it.
func (c *challenge) check(raw string) error {
	err := checkURL(raw)
	if u, _ := url.Parse(raw); isLoopback(c.server.Hostname()) || err == nil && !isLoopback(u.Hostname()) {
		return err
	}
	return errors.New("must be https, not on this machine as the server is not, and without user info")
}

// ScopesInsufficient reports whether a response asks for a token with more scopes
// (RFC 6750, section 3.1).
func ScopesInsufficient(resp *http.Response) bool {
	return resp.StatusCode == http.StatusForbidden && slices.ContainsFunc(bearer(resp.Header), func(params map[string]string) bool {
		return params["error"] == "insufficient_scope"
	})
}

// What is looked at of all that a server may say.
const (
	maxValue  = 8 << 10 // of one header
	maxScopes = 100
)

const spaces = " \t"

// some are the scopes, as far as there are not too many.
func some(scopes []string) []string { return scopes[:min(len(scopes), maxScopes)] }

// bearer returns the parameters of the Bearer challenges in a response's header
// (RFC 9110, section 11.6.1), by lower-case name. The MCP Go SDK's parser returns
// nothing at all where one value is empty or broken; here the others stay.
func bearer(h http.Header) []map[string]string {
	var all []map[string]string
	for _, value := range h.Values("WWW-Authenticate") {
		if len(value) <= maxValue {
			all = append(all, bearerOf(value)...)
		}
	}
	return all
}

func bearerOf(rest string) (all []map[string]string) {
	var params map[string]string // nil while the scheme is another
	for rest = strings.TrimLeft(rest, spaces+","); rest != ""; rest = strings.TrimLeft(rest, spaces+",") {
		var name, value string
		name, rest = cut(rest, spaces+`,="`)
		name, rest = strings.ToLower(name), strings.TrimLeft(rest, spaces)
		if strings.HasPrefix(rest, `"`) {
			return all // where neither a scheme nor a parameter has one
		}
		if !strings.HasPrefix(rest, "=") { // no parameter, so a scheme
			if params = nil; name == "bearer" {
				params = map[string]string{}
				all = append(all, params)
			}
			continue
		}
		if rest = strings.TrimLeft(rest[1:], spaces); strings.HasPrefix(rest, `"`) {
			var ended bool
			if value, rest, ended = unquote(rest); !ended {
				return all
			}
		} else {
			value, rest = cut(rest, spaces+",")
		}
		if params != nil {
			params[name] = value
		}
	}
	return all
}

// cut splits s before the first of some characters.
func cut(s, before string) (string, string) {
	if i := strings.IndexAny(s, before); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// unquote reads the quoted string that s begins with. False is one without an end.
func unquote(s string) (text, rest string, ended bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] == '"' {
			return b.String(), s[i+1:], true
		}
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
