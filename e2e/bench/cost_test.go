package bench_test

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
)

// BenchmarkCost is what a call costs on the Temporal server, by the server's own
// counters: actions, of which Temporal Cloud's bill is made, and requests to the
// frontend, where a poll counts with the task that it brings.
func BenchmarkCost(b *testing.B) {
	temporal, metrics := meteredServer(b)
	service := temporal.StartService(b)
	r := newRoute(b, temporal)
	connector := temporal.ConnectStdio(b, "", nil, "--service", service.Name+",prefix=kit", "--service", r.service,
		"--refresh-interval", "1h", "--log-level", "error")
	each := func(call func(context.Context) error) func(int) {
		return func(calls int) {
			for range calls {
				require.NoError(b, call(b.Context()))
			}
		}
	}
	inWorkflow := func(call func(ctx workflow.Context, tools *mcpworkflow.Client) error) func(int) {
		return func(calls int) { runWorkflow(b, temporal, callsOf(service, calls, call)) }
	}
	const workflowItself = "workflow" // without a call
	kinds := []struct {
		name string
		run  func(calls int)
	}{
		{"raw-sync", each(operation(nexusClient(b, temporal, service.Name), "echo", arguments, noTimeout))},
		{"connector", each(tool(connector, "kit_echo", arguments))},
		{"raw-activity", each(r.activity().call)},
		{"proxied", each(tool(connector, toolRepeated, arguments))},
		{"once", each(tool(connector, toolOnce, answer))},
		{workflowItself, func(int) { inWorkflow(nil)(0) }},
		{"raw-workflow", inWorkflow(rawEcho(service))},
		{"client-workflow", inWorkflow(echoByClient)},
	}
	if testing.Short() {
		kinds = kinds[3:4]
	}
	calls := brief(20, 1)
	total, rounds := map[string]count{}, 0
	for ; b.Loop(); rounds++ {
		before := metrics.settled(b)
		for _, k := range kinds {
			k.run(calls)
			after := metrics.settled(b)
			total[k.name] = total[k.name].plus(after, 1).plus(before, -1)
			before = after
		}
	}
	for _, k := range kinds {
		n := total[k.name]
		switch {
		case k.name == workflowItself:
			continue
		case strings.HasSuffix(k.name, "-"+workflowItself):
			n = n.plus(total[workflowItself], -1)
		}
		b.ReportMetric(n.actions/float64(rounds*calls), k.name+"-actions/call")
		b.ReportMetric(n.requests/float64(rounds*calls), k.name+"-requests/call")
	}
}

// count is what the server has counted.
type count struct{ actions, requests float64 }

func (c count) plus(n count, times float64) count {
	return count{c.actions + times*n.actions, c.requests + times*n.requests}
}

// actions are the requests that Temporal Cloud bills; the commands of Workflows are
// beside them in a counter of their own.
var actions = regexp.MustCompile(`operation="(StartNexusOperationExecution|StartActivityExecution|RecordActivityTaskHeartbeat|StartWorkflowExecution)"`)

// meteredServer is a dev server whose counters can be read.
func meteredServer(b *testing.B) (*harness.Temporal, counters) {
	b.Helper()
	port := strconv.Itoa(harness.FreePort(b))
	temporal := harness.StartTemporal(b, append([]string{"--metrics-port", port}, harness.ServerFlags...)...)
	return temporal, counters("http://127.0.0.1:" + port + "/metrics")
}

// counters is where the server shows them, in the text format of Prometheus.
type counters string

var sample = regexp.MustCompile(`^(action|service_requests)\{(.*)\} (\S+)$`)

// settled reads the counters when they have nothing more to tell of what has
// happened: the server writes them down every second.
func (c counters) settled(b *testing.B) count {
	b.Helper()
	last, since := c.read(b), time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for time.Since(since) < 2*time.Second {
		<-tick.C
		if n := c.read(b); n != last {
			last, since = n, time.Now()
		}
	}
	return last
}

func (c counters) read(b *testing.B) (n count) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, string(c), http.NoBody)
	require.NoError(b, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b, err)
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		match := sample.FindStringSubmatch(lines.Text())
		if match == nil || !strings.Contains(match[2], `namespace="`+harness.Namespace+`"`) || !strings.Contains(match[2], `service_name="frontend"`) {
			continue // the server's own, or others
		}
		value, err := strconv.ParseFloat(match[3], 64)
		require.NoError(b, err)
		switch isAction := actions.MatchString(match[2]); {
		case match[1] == "action" && strings.Contains(match[2], `action_type="command_`):
			n.actions += value
		case match[1] == "action", strings.Contains(match[2], `operation="RecordWorkerHeartbeat"`):
		case isAction:
			n.actions += value
			fallthrough
		default:
			n.requests += value
		}
	}
	require.NoError(b, lines.Err())
	return n
}
