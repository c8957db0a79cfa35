package mcpproxy

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/redact"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Upstream is an MCP server that a proxy calls: [HTTP], [Stdio] or [Transport].
type Upstream struct {
	http      *httpUpstream
	stdio     *stdioUpstream
	transport func(ctx context.Context) (mcp.Transport, error)
}

type httpUpstream struct {
	url     string
	options HTTPOptions
}

type stdioUpstream struct {
	command string
	options StdioOptions
}

// HTTPOptions say more about an upstream behind HTTP. The zero value is fine.
type HTTPOptions struct {
	// Headers go with every request. Those that the protocol owns are refused.
	// They are secret: no log, message or history shows them.
	Headers map[string]string
	// Auth gets a token with the client credentials grant. Defaults to none.
	Auth *ClientCredentials
	// OAuthHandler authorises requests in another way, like the handlers of the MCP
	// Go SDK; not beside Auth. Its Authorize is called for a 401, and for a 403 with
	// the error insufficient_scope, once each in a request. What its errors say is
	// told to nobody, since it may be secret. Defaults to none.
	OAuthHandler auth.OAuthHandler
	// Client sends the requests. Its timeout bounds calls too. A RoundTripper of its
	// own must not send a request again by itself, also not for a 401 (that is for an
	// OAuthHandler): a tool that must not run twice might, or end as outcome unknown.
	// Defaults to one without a timeout.
	Client *http.Client
	// SSE speaks the HTTP+SSE transport of 2024-11-05. Defaults to false:
	// Streamable HTTP.
	SSE bool
}

// ClientCredentials are those of OAuth's client credentials grant (RFC 6749,
// section 4.4), with a secret or a private key.
type ClientCredentials struct {
	ClientID     string
	ClientSecret string
	// PrivateKey takes the place of ClientSecret: the client authenticates by its
	// signature (private_key_jwt, RFC 7523). The key is of RSA with 2048 bits or more,
	// ECDSA on P-256, P-384 or P-521, or Ed25519; it may be one of a KMS. Defaults to
	// none.
	PrivateKey crypto.Signer
	// KeyID is the ID under which the authorization server knows the key ("kid").
	// Defaults to none.
	KeyID string
	// Scopes are all that is asked for. Defaults to what the upstream names, and
	// more where it asks for more (error insufficient_scope).
	Scopes []string
	// TokenURL gives the tokens. Defaults to what the upstream's metadata name: an
	// address on this machine (loopback) only where the upstream's own is one.
	TokenURL string
}

// HTTP is an upstream behind Streamable HTTP, at the URL of its MCP endpoint.
func HTTP(url string, options HTTPOptions) Upstream {
	return Upstream{http: &httpUpstream{url, options}}
}

// StdioOptions say more about an upstream that is a process. The zero value is
// fine.
type StdioOptions struct {
	Args []string
	// Env are variables of the process. They are secret: no log, message or
	// history shows them.
	Env map[string]string
	// InheritEnv names the variables that the process gets from this one, beside
	// Env. Defaults to [DefaultInheritEnv]; an empty list that is not nil is none.
	InheritEnv []string
	// Dir is where the process starts. Defaults to this one's.
	Dir string
}

// DefaultInheritEnv returns the names of the variables that a process inherits
// where nothing is said.
func DefaultInheritEnv() []string {
	return []string{"PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LOGNAME", "TMPDIR"}
}

// Stdio is an upstream that is a child process, one for each session. A command
// without a slash is looked up in PATH.
func Stdio(command string, options StdioOptions) Upstream {
	return Upstream{stdio: &stdioUpstream{command, options}}
}

// Transport is an upstream behind a transport of the MCP Go SDK. The function is
// called for each session.
func Transport(open func(ctx context.Context) (mcp.Transport, error)) Upstream {
	return Upstream{transport: open}
}

// open returns the transport of an upstream, or all that is wrong with it.
func (u Upstream) open(o Options, log *slog.Logger) (mcpclient.Transport, []error) {
	switch {
	case u.http != nil:
		return u.http.open(o, log)
	case u.stdio != nil:
		return u.stdio.open(o, log)
	case u.transport != nil:
		return mcpclient.FromMCP(u.transport, log, nil), nil
	}
	return nil, []error{errors.New("the upstream is none: use HTTP, Stdio or Transport")}
}

func (u *httpUpstream) open(o Options, log *slog.Logger) (mcpclient.Transport, []error) {
	var errs []error
	headers := make(http.Header, len(u.options.Headers))
	var secrets []string // beside the URL's and the headers'
	for name, value := range u.options.Headers {
		headers[name] = []string{value} // as it is spelled: names that differ in case only are a fault
	}
	authorize := u.options.OAuthHandler
	if credentials := u.options.Auth; credentials != nil {
		if authorize != nil {
			errs = append(errs, errors.New("HTTPOptions: both Auth and OAuthHandler are set"))
		}
		options := oauth.Options{
			ClientID:     credentials.ClientID,
			ClientSecret: credentials.ClientSecret,
			PrivateKey:   credentials.PrivateKey,
			KeyID:        credentials.KeyID,
			Scopes:       slices.Clone(credentials.Scopes),
			TokenURL:     credentials.TokenURL,
			Client:       u.options.Client,
		}
		if options.TokenURL != "" { // else the upstream's metadata name the resource
			options.Resource = u.url
		}
		handler, err := oauth.New(options)
		if err != nil {
			errs = append(errs, err)
		} else {
			authorize = handler
		}
		secrets = append(secrets, credentials.ClientSecret)
	}
	open := streamable.New
	if u.options.SSE {
		open = streamable.NewSSE
	}
	transport, err := open(streamable.Options{
		URL: u.url, Headers: headers, OAuth: authorize, Client: u.options.Client,
		MaxMessageBytes: o.MaxMessageBytes, Logger: log, Redact: redact.New(secrets...),
	})
	if err != nil {
		errs = append(errs, err)
	}
	return transport, errs
}

func (u *stdioUpstream) open(o Options, log *slog.Logger) (mcpclient.Transport, []error) {
	var errs []error
	if u.command == "" {
		errs = append(errs, errors.New("the command is empty"))
	}
	environment := map[string]string{}
	inherit := u.options.InheritEnv
	if inherit == nil {
		inherit = DefaultInheritEnv()
	}
	var secrets []string
	for _, key := range inherit {
		if value, ok := os.LookupEnv(key); ok {
			environment[key] = value
			if !slices.Contains(DefaultInheritEnv(), key) {
				secrets = append(secrets, value)
			}
		}
	}
	for key, value := range u.options.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
			errs = append(errs, fmt.Errorf("StdioOptions.Env: %q cannot be a variable", key))
			continue
		}
		environment[key] = value
		secrets = append(secrets, value)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	env := make([]string, 0, len(environment))
	for _, key := range slices.Sorted(maps.Keys(environment)) {
		env = append(env, key+"="+environment[key])
	}
	return stdio.New(stdio.Options{
		Command:         u.command,
		Args:            slices.Clone(u.options.Args),
		Dir:             u.options.Dir,
		Env:             env,
		MaxMessageBytes: o.MaxMessageBytes,
		Logger:          log,
		Redact:          redact.New(secrets...),
	}), nil
}
