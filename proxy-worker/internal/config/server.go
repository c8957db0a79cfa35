package config

import (
	"errors"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Server is one server of the file.
type Server struct {
	// Key is the entry's key, Path where it is, for messages.
	Key, Path string
	// Service is the Nexus service name.
	Service   string
	Transport Transport
	// Command and Stdio are those of a child process, URL and HTTP of the others.
	Command string
	Stdio   mcpproxy.StdioOptions
	URL     string
	HTTP    mcpproxy.HTTPOptions
	// Options hold what the file says, and zero where it does not.
	Options mcpproxy.Options

	prefixFromKey bool
}

// Upstream is how the proxy reaches the server.
func (s *Server) Upstream() mcpproxy.Upstream {
	if s.Transport == Stdio {
		return mcpproxy.Stdio(s.Command, s.Stdio)
	}
	return mcpproxy.HTTP(s.URL, s.HTTP)
}

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http" // Streamable HTTP
	SSE   Transport = "sse"  // HTTP+SSE of 2024-11-05
)

var transports = map[string]Transport{
	"stdio": Stdio, "http": HTTP, "streamable-http": HTTP, "streamable_http": HTTP, "sse": SSE,
}

var serverKeys = []string{
	"command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled",
	"prefix", "tool_filters", "startup_timeout", "continue_on_error", "auth",
	"service", "protocol_version", "session", "max_sessions", "session_idle_timeout", "inherit_env", "max_message_bytes",
	"policy", "tool_policies",
}

// sseRevision is the revision that has the transport sse.
const sseRevision = "2024-11-05"

// server reads an entry.
func (o object) server(key string, defaults Options) Server {
	s := Server{Key: key, Path: o.path, Service: key, Transport: o.transport()}
	p := &s.Options
	p.ClientName, p.ContinueOnError = key, defaults.ContinueOnError
	if v, ok := o.boolean("continue_on_error"); ok {
		p.ContinueOnError = v
	}
	switch s.Transport {
	case Stdio:
		o.stdio(&s, defaults.Home)
	case HTTP, SSE:
		o.http(&s)
	}
	o.names(&s, defaults.PrefixWithServerName)
	if t := o.filled("protocol_version"); t.present {
		p.ProtocolVersion = t.value
		switch {
		case !slices.Contains(mcpclient.Versions(), t.value):
			o.reject(t, "%q, want one of %s", t.node.text, strings.Join(mcpclient.Versions(), ", "))
		case s.Transport == SSE && t.value != sseRevision:
			o.reject(t, "the transport sse is that of %s", sseRevision)
		}
	}
	p.Session = mcpproxy.SessionMode(o.choice("session",
		string(mcpproxy.SessionAuto), string(mcpproxy.SessionShared), string(mcpproxy.SessionPerCaller)))
	p.MaxSessions = int(o.count("max_sessions", 10_000))
	p.SessionIdleTimeout = o.duration("session_idle_timeout")
	p.StartupTimeout = o.duration("startup_timeout")
	p.MaxMessageBytes = o.count("max_message_bytes", 1<<40)
	if filters, ok := o.sub("tool_filters", "allowed", "rejected"); ok {
		p.Allow, p.Reject = filters.patterns("allowed"), filters.patterns("rejected")
		if filters.has("allowed") && len(p.Allow) == 0 {
			filters.warn("allowed", "it is empty, so every tool is allowed")
		}
	}
	if policy, ok := o.sub("policy", policyKeys...); ok {
		p.Policy = policy.policy()
	}
	if policies, ok := o.sub("tool_policies"); ok {
		p.ToolPolicies = policies.policies()
	}
	return s
}

