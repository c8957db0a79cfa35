package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var (
	errTooLarge = errors.New("oauth: over the size limit")
	errNoToken  = errors.New("oauth: no bearer token")
	errRedirect = errors.New("oauth: a redirect that is not followed")
)

const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
	wellKnownOpenID   = "/.well-known/openid-configuration"

	maxServers   = 3 // authorization servers of one resource that are asked
	maxRedirects = 3
)

// found is what discovery found.
type found struct {
	endpoint *endpoint
	scopes   []string
	resource string
}

// discover finds the token endpoint of the server that sent a challenge: over the
// metadata of the resource (RFC 9728), then that of its authorization server
// (RFC 8414, OpenID Connect Discovery). A server without the former is taken to be
// its own authorization server, as of 2025-03-26. Only a server on this machine leads
// to addresses on this machine.
func (h *Handler) discover(ctx context.Context, c *challenge) (*found, error) {
	resource, err := h.resourceMetadata(ctx, c)
	if err != nil {
		return nil, err
	}
	f := &found{scopes: some(resource.Scopes), resource: resource.Resource}
	if len(c.scopes) > 0 && !c.widens {
		f.scopes = c.scopes
	}
	var last error
	for _, issuer := range resource.Servers[:min(len(resource.Servers), maxServers)] {
		if f.endpoint, err = h.serverMetadata(ctx, c, issuer); err == nil {
			return f, nil
		}
		last = err
	}
	return nil, last
}

type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

func (h *Handler) resourceMetadata(ctx context.Context, c *challenge) (*resourceMetadata, error) {
	root := url.URL{Scheme: c.server.Scheme, Host: c.server.Host}
	places := []string{root.String() + wellKnownResource}
	if path := strings.TrimSuffix(c.server.EscapedPath(), "/"); path != "" {
		places = slices.Insert(places, 0, root.String()+wellKnownResource+path)
	}
	if c.metadata != "" {
		places = slices.Insert(places, 0, c.metadata)
	}
	var last error
	for _, place := range places {
		var m resourceMetadata
		ok, err := h.metadata(ctx, c, place, &m)
		if err != nil && !isRetryable(err) {
			return nil, err
		}
		if !ok {
			last = cmp.Or(last, err) // another place may do
			continue
		}
		// Metadata of another resource would have our token made out for that one.
		if !covers(m.Resource, c.server) {
			return nil, &Error{Message: "the server's OAuth metadata is about another resource"}
		}
		if len(m.Servers) == 0 {
			return nil, &Error{Message: "the server's OAuth metadata names no authorization server"}
		}
		return &m, nil
	}
	if last != nil {
		return nil, last
	}
	return &resourceMetadata{Resource: c.server.String(), Servers: []string{root.String()}}, nil
}

// covers reports whether the resource is the server, or a path above it.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Scheme != server.Scheme || !strings.EqualFold(u.Host, server.Host) {
		return false
	}
	path := strings.TrimSuffix(u.Path, "/")
	return server.Path == path || strings.HasPrefix(server.Path, path+"/") || path == "" && server.Path == ""
}

