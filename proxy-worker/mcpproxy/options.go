package mcpproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// SessionMode says who shares a session with the upstream.
type SessionMode string

// The modes.
const (
	// SessionAuto shares a session where the protocol has no session state
	// (2026-07-28 and later) and gives each caller its own otherwise.
	SessionAuto SessionMode = "auto"
	// SessionShared uses one session for all calls at once. It is for servers
	// that keep nothing of one call for the next.
	SessionShared SessionMode = "shared"
	// SessionPerCaller uses a session for one call at a time and one caller only.
	// It is kept for that caller; a call without a caller gets a new one, but for
	// lists, which share one.
	SessionPerCaller SessionMode = "caller"
)

// Options say more about a proxy. The zero value is fine.
type Options struct {
	// ClientName is what the upstream is told who calls. Defaults to the name of
	// the proxy.
	ClientName string
	// ProtocolVersion pins the revision of MCP. Defaults to the newest that both
	// sides speak.
	ProtocolVersion string
	// Session says who shares a session. Defaults to [SessionAuto].
	Session SessionMode
	// MaxSessions bounds the sessions per caller, all callers together; up to
	// two for lists that no caller in particular asks for are beside them. A caller that
	// comes when all are busy waits; an idle one makes room. Defaults to 8.
	MaxSessions int
	// SessionIdleTimeout is how long a session per caller is kept without a call.
	// Defaults to 5 minutes.
	SessionIdleTimeout time.Duration
	// StartupTimeout bounds a connection with its handshake, the start of a
	// process included. Defaults to 30 seconds.
	StartupTimeout time.Duration
	// MaxMessageBytes bounds one message, in each direction. Defaults to 16 MiB.
	MaxMessageBytes int64
	// Prefix stands before the name of each tool. Defaults to none.
	Prefix string
	// Allow keeps the tools whose whole upstream name matches one of these;
	// Reject then leaves out what matches one of those. A tool that is left out
	// cannot be called. Defaults to all tools.
	Allow, Reject []*regexp.Regexp
	// Policy holds for the tools without one of their own.
	Policy Policy
	// ToolPolicies hold for single tools, by upstream name. One replaces Policy as
	// a whole: what it leaves open has the default.
	ToolPolicies map[string]Policy
	// ContinueOnError lets a Worker start while the upstream is away. Defaults to
	// false: the Worker does not start then.
	ContinueOnError bool
	// ListRefreshInterval is how often the tools are listed anew at least; an
	// upstream that tells of changes or of a shorter time to live is listed
	// sooner. Defaults to 1 minute.
	ListRefreshInterval time.Duration
	// Logger gets what an operator should know, addresses and error texts of the
	// upstream included, secrets never. Defaults to [slog.Default].
	Logger *slog.Logger
}

const (
	defaultMaxSessions         = 8
	defaultSessionIdleTimeout  = 5 * time.Minute
	defaultStartupTimeout      = 30 * time.Second
	defaultListRefreshInterval = time.Minute
)

func (o *Options) setDefaults(name string) {
	orElse(&o.ClientName, name)
	orElse(&o.Session, SessionAuto)
	orElse(&o.MaxSessions, defaultMaxSessions)
	orElse(&o.SessionIdleTimeout, defaultSessionIdleTimeout)
	orElse(&o.StartupTimeout, defaultStartupTimeout)
	orElse(&o.ListRefreshInterval, defaultListRefreshInterval)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Allow, o.Reject = longest(o.Allow), longest(o.Reject)
	o.ToolPolicies = maps.Clone(o.ToolPolicies)
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check returns every fault at once.
func (o *Options) check() []error {
	var errs []error
	switch o.Session {
	case "", SessionAuto, SessionShared, SessionPerCaller:
	default:
		errs = append(errs, fmt.Errorf("Options.Session: %q, want %q, %q or %q", o.Session, SessionAuto, SessionShared, SessionPerCaller))
	}
	for name, negative := range map[string]bool{
		"MaxSessions":         o.MaxSessions < 0,
		"SessionIdleTimeout":  o.SessionIdleTimeout < 0,
		"StartupTimeout":      o.StartupTimeout < 0,
		"MaxMessageBytes":     o.MaxMessageBytes < 0,
		"ListRefreshInterval": o.ListRefreshInterval < 0,
	} {
		if negative {
			errs = append(errs, fmt.Errorf("%s: it is negative", "Options."+name))
		}
	}
	if err := contract.CheckPrefix(o.Prefix); err != nil {
		errs = append(errs, fmt.Errorf("Options.Prefix: %w", err))
	}
	if slices.Contains(o.Allow, nil) || slices.Contains(o.Reject, nil) {
		errs = append(errs, errors.New("Options.Allow, Options.Reject: an expression is nil"))
	}
	errs = append(errs, o.Policy.check("Options.Policy")...)
	for _, tool := range slices.Sorted(maps.Keys(o.ToolPolicies)) {
		policy := o.ToolPolicies[tool]
		errs = append(errs, policy.check(fmt.Sprintf("Options.ToolPolicies[%q]", tool))...)
	}
	return errs
}

// serves reports whether the filters, anchored, let a tool through.
func (o *Options) serves(upstreamName string) bool {
	matches := func(re *regexp.Regexp) bool {
		at := re.FindStringIndex(upstreamName)
		return at != nil && at[1]-at[0] == len(upstreamName)
	}
	if len(o.Allow) > 0 && !slices.ContainsFunc(o.Allow, matches) {
		return false
	}
	return !slices.ContainsFunc(o.Reject, matches)
}

// longest returns expressions that find their longest match: the whole string, if that
// is one. An anchored expression could mean something else, or be none.
func longest(expressions []*regexp.Regexp) []*regexp.Regexp {
	all := make([]*regexp.Regexp, len(expressions))
	for i, re := range expressions {
		one := *re // the caller's stays as it is
		one.Longest()
		all[i] = &one
	}
	return all
}