// transport is what command, url and type say together; "" where they do not.
func (o object) transport() Transport {
	var stated Transport
	var by string
	for _, key := range []string{"type", "transport"} {
		t := o.text(key)
		if !t.present {
			continue
		}
		tr, ok := transports[t.value]
		switch {
		case !ok:
			o.reject(t, "%q, want stdio, http (also streamable-http, streamable_http) or sse", t.node.text)
		case stated != "" && stated != tr:
			o.reject(t, "%q contradicts %q under type", t.node.text, by)
		default:
			stated, by = tr, t.node.text
		}
	}
	command, address := o.has("command"), o.has("url")
	switch {
	case command && address:
		o.faults.add(o.path, o.node, "it has both command and url; want one of them")
		return ""
	case !command && !address:
		o.faults.add(o.path, o.node, "it has neither command nor url%s", o.misplaced())
		return ""
	case command && stated != "" && stated != Stdio:
		o.faults.add(o.path, o.node, "the transport %s has a url, but there is a command", stated)
		return ""
	case address && stated == Stdio:
		o.faults.add(o.path, o.node, "the transport stdio has a command, but there is a url")
		return ""
	case command:
		return Stdio
	case stated == "":
		return HTTP
	}
	return stated
}

// misplaced recognises a map of servers under another name than mcpServers.
func (o object) misplaced() string {
	for _, m := range o.node.members {
		if m.value.kind == kindObject && (m.value.member("command") != nil || m.value.member("url") != nil) {
			return "; if this is the map of the servers, call it " + mapKey
		}
	}
	return ""
}

func (o object) names(s *Server, prefixWithServerName bool) {
	if t := o.text("service"); t.present {
		s.Service = t.value
		if err := checkService(t.value); err != nil {
			o.reject(t, "%v", err)
		}
	} else if err := checkService(s.Key); err != nil && !o.has("service") {
		o.faults.add(o.path, o.node, "the key cannot be the service name: %v; give it a service", err)
	}
	if strings.ContainsAny(s.Service, " ,=") {
		o.warn("service", "a name with a space, comma or = cannot be given to durable-mcp-connector; give it another service")
	}
	if t := o.text("prefix"); t.present {
		if s.Options.Prefix = withUnderscore(t.value); contract.CheckPrefix(s.Options.Prefix) != nil {
			o.reject(t, "want at most %d letters, digits, _ and - of ASCII", contract.MaxToolNameLength-2)
		}
	} else if prefixWithServerName && !o.has("prefix") {
		s.Options.Prefix, s.prefixFromKey = withUnderscore(sanitise(s.Key)), true
		if err := contract.CheckPrefix(s.Options.Prefix); err != nil {
			o.faults.add(o.path, o.node, "the key cannot be the prefix: %v; give it a prefix", err)
		}
	}
}

// withUnderscore returns what stands before the tools' names, as with Strands.
func withUnderscore(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix + "_"
}

// reservedService starts the names that Temporal keeps for itself.
const reservedService = "__temporal_"

// maxServiceLength is the Temporal server's.
const maxServiceLength = 1000

func checkService(name string) error {
	switch {
	case name == "":
		return errors.New("it is empty")
	case len(name) > maxServiceLength:
		return errors.New("it is longer than 1000 bytes")
	case strings.HasPrefix(name, reservedService):
		return errors.New("names that begin with " + reservedService + " are Temporal's own")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("it has a control character")
	}
	return nil
}

// sanitise makes a prefix of a key, as Strands does.
func sanitise(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, key)
}

// patterns compiles the regular expressions under a key; the proxy matches them
// against whole names.
func (o object) patterns(key string) []*regexp.Regexp {
	var compiled []*regexp.Regexp
	for _, t := range o.texts(key) {
		re, err := regexp.Compile(t.value)
		if err != nil {
			reason := "it cannot be read"
			if s, ok := errors.AsType[*syntax.Error](err); ok {
				reason = s.Code.String()
			}
			o.reject(t, "%q is no regular expression: %s", t.node.text, reason)
			continue
		}
		compiled = append(compiled, re)
	}
	return compiled
}

// address returns an http or https URL.
func (o object) address(key string) (t text) {
	t = o.filled(key)
	if !t.present {
		return text{}
	}
	u, err := url.Parse(t.value)
	switch {
	case err != nil: // the error would show the URL
		o.reject(t, "it is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		o.reject(t, "want an http:// or https:// URL")
	case u.Hostname() == "":
		o.reject(t, "the URL has no host")
	default:
		return t
	}
	t.present = false // the fault is said
	return t
}
