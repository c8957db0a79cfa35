package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// The ways to authenticate at a token endpoint (RFC 8414, section 2).
const (
	methodBasic      = "client_secret_basic"
	methodPost       = "client_secret_post"
	methodPrivateKey = "private_key_jwt"
)

// endpoint is a token endpoint and the ways to authenticate that it takes, in the
// order to try them; none stated is all that the credentials are good for.
type endpoint struct {
	url       string
	issuer    string // empty where it was not discovered
	methods   []string
	algorithm string // of signatures; empty is the key's usual one
}

// methods are the ways to authenticate with the credentials that there are, in the
// order to try them. Basic first: RFC 6749 has every server take it.
func (h *Handler) methods() []string {
	if h.signer != nil {
		return []string{methodPrivateKey}
	}
	return []string{methodBasic, methodPost}
}

// codes are the errors of a token endpoint that may be repeated: those of
// RFC 6749, section 5.2, and RFC 8707. Anything else it says could be anything.
var codes = []string{
	"invalid_request", codeInvalidClient, "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", codeInvalidScope, "invalid_target",
}

const (
	codeInvalidClient = "invalid_client"
	codeInvalidScope  = "invalid_scope"
)

// request asks for a token, and returns also how the client was authenticated.
func (h *Handler) request(ctx context.Context, at *endpoint, scopes []string, resource string) (*token, string, error) {
	methods := at.methods
	if len(methods) == 0 {
		methods = h.methods()
	}
	var first error
	for _, method := range methods {
		got, rejected, err := h.post(ctx, at, method, scopes, resource)
		if err == nil {
			return got, method, nil
		}
		first = cmp.Or(first, err)
		if !rejected {
			return nil, "", err
		}
	}
	return nil, "", first
}

// post sends one token request. Rejected says that the endpoint did not take the
// client's authentication, which the other way may mend.
func (h *Handler) post(ctx context.Context, at *endpoint, method string, scopes []string, resource string) (t *token, rejected bool, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if resource != "" {
		form.Set("resource", resource)
	}
	switch method {
	case methodPost:
		form.Set("client_id", h.options.ClientID)
		form.Set("client_secret", h.options.ClientSecret)
	case methodPrivateKey:
		// The issuer is whom it is for; the endpoint stands for one that is not known.
		assertion, err := h.signer.assertion(at.algorithm, h.options.ClientID, cmp.Or(at.issuer, at.url), time.Now())
		if err != nil { // a key may be that of a service
			return nil, false, &Error{Message: "the private key could not sign the token request", Retryable: true, Cause: err}
		}
		form.Set("client_id", h.options.ClientID)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url, strings.NewReader(form.Encode())) //nolint:gosec // the URL was checked when it was configured or discovered
	if err != nil {
		return nil, false, &Error{Message: "the token endpoint's URL is invalid", Cause: err}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if method == methodBasic {
		// Form-encoded first (RFC 6749, section 2.3.1).
		req.SetBasicAuth(url.QueryEscape(h.options.ClientID), url.QueryEscape(h.options.ClientSecret))
	}
	resp, err := h.client.Do(req) //nolint:gosec // as above
	if err != nil {
		return nil, false, unreachable("the token endpoint cannot be reached", at.url, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := readAll(resp.Body)
	if err != nil {
		return nil, false, unreachable("the token endpoint's answer cannot be read", at.url, err)
	}
	if resp.StatusCode != http.StatusOK {
		code := errorCode(raw)
		e := &Error{
			Message:   "the token endpoint answers with HTTP status " + strconv.Itoa(resp.StatusCode),
			Detail:    place(at.url),
			Retryable: resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests,
			code:      code,
		}
		e.moved = !e.Retryable
		if code != "" {
			e.Message += " (" + code + ")"
		}
		return nil, resp.StatusCode == http.StatusUnauthorized || code == codeInvalidClient, e
	}
	t, err = parseToken(raw, time.Now())
	if err != nil {
		return nil, false, &Error{Message: "the token endpoint's answer holds no bearer token", Detail: place(at.url), Cause: err, moved: true}
	}
	return t, false, nil
}

// parseToken reads a token response (RFC 6749, section 5.1).
func parseToken(raw []byte, now time.Time) (*token, error) {
	var body struct {
		AccessToken string      `json:"access_token"`
		TokenType   string      `json:"token_type"`
		ExpiresIn   json.Number `json:"expires_in"` // some servers send it as a string
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	printable := !strings.ContainsFunc(body.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' })
	if body.AccessToken == "" || !printable || body.TokenType != "" && !strings.EqualFold(body.TokenType, "bearer") {
		return nil, errNoToken
	}
	t := &token{Token: oauth2.Token{AccessToken: body.AccessToken, TokenType: "Bearer"}}
	if seconds, err := strconv.ParseFloat(body.ExpiresIn.String(), 64); err == nil && seconds > 0 {
		const longest = 10 * 365 * 24 * time.Hour
		life := time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
		t.Expiry = now.Add(life)
		t.stale = t.Expiry.Add(-min(maxSkew, life/10))
	}
	return t, nil
}

// errorCode reads the code of an error response, if it is one that is known.
func errorCode(raw []byte) string {
	var body struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil || !slices.Contains(codes, body.Error) {
		return ""
	}
	return body.Error
}

// readAll reads a body of at most maxBody.
func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(raw) > maxBody {
		err = errTooLarge
	}
	return raw, err
}
