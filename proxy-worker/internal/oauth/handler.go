package oauth

import (
	"context"
	"crypto"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

const (
	// flightTimeout bounds discovery and token request together.
	flightTimeout = 30 * time.Second
	maxSkew       = 30 * time.Second
	maxBody       = 1 << 20
)

// Options are the options of [New].
type Options struct {
	// ClientID and one of ClientSecret and PrivateKey are the credentials.
	ClientID, ClientSecret string
	// PrivateKey authenticates by a signature (private_key_jwt): RSA, ECDSA on
	// P-256, P-384 or P-521, or Ed25519.
	PrivateKey crypto.Signer
	// KeyID is the ID under which the authorization server knows the key ("kid").
	// Defaults to none.
	KeyID string
	// Scopes are all that is ever asked for. Defaults to what the server asks for,
	// which may become more.
	Scopes []string
	// TokenURL is the token endpoint. Left empty, the server's own metadata leads
	// to it, and so the credentials go where the server says: to this machine
	// (loopback) only where the server is on it. What was discovered is discovered anew
	// once it gives no tokens, or none that the server takes.
	TokenURL string
	// Resource is the server's URL, for the resource parameter (RFC 8707). With
	// discovery it defaults to what the server's metadata says; without, to none.
	Resource string
	// Client sends the requests. Defaults to a client of its own.
	Client *http.Client
}

// Error is the error of a token that was not to be had. Neither text holds a
// secret or what an authorization server wrote.
type Error struct {
	Message   string
	Detail    string // for logs: with the address, without its query
	Retryable bool
	Cause     error // may hold secrets; not printed
	code      string
	moved     bool // perhaps: the token endpoint may be another by now
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Handler implements [auth.OAuthHandler]. It is safe for concurrent use.
type Handler struct {
	options Options
	client  *http.Client
	signer  *signer // nil where there is a secret

	mu       sync.Mutex
	endpoint *endpoint // nil until it is known
	scopes   []string  // those to begin with
	more     []string  // those that calls needed beside them
	resource string
	token    *token
	flight   *flight // the request under way, or nil
}

// token is a token with the time from which on it is better replaced.
type token struct {
	oauth2.Token
	stale time.Time // zero: never
	kept  bool      // its endpoint was known before it
}

// serves reports whether the server still takes the token, by what is known.
func (t *token) serves() bool { return t.fresh() || time.Now().Before(t.Expiry) }

func (t *token) fresh() bool { return t.stale.IsZero() || time.Now().Before(t.stale) }

// flight is one request for a token, which any number of callers wait for.
type flight struct {
	more  []string // scopes that a call has made it ask for beside those before
	done  chan struct{}
	token *token
	err   error
}

// answers reports whether what became of the flight is the answer to a caller, with
// its challenge or none: that other scopes are refused is not.
func (f *flight) answers(c *challenge) bool {
	return f.err == nil || len(f.more) == 0 || c != nil && c.widens && slices.Equal(f.more, c.scopes)
}

var _ auth.OAuthHandler = (*Handler)(nil)

// New returns a handler. It returns an error for credentials that are missing or
// of no use, and for a token endpoint that is neither https nor on this machine.
func New(o Options) (*Handler, error) {
	switch {
	case o.ClientID == "":
		return nil, errors.New("oauth: a client ID is required")
	case o.ClientSecret == "" && o.PrivateKey == nil:
		return nil, errors.New("oauth: a client secret or a private key is required")
	case o.ClientSecret != "" && o.PrivateKey != nil:
		return nil, errors.New("oauth: there are both a client secret and a private key; want one of them")
	}
	o.Scopes = slices.Clone(o.Scopes)
	h := &Handler{options: o}
	if o.PrivateKey != nil {
		var err error
		if h.signer, err = newSigner(o.PrivateKey, o.KeyID); err != nil {
			return nil, errors.New("oauth: the private key " + err.Error())
		}
	}
	if o.Resource != "" {
		u, err := url.Parse(o.Resource)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return nil, errors.New("oauth: the resource must be the server's URL")
		}
		h.options.Resource = canonical(u)
	}
	h.forget()
	if o.TokenURL != "" {
		if err := checkURL(o.TokenURL); err != nil {
			return nil, errors.New("oauth: the token URL " + err.Error())
		}
		h.endpoint = &endpoint{url: o.TokenURL}
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = checkRedirect
	h.client = &client
	return h, nil
}

// forget leaves of what was discovered only what is configured. It is called with mu
// held.
func (h *Handler) forget() {
	h.endpoint, h.scopes, h.resource = nil, h.options.Scopes, h.options.Resource
}

// yields reports whether a source has a token to give, or one to get. It is called
// with mu held.
func (h *Handler) yields() bool { return h.endpoint != nil || h.token != nil && h.token.serves() }

// TokenSource implements [auth.OAuthHandler]. It returns nil while there is no token
// and it is not known where tokens come from: then the server's next 401 leads there.
// The source is for one request, and waits no longer than ctx; the token is shared.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.yields() {
		return nil, nil //nolint:nilnil // as the interface says
	}
	return source{ctx: ctx, handler: h}, nil
}