func (h *Handler) serverMetadata(ctx context.Context, c *challenge, issuer string) (*endpoint, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, &Error{Message: "the authorization server that the server names is no URL"}
	}
	if err := c.check(issuer); err != nil {
		return nil, &Error{Message: "the authorization server that the server names " + err.Error()}
	}
	root := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + wellKnownServer + path, root + wellKnownOpenID + path}
	if path != "" {
		places = append(places, root+path+wellKnownOpenID)
	}
	var last error
	for _, place := range places {
		var m struct {
			Issuer        string   `json:"issuer"`
			TokenEndpoint string   `json:"token_endpoint"`
			Methods       []string `json:"token_endpoint_auth_methods_supported"`
			Algorithms    []string `json:"token_endpoint_auth_signing_alg_values_supported"`
		}
		ok, err := h.metadata(ctx, c, place, &m)
		if err != nil && !isRetryable(err) {
			return nil, err
		}
		if !ok {
			last = cmp.Or(last, err) // another place may do
			continue
		}
		if strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return nil, &Error{Message: "the authorization server's metadata is about another issuer", Detail: root}
		}
		if err := c.check(m.TokenEndpoint); err != nil {
			return nil, &Error{Message: "the token endpoint that was discovered " + err.Error(), Detail: root}
		}
		at := &endpoint{url: m.TokenEndpoint, issuer: m.Issuer}
		for _, method := range h.methods() {
			if slices.Contains(m.Methods, method) {
				at.methods = append(at.methods, method)
			}
		}
		if h.signer != nil {
			at.algorithm = h.signer.pick(m.Algorithms)
		}
		switch {
		case len(m.Methods) > 0 && len(at.methods) == 0 && h.signer != nil:
			return nil, &Error{Message: "the authorization server takes no signature of a private key (private_key_jwt)", Detail: root}
		case len(m.Methods) > 0 && len(at.methods) == 0:
			return nil, &Error{Message: "the authorization server takes no client secret", Detail: root}
		case h.signer != nil && at.algorithm == "":
			return nil, &Error{Message: "the authorization server takes no signatures of this kind of private key", Detail: root}
		}
		return at, nil
	}
	if last != nil {
		return nil, last
	}
	return nil, &Error{Message: "no token endpoint was found; state the token URL", Detail: root}
}

// metadata reads a JSON document into v. False is a document that is not there.
func (h *Handler) metadata(ctx context.Context, c *challenge, from string, v any) (bool, error) {
	if err := c.check(from); err != nil {
		return false, &Error{Message: "the URL of the OAuth metadata " + err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil) //nolint:gosec // where the server says is where its metadata is; nothing secret goes there
	if err != nil {
		return false, &Error{Message: "the URL of the OAuth metadata is invalid", Cause: err}
	}
	req.Header.Set("Accept", "application/json")
	resp, err := h.client.Do(req) //nolint:gosec // as above
	if err != nil {
		return false, unreachable("the OAuth metadata cannot be reached", from, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	switch code := resp.StatusCode; {
	case code >= 500 || code == http.StatusTooManyRequests:
		return false, &Error{Message: "the OAuth metadata has HTTP status " + strconv.Itoa(code), Detail: place(from), Retryable: true}
	case code != http.StatusOK:
		return false, nil
	}
	raw, err := readAll(resp.Body)
	if err != nil {
		return false, unreachable("the OAuth metadata cannot be read", from, err)
	}
	if json.Unmarshal(raw, v) != nil {
		return false, nil // a page that is there for every path
	}
	return true, nil
}

func isRetryable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Retryable
}

// checkRedirect follows redirects of metadata, to this machine only from there, and
// none of a request that has the credentials in it.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := challenge{server: via[0].URL}
	if via[0].Method != http.MethodGet || len(via) > maxRedirects || from.check(req.URL.String()) != nil {
		return errRedirect
	}
	return nil
}

// CheckTokenURL returns an error for a URL that no secret may be sent to, in words
// that follow its name.
func CheckTokenURL(raw string) error { return checkURL(raw) }

// checkURL returns an error for a URL that is neither https nor on this machine.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	if err == nil && u.Host != "" && u.User == nil {
		if u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()) {
			return nil
		}
	}
	return errors.New("must be https, or http on this machine, without user info")
}

// isLoopback reports whether a host is this machine, by its name.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || err == nil && (addr.IsLoopback() || addr.IsUnspecified())
}

// canonical is a server's URL as the resource parameter has it.
func canonical(u *url.URL) string {
	return (&url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path}).String()
}

// place is what may be said of an address in a log.
func place(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// unreachable is the error of a request without a response. What net/http says
// may repeat the whole address; of its error only the kind is told.
func unreachable(message, to string, err error) *Error {
	e := &Error{Message: message, Detail: place(to), Retryable: !errors.Is(err, errTooLarge) && !errors.Is(err, errRedirect), Cause: err, moved: true}
	if errors.Is(err, errTooLarge) {
		e.Message += ": it is over the size limit"
	} else if errors.Is(err, errRedirect) {
		e.Message += ": it redirects elsewhere"
	} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		e.Message += " in time"
	}
	return e
}
