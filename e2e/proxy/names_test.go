package proxy_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestOddNames: every tool is served under a name that the contract allows, says
// what it is called upstream, and is called by that.
func TestOddNames(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t, "--odd"))
	list := awaitTools(t, p.Peer)
	allowed := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	served := map[string]string{} // upstream name: ours
	for i, name := range list.Names(t) {
		require.Regexp(t, allowed, name)
		var tool struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		require.NoError(t, json.Unmarshal(list.Tools[i], &tool))
		original := name
		if raw := tool.Meta["io.temporal/upstreamName"]; raw != nil {
			require.NoError(t, json.Unmarshal(raw, &original))
			require.NotEqual(t, name, original)
		}
		require.NotContains(t, served, original)
		served[original] = name
	}
	require.Equal(t, "a_b", served["a_b"], "a good name stays")
	require.Equal(t, "9lives", served["9lives"])
	for _, original := range []string{"a.b", "A.b", "user/update", "ünï", "with space", "list_tools", "mcp:calls", strings.Repeat("n", 128)} {
		require.Contains(t, served, original)
		r := p.Tool(t, served[original], `{"x":1.0}`)
		require.False(t, r.IsError, "%q as %q: %s", original, served[original], r.Raw)
		quoted, err := json.Marshal(original)
		require.NoError(t, err)
		harness.RequireExact(t, `{"called":`+string(quoted)+`,"arguments":{"x":1.0}}`, string(r.Structured))
	}
	p.upstream.NoViolation(t)

	// The names are the same in another process.
	before := list.Names(t)
	p.proxy.Kill()
	p.proxy.Start(t)
	require.Equal(t, before, awaitTools(t, peer(t, harness.Revision2026, p.service)).Names(t))
}

// TestFilters: a filter matches whole upstream names, and what it leaves out cannot
// be called. A prefix is for callers only.
func TestFilters(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t, "--odd", "--generated", "3"), harness.ProxyServer{
		"prefix":       "up",
		"tool_filters": map[string]any{"allowed": []string{"echo", "tool_.*", "a\\.b", "rea"}, "rejected": []string{"tool_001", "ech"}},
	})
	names := awaitTools(t, p.Peer).Names(t)
	require.Len(t, names, 4)
	require.Subset(t, names, []string{"up_echo", "up_tool_000", "up_tool_002"})
	renamed := names[slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "up_a_b") })]
	for _, hidden := range []string{"up_tool_001", "up_read", "read", "echo", "tool_000", "up_up_echo"} {
		require.Equal(t, -32602, p.ToolError(t, hidden, `{}`).Code, hidden)
	}
	require.JSONEq(t, `{"a":1}`, string(p.Tool(t, "up_echo", `{"a":1}`).Structured))
	require.Contains(t, string(p.Tool(t, renamed, `{}`).Structured), `"a.b"`)

	// Nor by an operation of that name: the connector is not the only caller.
	for _, operation := range []string{"up_tool_001", "up_read", "read", "tool_001"} {
		f := operate(t, p.service, operation, `{"arguments":{}}`)
		require.Error(t, f, operation)
		t.Log(f)
	}
	for _, e := range p.upstream.Entries(t, upstream.EventRun) {
		require.Contains(t, []string{"echo", "a.b"}, e.Tool)
	}
}

// TestPages: all pages are followed, within bounds.
func TestPages(t *testing.T) {
	t.Parallel()

	t.Run("three pages", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t, "--generated", "101", "--page", "50"))
		list := awaitTools(t, p.Peer)
		require.Len(t, list.Tools, 16+101)
		require.Contains(t, string(p.Tool(t, "tool_100", `{}`).Structured), "tool_100")
	})
	for _, fault := range []string{upstream.FaultRepeatCursor, upstream.FaultEndlessPages} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t, "--generated", "101", "--page", "50")
			u.Fault(t, upstream.Fault{Name: fault, Method: "tools/list"})
			proxy := harness.Shared(t).PrepareProxy(t, map[string]harness.ProxyServer{harness.Unique("up"): u.Server(quick)})
			began := time.Now()
			out := harness.RunProxy(t, "", nil, "check", "--config", proxy.Config)
			t.Logf("after %v and %d requests: %s%s", time.Since(began), u.Requests(t, "tools/list"), out.Stdout, out.Stderr)
			require.Less(t, time.Since(began), 40*time.Second)
			require.Equal(t, 1, out.Code)
			require.LessOrEqual(t, u.Requests(t, "tools/list"), 1100)
		})
	}
}

// TestListChanged: a tool that the upstream adds reaches the connector's client,
// which is told of it.
func TestListChanged(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, _ way, p path) {
		t.Helper()
		p.Peer = peer(t, p.Revision, p.service, "--refresh-interval", "1s")
		awaitTools(t, p.Peer)
		name := harness.Unique("added")
		p.Tool(t, "add_tool", `{"name":"`+name+`"}`)
		if !p.Modern() {
			p.Stdio.Await(t, "list_changed", harness.IsNotification("notifications/tools/list_changed"))
		}
		harness.Until(t, func() bool { return slices.Contains(p.ListTools(t).Names(t), name) })
		require.Contains(t, string(p.Tool(t, name, `{}`).Structured), name)
	})
}

// TestListFails: an upstream that cannot list keeps the tools that it had; what it
// lists afterwards is served, changed descriptions too.
func TestListFails(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t))
	p.Peer = peer(t, legacy, p.service, "--refresh-interval", "1s")
	before := awaitTools(t, p.Peer).Names(t)
	p.upstream.Fault(t, upstream.Fault{Name: upstream.FaultRPCError, Method: "tools/list", Code: -32603, Text: "no list today"})
	tool := func(description string) string {
		return `{"name":"fickle","description":"` + description + `","inputSchema":{"type":"object"}}`
	}
	for i := range 20 { // a burst of changes is one question, or a few
		p.upstream.SetTools(t, tool(fmt.Sprint("first ", i)))
	}
	harness.Until(t, func() bool { return len(p.upstream.Entries(t, upstream.EventFault)) > 0 })
	require.Equal(t, before, awaitTools(t, peer(t, legacy, p.service)).Names(t))
	p.works(t)
	p.upstream.Fault(t)
	description := func() string {
		list := p.ListTools(t)
		if !slices.Contains(list.Names(t), "fickle") {
			return ""
		}
		_, fickle := list.Find(t, "fickle")
		return string(fickle["description"])
	}
	p.upstream.SetTools(t, tool("second"))
	harness.Until(t, func() bool { return description() == `"second"` })
	p.upstream.SetTools(t, tool("third"))
	harness.Until(t, func() bool { return description() == `"third"` })
	p.upstream.SetTools(t)
	harness.Until(t, func() bool { return description() == "" })
	t.Logf("%d requests for lists", p.upstream.Requests(t, "tools/list"))
	require.Less(t, p.upstream.Requests(t, "tools/list"), 40)
}
