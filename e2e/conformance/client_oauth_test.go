package conformance_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The proxy itself takes client credentials: nobody sits at it. These handlers are
// what a program with a proxy brings where an authorization server wants another
// grant.

// person gets tokens with an authorization code, from somebody who always consents:
// the suite's authorization server shows no page and redirects at once.
func person(a arrival) (auth.OAuthHandler, error) {
	const redirect = "http://localhost:3000/callback"
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                    redirect,
		AuthorizationCodeFetcher:       consent,
		RequestRefreshToken:            true,
		ClientIDMetadataDocumentConfig: &auth.ClientIDMetadataDocumentConfig{URL: "https://conformance-test.local/client-metadata.json"},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "durable-mcp", RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
	}
	if a.Context.ClientID != "" {
		config.PreregisteredClient = credentials(a.Context.ClientID, a.Context.ClientSecret)
	}
	return auth.NewAuthorizationCodeHandler(config)
}

func credentials(id, secret string) *oauthex.ClientCredentials {
	return &oauthex.ClientCredentials{ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}}
}

func consent(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	q := to.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// assertion gets tokens for what somebody else asserts of the client (RFC 7523,
// section 2.1).
type assertion struct {
	client *oauthex.ClientCredentials
	// obtain gets the assertion for an authorization server.
	obtain func(ctx context.Context, resource, issuer string) (string, error)

	mu     sync.Mutex
	source oauth2.TokenSource
}

// workload has the assertion that a platform gives to what runs on it.
func workload(a arrival) (auth.OAuthHandler, error) {
	return &assertion{
		client: &oauthex.ClientCredentials{ClientID: a.Context.ClientID},
		obtain: func(context.Context, string, string) (string, error) { return a.Context.WorkloadToken, nil },
	}, nil
}

// employee has the assertion of an enterprise's identity provider, which knows them.
func employee(a arrival) (auth.OAuthHandler, error) {
	return &assertion{
		client: credentials(a.Context.ClientID, a.Context.ClientSecret),
		obtain: func(ctx context.Context, resource, issuer string) (string, error) {
			token, err := oauthex.ExchangeToken(ctx, a.Context.IDPTokenEndpoint, &oauthex.TokenExchangeRequest{
				RequestedTokenType: oauthex.TokenTypeIDJAG, Audience: issuer, Resource: resource,
				SubjectToken: a.Context.IDPToken, SubjectTokenType: oauthex.TokenTypeIDToken,
			}, &oauthex.ClientCredentials{ClientID: a.Context.IDPClientID}, http.DefaultClient)
			if err != nil {
				return "", err
			}
			return token.AccessToken, nil
		},
	}, nil
}

func (h *assertion) TokenSource(context.Context) (oauth2.TokenSource, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.source, nil
}

func (h *assertion) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	u := *req.URL
	u.Path = "/.well-known/oauth-protected-resource" + u.Path
	m, err := oauthex.GetProtectedResourceMetadata(ctx, u.String(), req.URL.String(), http.DefaultClient)
	if err != nil {
		return err
	}
	if len(m.AuthorizationServers) == 0 {
		return errors.New("the metadata names no authorization server")
	}
	server, err := auth.GetAuthServerMetadata(ctx, m.AuthorizationServers[0], http.DefaultClient)
	if err != nil || server == nil {
		return errors.Join(errors.New("there is no metadata of the authorization server"), err)
	}
	asserted, err := h.obtain(ctx, m.Resource, server.Issuer)
	if err != nil {
		return err
	}
	config := &clientcredentials.Config{
		ClientID: h.client.ClientID, TokenURL: server.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams,
		EndpointParams: url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {asserted}, "resource": {m.Resource},
		},
	}
	if h.client.ClientSecretAuth != nil {
		config.ClientSecret, config.AuthStyle = h.client.ClientSecretAuth.ClientSecret, oauth2.AuthStyleInHeader
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.source = config.TokenSource(context.Background())
	return nil
}
