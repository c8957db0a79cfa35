package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// A tool that may be repeated, and one that runs at most once, which costs a
// request to Temporal more: the note that it is being called.
const (
	toolRepeated = "echo"
	toolOnce     = "reply"
)

// answer is what toolOnce is told to answer, and takes as many bytes as arguments.
var answer = json.RawMessage(`{"result":{"content":[{"type":"text","text":"hello"}]}}`)

// route is a proxy Worker before its upstream, and beside it a Worker of the raw
// SDK. Each is a process.
type route struct {
	temporal *harness.Temporal
	service  string // of the proxy
	proxy    *harness.Proxy
	through  client.NexusClient
	worker   int // the PID of the raw SDK's
	raw      client.NexusClient
	upstream *harness.Upstream
	session  *mcp.ClientSession // with the upstream
}

func newRoute(b *testing.B, temporal *harness.Temporal) *route {
	b.Helper()
	r := &route{temporal: temporal, service: harness.Unique("up"), upstream: harness.StartUpstream(b)}
	var policy harness.ProxyServer // the default one
	if testing.Short() {
		policy = harness.ProxyServer{"policy": map[string]any{"heartbeat_timeout": "2s"}} // a dead Worker is missed sooner
	}
	r.proxy = temporal.StartProxy(b, map[string]harness.ProxyServer{r.service: r.upstream.Server(policy)}, "--log-level", "error")
	r.through = nexusClient(b, temporal, r.service)
	queue := harness.Unique("raw")
	temporal.CreateEndpoint(b, queue, queue)
	r.worker, r.raw = startRawWorker(b, temporal.Address, queue, r.upstream.URL), nexusClient(b, temporal, queue)
	session, err := connectUpstream(b.Context(), r.upstream.URL)
	require.NoError(b, err)
	b.Cleanup(func() { _ = session.Close() })
	r.session = session
	return r
}

// connectUpstream connects as the MCP SDK does it.
func connectUpstream(ctx context.Context, url string) (*mcp.ClientSession, error) {
	return mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
}

// callOf is the input of an operation that a tool is behind.
func callOf(arguments json.RawMessage) json.RawMessage {
	return fmt.Appendf(nil, `{"arguments":%s}`, arguments)
}

// processes are those that a call with this worker keeps busy.
func (r *route) processes(worker int) map[string]int {
	return map[string]int{workerCPU: worker, serverCPU: r.temporal.PID(), upstreamCPU: r.upstream.PID()}
}

// direct is a call of the upstream without Temporal.
func (r *route) direct() *side {
	return &side{name: "direct", call: tool(r.session, toolRepeated, arguments)}
}

// activity is a raw operation behind which an activity runs that returns its input.
func (r *route) activity() *side {
	return &side{name: "raw", call: operation(r.raw, echoActivity, callOf(arguments), time.Hour), processes: r.processes(r.worker)}
}

// parts is all that a call through the proxy is made of, one after the other.
func (r *route) parts() *side {
	raw, direct := r.activity(), r.direct()
	return &side{name: "parts", processes: r.processes(r.worker), call: func(ctx context.Context) error {
		if err := raw.call(ctx); err != nil {
			return err
		}
		return direct.call(ctx)
	}}
}

// byHand is a raw operation whose activity calls the upstream by the MCP SDK.
func (r *route) byHand() *side {
	return &side{name: "by-hand", call: operation(r.raw, callActivity, arguments, time.Hour), processes: r.processes(r.worker)}
}

func (r *route) repeated() *side {
	return &side{name: "proxied", call: operation(r.through, toolRepeated, callOf(arguments), time.Hour), processes: r.processes(r.proxy.PID())}
}

func (r *route) once() *side {
	return &side{name: "once", call: operation(r.through, toolOnce, callOf(answer), time.Hour), processes: r.processes(r.proxy.PID())}
}

// BenchmarkProxiedCall is one call at a time: through the proxy, and what that is
// made of, a raw operation behind which an activity runs and a call of the upstream.
func BenchmarkProxiedCall(b *testing.B) {
	r := newRoute(b, server(b))
	direct, parts, byHand, repeated, once := r.direct(), r.parts(), r.byHand(), r.repeated(), r.once()
	compareSingle(b, 20, direct, parts, byHand, repeated, once)
	relate(b, "ratio", byLatency, repeated, parts)
	relate(b, "once-ratio", byLatency, once, parts)
	relate(b, "by-hand-ratio", byLatency, repeated, byHand)
}

// BenchmarkConcurrentProxiedCalls is 32 callers at once: the speed, and the processor
// time that the Workers take for a call.
func BenchmarkConcurrentProxiedCalls(b *testing.B) {
	const callers = 32
	r := newRoute(b, server(b))
	parts, byHand, repeated, once := r.parts(), r.byHand(), r.repeated(), r.once()
	compareLonger(b, 4, callers, 8*callers, parts, byHand, repeated, once) // a long round: its last calls have the machine to themselves
	relate(b, "ratio", bySpeed, repeated, parts)
	relate(b, "once-ratio", bySpeed, once, parts)
	relate(b, "by-hand-ratio", bySpeed, repeated, byHand)
	if parts.rounds[0].cpu[workerCPU] > 0 {
		relate(b, "cpu-ratio", byCPU, repeated, parts)
		relate(b, "once-cpu-ratio", byCPU, once, parts)
		relate(b, "by-hand-cpu-ratio", byCPU, repeated, byHand)
	}
}
