package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
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
// SDK whose operation runs an activity that returns its input. Each is a process.
type route struct {
	proxy     *harness.Proxy
	through   client.NexusClient
	rawWorker int // its PID
	raw       client.NexusClient
	upstream  *mcp.ClientSession
}

func newRoute(b *testing.B) *route {
	b.Helper()
	temporal := harness.Shared(b)
	name := harness.Unique("up")
	upstream := harness.StartUpstream(b)
	r := &route{
		proxy:   temporal.StartProxy(b, map[string]harness.ProxyServer{name: upstream.Server()}, "--log-level", "error"),
		through: nexusClient(b, name),
	}
	queue := harness.Unique("raw")
	temporal.CreateEndpoint(b, queue, queue)
	r.rawWorker, r.raw = startRawWorker(b, temporal.Address, queue), nexusClient(b, queue)
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := c.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: upstream.URL}, nil)
	require.NoError(b, err)
	b.Cleanup(func() { _ = session.Close() })
	r.upstream = session
	return r
}

func nexusClient(b *testing.B, service string) client.NexusClient {
	b.Helper()
	c, err := harness.Shared(b).Client(b).NewNexusClient(client.NexusClientOptions{Endpoint: service, Service: service})
	require.NoError(b, err)
	return c
}

func operate(ctx context.Context, b *testing.B, c client.NexusClient, operation string, input json.RawMessage) {
	b.Helper()
	h, err := c.ExecuteOperation(ctx, operation, resultmap.RawValue(input), client.StartNexusOperationOptions{
		ID: harness.Unique("op"), ScheduleToCloseTimeout: time.Hour,
	})
	require.NoError(b, err)
	var output converter.RawValue
	require.NoError(b, h.Get(ctx, &output))
}

func (r *route) callRaw(ctx context.Context, b *testing.B) {
	b.Helper()
	operate(ctx, b, r.raw, echoActivity, callOf(arguments))
}

func (r *route) callRepeated(ctx context.Context, b *testing.B) {
	b.Helper()
	operate(ctx, b, r.through, toolRepeated, callOf(arguments))
}

func (r *route) callOnce(ctx context.Context, b *testing.B) {
	b.Helper()
	operate(ctx, b, r.through, toolOnce, callOf(answer))
}

func (r *route) callDirect(ctx context.Context, b *testing.B) {
	b.Helper()
	res, err := r.upstream.CallTool(ctx, &mcp.CallToolParams{Name: toolRepeated, Arguments: arguments})
	require.NoError(b, err)
	require.False(b, res.IsError)
}

// callOf is the input of an operation that a tool is behind.
func callOf(arguments json.RawMessage) json.RawMessage {
	return fmt.Appendf(nil, `{"arguments":%s}`, arguments)
}

// BenchmarkProxiedCall is one call at a time: the median through the proxy, and that
// of what it is made of, a raw operation behind which an activity runs and a call of
// the upstream without a proxy.
func BenchmarkProxiedCall(b *testing.B) {
	r := newRoute(b)
	ctx := context.Background()
	const raw, direct, repeated, once = 0, 1, 2, 3
	calls := [...]func(context.Context, *testing.B){raw: r.callRaw, direct: r.callDirect, repeated: r.callRepeated, once: r.callOnce}
	var times [len(calls)][]time.Duration
	// In any order: what one call leaves the server to do slows down the next one.
	round := func() {
		for _, i := range rand.Perm(len(calls)) {
			times[i] = append(times[i], took(func() { calls[i](ctx, b) }))
		}
	}
	for range 20 {
		round()
	}
	clear(times[:])
	for b.Loop() {
		round()
	}
	parts := make([]time.Duration, len(times[raw]))
	for i := range parts {
		parts[i] = times[raw][i] + times[direct][i]
	}
	whole := float64(median(parts))
	b.ReportMetric(milliseconds(median(times[direct])), "direct-p50-ms")
	b.ReportMetric(milliseconds(median(parts)), "raw+direct-p50-ms")
	b.ReportMetric(milliseconds(median(times[repeated])), "proxied-p50-ms")
	b.ReportMetric(milliseconds(median(times[once])), "once-p50-ms")
	b.ReportMetric(float64(median(times[repeated]))/whole, "ratio")
	b.ReportMetric(float64(median(times[once]))/whole, "once-ratio")
}

// BenchmarkConcurrentProxiedCalls is 32 callers at once: calls per second through
// the proxy and of raw operations behind which activities run, and the processor
// time that the two Workers take for a call.
func BenchmarkConcurrentProxiedCalls(b *testing.B) {
	const callers, each = 32, 8 // a long round: its last calls have the machine to themselves
	r := newRoute(b)
	ctx := context.Background()
	type side struct {
		call   func(context.Context, *testing.B)
		worker int
		rounds []time.Duration
		cpu    time.Duration
	}
	raw := &side{call: r.callRaw, worker: r.rawWorker}
	repeated := &side{call: r.callRepeated, worker: r.proxy.PID()}
	once := &side{call: r.callOnce, worker: r.proxy.PID()}
	measure := func(s *side) {
		before := processorTime(b, s.worker)
		s.rounds = append(s.rounds, took(func() {
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for range each {
						s.call(ctx, b)
					}
				})
			}
			group.Wait()
		}))
		s.cpu += processorTime(b, s.worker) - before
	}
	sides := []*side{raw, repeated, once}
	for _, s := range sides {
		measure(s)
		s.rounds, s.cpu = nil, 0
	}
	turns := 0
	for ; b.Loop(); turns++ {
		// In any order: the server slows down as it fills.
		for _, i := range rand.Perm(len(sides)) {
			measure(sides[i])
		}
	}
	const calls = callers * each
	// Of the median round: one that stalls counts no more than another one.
	for name, s := range map[string]*side{"raw": raw, "proxied": repeated, "once": once} {
		b.ReportMetric(calls/median(s.rounds).Seconds(), name+"-calls/s")
		b.ReportMetric(milliseconds(s.cpu)/float64(turns)/calls, name+"-cpu-ms/call")
	}
	b.ReportMetric(median(raw.rounds).Seconds()/median(repeated.rounds).Seconds(), "ratio")
	b.ReportMetric(median(raw.rounds).Seconds()/median(once.rounds).Seconds(), "once-ratio")
	b.ReportMetric(repeated.cpu.Seconds()/raw.cpu.Seconds(), "cpu-ratio")
	b.ReportMetric(once.cpu.Seconds()/raw.cpu.Seconds(), "once-cpu-ratio")
}

func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// processorTime is what a process has used, in user and kernel mode.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if os.IsNotExist(err) {
		b.Skip("this system does not tell the processor time of a process")
	}
	require.NoError(b, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime of proc(5)
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	const perSecond = 100 // sysconf(_SC_CLK_TCK), which Linux has fixed
	return time.Duration(ticks) * time.Second / perSecond
}
