package bench_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// BenchmarkKilled kills what stands between a client and its server with calls
// under way, starts it again, and counts: the results that the client gets or can
// read, and how often the tool ran.
func BenchmarkKilled(b *testing.B) {
	r := newRoads(b)
	counts := map[string]float64{}
	for b.Loop() {
		for _, g := range gateways {
			r.newVictims(b, upstream.ToolPlain).gateway(b, g).count(g.name, counts)
		}
		r.newVictims(b, upstream.ToolPlain).connector(b).count("connector", counts)
		r.newVictims(b, upstream.ToolPlain).proxy(b).count("proxy-once", counts)
		r.newVictims(b, upstream.ToolRead).proxy(b).count("proxy-read", counts)
		if !testing.Short() { // it takes a minute
			r.newVictims(b, upstream.ToolPlain).python(b).count("temporalio-mcp", counts)
		}
	}
	for name, n := range counts {
		b.ReportMetric(n, name)
	}
}

// victims are calls under way, each with a key that the tool's effect has and that
// its result names.
type victims struct {
	*roads
	b    *testing.B
	tool string
	wait string // the file that lets them go on
	keys []string

	results int // read in the end
	unknown int // said to be unknown
}

func (r *roads) newVictims(b *testing.B, tool string) *victims {
	b.Helper()
	v := &victims{roads: r, b: b, tool: tool, wait: harness.Unique("wait")}
	for range brief(8, 2) {
		v.keys = append(v.keys, harness.Unique("key"))
	}
	return v
}

func (v *victims) arguments(key string) string {
	return upstream.Script{Key: key, Wait: v.upstream.File(v.wait)}.JSON()
}

// start makes the calls, and returns when the tool has had its effect in each.
func (v *victims) start(p *harness.Peer) (pending []*harness.Pending) {
	for _, key := range v.keys {
		pending = append(pending, p.StartTool(v.b, v.tool, v.arguments(key)))
	}
	v.running()
	return pending
}

func (v *victims) running() {
	for _, key := range v.keys {
		v.upstream.AwaitRun(v.b, key)
	}
}

// take counts a result, if it is that of one of the calls.
func (v *victims) take(result json.RawMessage) {
	for _, key := range v.keys {
		if strings.Contains(string(result), "done "+key) {
			v.results++
			return
		}
	}
	var members struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(result, &members) == nil && members.Meta[contract.MetaOutcome] == contract.OutcomeUnknown {
		v.unknown++
	}
}

// gateway kills a gateway. It gives its calls no names under which another one could
// be asked for them, so what has not been answered is lost.
func (v *victims) gateway(b *testing.B, g gateway) *victims {
	b.Helper()
	p := g.start(b, v.upstream.URL)
	pending := v.start(p)
	p.Stdio.Kill()
	ended := func() int {
		return len(v.upstream.Entries(b, upstream.EventAnswer)) + len(v.upstream.Entries(b, upstream.EventCancelled))
	}
	before := ended()
	v.upstream.Release(b, v.wait)
	harness.Until(b, func() bool { return ended() >= before+len(v.keys) })
	for _, call := range pending {
		call.AwaitEnd(b)
		if m, ok := call.Find(0, harness.IsAnswer(call.ID)); ok {
			v.take(m.Result)
		}
	}
	return v
}

// connector kills the connector, and reads the results by another one.
func (v *victims) connector(b *testing.B) *victims {
	b.Helper()
	caller := harness.Unique("killed")
	p := v.roads.connector(b, "--caller", caller)
	v.start(p)
	p.Stdio.Kill()
	v.upstream.Release(b, v.wait)
	q := v.roads.connector(b, "--caller", caller)
	var calls []harness.Operation
	harness.Until(b, func() bool {
		calls = q.Operations(b, fmt.Sprintf(`{"limit":100,"tool":%q}`, v.tool))
		return len(calls) == len(v.keys)
	})
	for _, call := range calls {
		v.take(q.Tool(b, "get_operation_result", fmt.Sprintf(`{"operation_id":%q,"wait_seconds":60}`, call.OperationID)).Raw)
	}
	return v
}

// proxy kills the proxy worker and starts it again.
func (v *victims) proxy(b *testing.B) *victims {
	b.Helper()
	pending := v.start(v.roads.connector(b))
	v.route.proxy.Kill()
	v.upstream.Release(b, v.wait)
	v.route.proxy.Start(b)
	for _, call := range pending {
		v.take(call.Answer(b).Result)
	}
	return v
}

// python kills the Worker of temporalio-mcp and starts it again.
func (v *victims) python(b *testing.B) *victims {
	b.Helper()
	var runs []client.WorkflowRun
	for _, key := range v.keys {
		run, err := v.roads.python.begin(b.Context(), b, v.tool, json.RawMessage(v.arguments(key)))
		require.NoError(b, err)
		runs = append(runs, run)
	}
	v.running()
	v.roads.python.process.Kill()
	v.upstream.Release(b, v.wait)
	v.roads.python.start(b)
	for _, run := range runs {
		result, err := resultOf(b.Context(), run)
		if err == nil {
			v.take(result)
		}
	}
	return v
}

// count adds to the counts.
func (v *victims) count(name string, counts map[string]float64) {
	runs := 0
	for _, key := range v.keys {
		runs += v.upstream.Runs(v.b, key)
	}
	for what, n := range map[string]int{"calls": len(v.keys), "results": v.results, "unknown": v.unknown, "runs": runs} {
		counts[name+"-"+what] += float64(n)
	}
}