type source struct {
	ctx     context.Context
	handler *Handler
}

// Token implements [oauth2.TokenSource].
func (s source) Token() (*oauth2.Token, error) {
	h := s.handler
	for {
		h.mu.Lock()
		current := h.token
		if current != nil && (current.fresh() || h.endpoint == nil && current.serves()) {
			h.mu.Unlock()
			return &current.Token, nil
		}
		if h.endpoint == nil && h.flight == nil { // forgotten since there was this source
			h.mu.Unlock()
			return nil, &Error{Message: "where the server's tokens come from is to be discovered anew", Retryable: true}
		}
		f := h.fetch(nil)
		h.mu.Unlock()
		fresh, err := f.wait(s.ctx, nil)
		switch {
		case err == nil && fresh != nil:
			return &fresh.Token, nil
		case current != nil && current.serves():
			return &current.Token, nil
		case err != nil:
			return nil, err
		}
	}
}

// Authorize implements [auth.OAuthHandler]: it gets a new token, after the server
// has refused the one that req had, or has found its scopes too narrow (403). Where
// another request has already got a newer one that may do, that is it.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
	c := newChallenge(req.URL, resp.Header)
	c.widens = resp.StatusCode == http.StatusForbidden
	h.mu.Lock()
	for h.flight != nil { // what it brings may do
		f := h.flight
		h.mu.Unlock()
		if _, err := f.wait(ctx, c); err != nil {
			return err
		}
		h.mu.Lock()
	}
	if h.token != nil {
		newer := req.Header.Get("Authorization") != "Bearer "+h.token.AccessToken
		asked := union(h.scopes, h.more)
		missing := c.widens && len(union(asked, c.scopes)) > len(asked)
		switch {
		case newer && !missing && h.yields(): // the source replaces one that is no longer fresh
			h.mu.Unlock()
			return nil
		case c.widens && len(h.options.Scopes) > 0:
			h.mu.Unlock()
			return &Error{Message: "the token's scopes do not suffice, and others are not configured"}
		case c.widens && !missing:
			h.mu.Unlock()
			return &Error{Message: "the token's scopes do not suffice, and the server asks for no others"}
		case !c.widens:
			if h.token.kept && h.options.TokenURL == "" { // the server may have moved to another endpoint
				h.forget()
			}
			h.token = nil
		}
	}
	f := h.fetch(c)
	h.mu.Unlock()
	_, err := f.wait(ctx, c)
	return err
}

// fetch returns the request for a token that is under way, or starts one. It is
// called with mu held. The request belongs to no caller: one that gives up does
// not take the token from the others.
func (h *Handler) fetch(c *challenge) *flight {
	if h.flight != nil {
		return h.flight
	}
	f := &flight{done: make(chan struct{})}
	if c != nil && c.widens && len(h.options.Scopes) == 0 {
		f.more = c.scopes
	}
	h.flight = f
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), flightTimeout)
		defer cancel()
		f.token, f.err = h.obtain(ctx, c, f.more)
		h.mu.Lock()
		if f.err == nil {
			h.token = f.token
		}
		h.flight = nil
		h.mu.Unlock()
		close(f.done)
	}()
	return f
}

// wait returns what became of the flight for a caller, with its challenge or none;
// neither a token nor an error where it was not about that caller, who asks again.
func (f *flight) wait(ctx context.Context, c *challenge) (*token, error) {
	select {
	case <-f.done:
		if f.answers(c) {
			return f.token, f.err
		}
		return nil, ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// obtain finds the token endpoint unless it is known, and asks it for a token.
func (h *Handler) obtain(ctx context.Context, c *challenge, more []string) (*token, error) {
	h.mu.Lock()
	at, scopes, resource := h.endpoint, h.scopes, h.resource
	widens := len(more) > 0
	more = union(h.more, more) // calls that need what was granted go on beside this one
	h.mu.Unlock()
	known := at != nil
	if !known {
		found, err := h.discover(ctx, c)
		if err != nil {
			return nil, err
		}
		at = found.endpoint
		if len(scopes) == 0 {
			scopes = found.scopes
		}
		if resource == "" {
			resource = found.resource
		}
	}
	got, method, err := h.request(ctx, at, union(scopes, more), resource)
	if e, ok := errors.AsType[*Error](err); ok && e.code == codeInvalidScope && !widens && len(more) > 0 {
		// What it once granted it may take back. A call that needs it asks again.
		more = nil
		got, method, err = h.request(ctx, at, scopes, resource)
	}
	e, _ := errors.AsType[*Error](err)
	moved := e != nil && e.moved && (e.code != codeInvalidScope || !widens)
	if moved && known && h.options.TokenURL == "" {
		h.mu.Lock()
		h.forget()
		h.mu.Unlock()
		e.Retryable = true // once: with what is discovered then
	}
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	got.kept = known
	// Kept once it has worked, with the way of authenticating that did.
	kept := *at
	kept.methods = []string{method}
	h.endpoint, h.scopes, h.more, h.resource = &kept, scopes, more, resource
	return got, nil
}

// union returns the scopes of both, each once: all of a, and of b as far as there are
// not too many.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, scope := range b {
		if len(all) < maxScopes && !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}
