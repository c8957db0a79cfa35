package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// path is a client, a connector, a proxy worker and an upstream.
type path struct {
	*harness.Peer

	service  string
	upstream *harness.Upstream
	proxy    *harness.Proxy
}

// quick makes a proxy notice and repeat soon.
var quick = harness.ProxyServer{"policy": map[string]any{
	"heartbeat_timeout": "4s",
	"retry":             map[string]any{"initial_interval": "100ms", "maximum_interval": "1s", "maximum_attempts": 10},
}}

// patient is [quick] for what kills no Worker: on a busy machine the heartbeats of
// one that lives can be late.
var patient = harness.ProxyServer{"policy": map[string]any{
	"heartbeat_timeout": "60s",
	"retry":             map[string]any{"initial_interval": "100ms", "maximum_interval": "1s", "maximum_attempts": 10},
}}

// through starts all that is between a client and an upstream.
func through(t *testing.T, u *harness.Upstream, more ...harness.ProxyServer) path {
	t.Helper()
	service := harness.Unique("up")
	proxy := harness.Shared(t).StartProxy(t, map[string]harness.ProxyServer{service: u.Server(append([]harness.ProxyServer{quick}, more...)...)})
	return path{Peer: peer(t, harness.Revision2025November, service), service: service, upstream: u, proxy: proxy}
}

// peer is a client of a connector that has waited for the tools.
func peer(t *testing.T, revision, service string, args ...string) *harness.Peer {
	t.Helper()
	args = append([]string{"--service", service, "--wait-budget", harness.Patience.String(), "--poll-tools", "off"}, args...)
	return harness.Shared(t).StartStdio(t, args...).Speak(t, revision)
}

// start starts a scripted tool.
func (p path) start(t *testing.T, tool string, s upstream.Script) *harness.Pending {
	t.Helper()
	return p.StartTool(t, tool, s.JSON())
}

// run runs a scripted tool.
func (p path) run(t *testing.T, tool string, s upstream.Script) harness.ToolResult {
	t.Helper()
	return p.start(t, tool, s).Answer(t).ToolResult(t)
}

// works wants the path to be usable.
func (p path) works(t *testing.T) {
	t.Helper()
	key := harness.Unique("works")
	r := p.run(t, upstream.ToolPlain, upstream.Script{Key: key})
	require.False(t, r.IsError, "%s", r.Raw)
	require.Equal(t, "done "+key, r.Text(t))
	require.Equal(t, 1, p.upstream.Runs(t, key))
}

// failure is what goes with an error result that the product made.
type failure struct {
	Type      string
	Retryable bool
}

func failureOf(t *testing.T, r harness.ToolResult) failure {
	t.Helper()
	require.True(t, r.IsError, "%.2000s", r.Raw)
	var f failure
	require.NotEmpty(t, r.Meta["io.temporal/failure"], "%.2000s", r.Raw)
	require.NoError(t, json.Unmarshal(r.Meta["io.temporal/failure"], &f), "%s", r.Raw)
	return f
}

// outcomeUnknown wants a result to say that a call may have taken effect.
func outcomeUnknown(t *testing.T, r harness.ToolResult) {
	t.Helper()
	require.Equal(t, failure{Type: "McpOutcomeUnknown"}, failureOf(t, r), "%s", r.Raw)
	require.JSONEq(t, `"unknown"`, string(r.Meta["io.temporal/outcome"]))
	require.Contains(t, r.Text(t), "outcome is unknown")
}

// awaitTools returns the tools once there are some.
func awaitTools(t *testing.T, p *harness.Peer) (list harness.ToolList) {
	t.Helper()
	harness.Until(t, func() bool { list = p.ListTools(t); return len(list.Tools) > 0 })
	return list
}

// way is a transport of an upstream with the revisions that it speaks there.
type way struct {
	name   string
	flags  []string
	http   bool
	more   harness.ProxyServer
	modern bool
}

var ways = []way{
	{name: "stdio 2026-07-28", modern: true},
	{name: "stdio 2025-11-25", flags: []string{"--protocols", "2025-11-25,2025-06-18"}},
	{name: "stdio 2024-11-05", flags: []string{"--protocols", "2024-11-05"}},
	{name: "http 2026-07-28", http: true, modern: true},
	{name: "http 2025-11-25", http: true, flags: []string{"--protocols", "2025-11-25"}},
	{name: "http 2025-03-26", http: true, flags: []string{"--protocols", "2025-03-26"}},
	{name: "sse 2024-11-05", http: true, flags: []string{"--protocols", "2024-11-05"}, more: harness.ProxyServer{"type": "sse"}},
}

func (w way) upstream(t *testing.T, flags ...string) *harness.Upstream {
	t.Helper()
	flags = append(append([]string(nil), w.flags...), flags...)
	if w.http {
		return harness.StartUpstream(t, flags...)
	}
	return harness.PrepareUpstream(t, flags...)
}

func (w way) server(u *harness.Upstream, more ...harness.ProxyServer) harness.ProxyServer {
	s := u.Server(append([]harness.ProxyServer{patient, w.more}, more...)...)
	if strings.HasPrefix(w.name, "sse") {
		s["url"] = u.SSE
	}
	return s
}

// eachWay runs a test over each way to an upstream, all behind one proxy worker,
// for a client of an older revision and then for one of the newest.
func eachWay(t *testing.T, test func(t *testing.T, w way, p path), flags ...string) {
	t.Helper()
	servers := map[string]harness.ProxyServer{}
	var paths []path
	for _, w := range ways {
		p := path{service: harness.Unique("up"), upstream: w.upstream(t, flags...)}
		servers[p.service] = w.server(p.upstream)
		paths = append(paths, p)
	}
	proxy := harness.Shared(t).StartProxy(t, servers)
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for _, revision := range harness.Revisions[1:] {
				t.Log("for " + revision)
				p := paths[i]
				p.proxy, p.Peer = proxy, peer(t, revision, p.service)
				test(t, w, p)
				p.upstream.NoViolation(t)
			}
		})
	}
}
