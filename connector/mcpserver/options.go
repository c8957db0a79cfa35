package mcpserver

import (
	"log/slog"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
)

// Options configure a [Server]. Services is required; the zero value of every
// other field works.
type Options struct {
	// Services are the Nexus services to serve, in the order in which they own
	// a name that several have.
	Services []catalog.Service

	// Namespace is the namespace of the Temporal client, which does not tell.
	// Defaults to "default". Task lifetimes follow its retention.
	Namespace string

	// Caller names who calls over stdio and in-memory transports. Its hash
	// marks the operation IDs. Empty is an anonymous caller.
	Caller string
	// Principal names who calls over HTTP, "" for an anonymous caller.
	// Defaults to the user ID of the token that auth.RequireBearerToken
	// verified.
	Principal func(*mcp.RequestExtra) string

	// WaitBudget is the longest that one MCP request waits for a result.
	// Defaults to 30 s.
	WaitBudget time.Duration
	// DiscoveryTimeout bounds the manifest of each service. Defaults to 5 s.
	DiscoveryTimeout time.Duration
	// RefreshInterval is how often manifests are read again. Defaults to 30 s.
	RefreshInterval time.Duration

	// DisableTasks never answers with a task. The default is a task for
	// clients that declare the tasks extension, once a call has taken TaskAfter.
	DisableTasks bool
	// TaskAfter defaults to 1 s.
	TaskAfter time.Duration
	// HidePollTools serves no get_operation_result, cancel_operation and
	// list_operations.
	HidePollTools bool

	// MaxCalls is how many calls may be under way at once; one more is refused
	// and nothing is started for it. Defaults to 4096.
	MaxCalls int
	// ProgressInterval is how often a call tells its elapsed time, where the
	// client gave a progress token. Defaults to 5 s.
	ProgressInterval time.Duration
	// KeepAliveInterval is how often a silent HTTP response stream gets a
	// comment. Defaults to 15 s.
	KeepAliveInterval time.Duration

	// AllowHosts are the host names, with or without a port, that the Host
	// header of a request may have beside the loopback names.
	AllowHosts []string
	// AllowOrigins are the origins (scheme://host[:port]) that the Origin header
	// may have beside those on loopback names.
	AllowOrigins []string

	// Implementation is what the server says of itself. Defaults to
	// durable-mcp-connector without a version.
	Implementation *mcp.Implementation
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	duration := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	duration(&o.WaitBudget, 30*time.Second)
	duration(&o.DiscoveryTimeout, 5*time.Second)
	duration(&o.RefreshInterval, 30*time.Second)
	duration(&o.TaskAfter, time.Second)
	duration(&o.ProgressInterval, 5*time.Second)
	duration(&o.KeepAliveInterval, 15*time.Second)
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = 4096
	}
	if o.Principal == nil {
		o.Principal = func(extra *mcp.RequestExtra) string {
			if extra.TokenInfo == nil {
				return ""
			}
			return extra.TokenInfo.UserID
		}
	}
	if o.Implementation == nil {
		o.Implementation = &mcp.Implementation{Name: "durable-mcp-connector", Version: "unknown"}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
