package bench_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// gateway is a program of another maker that an MCP client starts and that passes
// its calls to a server behind HTTP. It keeps none of them.
type gateway struct {
	name    string
	command func(b *testing.B, url string) peers.Command
}

var gateways = []gateway{
	{"mcp-proxy", func(b *testing.B, url string) peers.Command {
		b.Helper()
		return peers.Python(b, peers.MCP1, "-m", "mcp_proxy", "--transport", "streamablehttp", url)
	}},
	{"mcp-remote", func(b *testing.B, url string) peers.Command {
		b.Helper()
		c := peers.Node(b, peers.Package(b, "mcp-remote", "dist", "proxy.js"), url, "--transport", "http-only", "--silent")
		c.Env["MCP_REMOTE_CONFIG_DIR"] = b.TempDir()
		return c
	}},
}

// roads are all ways to the tools of one MCP server, and to one tool of the tool SDK.
type roads struct {
	*route
	temporal *harness.Temporal
	service  *harness.Service
	python   *pythonWorker
}

func newRoads(b *testing.B) *roads {
	b.Helper()
	peers.Dir(b)
	r := &roads{temporal: server(b)}
	r.service = toolService(b, r.temporal)
	r.route = newRoute(b, r.temporal)
	r.python = &pythonWorker{temporal: r.temporal, queue: harness.Unique("python"), url: r.upstream.URL}
	r.python.start(b)
	return r
}

// sides are one for each road; the clients of MCP speak stdio.
func (r *roads) sides(b *testing.B) []*side {
	b.Helper()
	durable := r.temporal.ConnectStdio(b, harness.Revision2025November, nil, "--service", r.route.service, "--log-level", "error")
	sync := r.temporal.ConnectStdio(b, harness.Revision2025November, nil, "--service", r.service.Name, "--log-level", "error")
	list := []*side{
		r.direct(), r.activity(),
		{name: "temporalio-mcp", call: func(ctx context.Context) error {
			run, err := r.python.begin(ctx, b, toolRepeated, arguments)
			if err != nil {
				return err
			}
			return run.Get(ctx, nil)
		}},
		{name: "durable", call: tool(durable, toolRepeated, arguments)},
		{name: "durable-sync", call: tool(sync, "echo", arguments)},
	}
	for _, g := range gateways {
		c := g.command(b, r.upstream.URL)
		session := harness.ConnectProgram(b, harness.Revision2025November, c.Environ(), c.Path, c.Args...)
		list = append(list, &side{name: g.name, call: tool(session, toolRepeated, arguments)})
	}
	return list
}

// BenchmarkGatewayCall is one call at a time on each road, and whether a number that
// no float64 holds comes back as it was sent.
func BenchmarkGatewayCall(b *testing.B) {
	r := newRoads(b)
	compareSingle(b, 20, r.sides(b)...)
	r.exact(b)
}

// BenchmarkConcurrentGatewayCalls is 32 callers at once on each road.
func BenchmarkConcurrentGatewayCalls(b *testing.B) {
	const callers = 32
	compare(b, callers, 4*callers, newRoads(b).sides(b)...)
}

// exact reports 1 for each road on which the number survives, else 0.
func (r *roads) exact(b *testing.B) {
	b.Helper()
	report := func(name string, result json.RawMessage) {
		exact := 0.0
		if strings.Contains(string(result), `9007199254740993`) {
			exact = 1
		}
		b.ReportMetric(exact, name+"-exact")
	}
	echo := func(p *harness.Peer) json.RawMessage { return p.Tool(b, toolRepeated, string(arguments)).Raw }
	for _, g := range gateways {
		report(g.name, echo(g.start(b, r.upstream.URL)))
	}
	report("durable", echo(r.connector(b)))
	report("durable-sync", echo(r.temporal.StartStdio(b, "--service", r.service.Name).Speak(b, harness.Revision2025November)))
	run, err := r.python.begin(b.Context(), b, toolRepeated, arguments)
	require.NoError(b, err)
	result, err := resultOf(b.Context(), run)
	require.NoError(b, err)
	report("temporalio-mcp", result)
}

// start starts a gateway, to speak to it in bytes.
func (g gateway) start(b *testing.B, url string) *harness.Peer {
	b.Helper()
	c := g.command(b, url)
	return harness.StartProgram(b, c.Environ(), c.Path, c.Args...).Speak(b, harness.Revision2025November)
}

// connector starts a connector before the proxy, to speak to it in bytes.
func (r *roads) connector(b *testing.B, args ...string) *harness.Peer {
	b.Helper()
	args = append([]string{"--service", r.route.service, "--wait-budget", "5m", "--log-level", "error"}, args...)
	return r.temporal.StartStdio(b, args...).Speak(b, harness.Revision2025November)
}

// pythonWorker is a Worker of temporalio-mcp, in a process of its own.
type pythonWorker struct {
	temporal   *harness.Temporal
	queue, url string
	process    *harness.Stdio
}

func (w *pythonWorker) start(b *testing.B) {
	b.Helper()
	script, err := filepath.Abs(filepath.Join("python", "worker.py"))
	require.NoError(b, err)
	c := peers.Python(b, peers.MCP2, script, w.temporal.Address, w.queue, w.url)
	w.process = harness.StartProgram(b, c.Environ(), c.Path, c.Args...)
	harness.Until(b, func() bool {
		require.True(b, w.process.Running(), "the Worker has ended: %s", w.process.Stderr)
		return slices.Contains(w.process.Other(), "ready\n")
	})
}

// begin starts a Workflow that makes one call.
func (w *pythonWorker) begin(ctx context.Context, b *testing.B, tool string, arguments json.RawMessage) (client.WorkflowRun, error) {
	b.Helper()
	return w.temporal.Client(b).ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: harness.Unique("python"), TaskQueue: w.queue},
		"call", tool, resultmap.RawValue(arguments))
}

func resultOf(ctx context.Context, run client.WorkflowRun) (json.RawMessage, error) {
	var result converter.RawValue
	err := run.Get(ctx, &result)
	return result.Payload().GetData(), err
}
