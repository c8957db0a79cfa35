package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// Shares of the requests that go wrong.
const (
	oftenExhausted = 0.3
	sometimesLost  = 0.1
	// Of a Worker. Its polls pause after a refusal, for so long that calls find no
	// poller; at six in a row the server blocks the endpoint for a minute.
	seldomExhausted = 0.1
	seldomLost      = 0.05
)

// outage is how long every request is refused in the middle.
const outage = 3 * time.Second

// TestConnectorUnderExhaustion: Temporal refuses a third of the connector's requests,
// loses the answers of others, and for a while answers nothing but refusals. Every call
// runs once and is answered right, and the connector does not ask faster for it.
func TestConnectorUnderExhaustion(t *testing.T) {
	t.Parallel()

	const n = 40
	server := harness.Shared(t)
	s := startService(t, server)
	r := startRelay(t, server)
	var pending []*harness.Pending
	t.Cleanup(func() {
		explain(t, server, s, pending, 0)
		if t.Failed() {
			t.Logf("%d calls have begun; requests: %v", s.begun(), r.asked())
		}
	})
	_, p := startConnector(t, r.Temporal, s, "--log-level", "debug")
	r.fail(oftenExhausted, sometimesLost)
	pending = startGates(t, p, 0, n/2)
	await(t, n, "half of the calls have begun", func() bool { return s.begun() == n/2 })

	// All is refused: what waits goes on to wait, and what is started waits too.
	r.fail(1, 0)
	before := r.total()
	pending = append(pending, startGates(t, p, n/2, n/2)...)
	<-time.After(outage)
	asked := r.total() - before
	t.Logf("%d requests in %v of refusals, for %d calls", asked, outage, n)
	require.Less(t, asked, n*20, "refusals make the connector ask faster")
	require.Equal(t, n/2, s.begun(), "a call got through")

	r.fail(oftenExhausted, sometimesLost)
	began := time.Now()
	await(t, n, "all calls have begun", func() bool {
		noneAnswered(t, pending)
		return s.begun() == n
	})
	t.Logf("the calls of that time began within %v after it", time.Since(began).Round(time.Millisecond))
	s.open()
	answeredRight(t, pending, 0)
	s.once(t, n)
	t.Logf("requests: %v", r.asked())
}

// TestProxyUnderExhaustion is the same with a proxy worker behind the relay. A call
// that may not run twice does not, and what its caller is told of it is true.
func TestProxyUnderExhaustion(t *testing.T) {
	t.Parallel()

	const n = 24
	server := harness.Shared(t)
	r := startRelay(t, server)
	up := harness.StartUpstream(t)
	name := harness.Unique("up")
	r.StartProxy(t, map[string]harness.ProxyServer{name: up.Server(harness.ProxyServer{"policy": map[string]any{"retry": map[string]any{"initial_interval": "200ms"}}})}, "--log-level", "info")
	nexus, err := server.Client(t).NewNexusClient(client.NexusClientOptions{Endpoint: name, Service: name})
	require.NoError(t, err)
	r.fail(seldomExhausted, seldomLost)

	type outcome struct {
		tool, key string
		output    converter.RawValue
		err       error
		late      bool // the test gave it up
	}
	outcomes := make([]outcome, n)
	var work sync.WaitGroup
	for i := range outcomes {
		tool := []string{upstream.ToolPlain, upstream.ToolRead}[i%2]
		o := &outcomes[i]
		o.tool, o.key = tool, fmt.Sprintf("%s-%d", tool, i)
		work.Go(func() {
			// A deadline on the context would make the SDK poll without pause in the end.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer time.AfterFunc(2*patience(n), cancel).Stop()
			input := json.RawMessage(`{"arguments":` + upstream.Script{Key: o.key, Millis: 500}.JSON() + `}`)
			var h client.NexusOperationHandle
			h, o.err = nexus.ExecuteOperation(ctx, o.tool, resultmap.RawValue(input), client.StartNexusOperationOptions{
				ID: harness.Unique("op"), ScheduleToCloseTimeout: time.Hour,
			})
			if o.err == nil {
				o.err = h.Get(ctx, &o.output)
			}
			o.late = ctx.Err() != nil
		})
	}
	await(t, n, "some calls have run", func() bool { return len(up.Entries(t, upstream.EventRun)) >= n/4 })
	r.fail(1, 0)
	<-time.After(outage)
	r.fail(seldomExhausted, seldomLost)
	work.Wait()
	r.fail(0, 0)

	kinds := map[string]int{}
	for _, o := range outcomes {
		require.False(t, o.late, "%s has no answer in time", o.key)
		runs := up.Runs(t, o.key)
		if o.tool == upstream.ToolPlain {
			require.LessOrEqual(t, runs, 1, "%s has run twice", o.key)
		}
		if o.err == nil {
			kinds["completed"]++
			output, err := resultmap.JSON(o.output)
			require.NoError(t, err)
			result, err := contract.DecodeResult(output)
			require.NoError(t, err)
			text, _ := result.Text()
			require.Equal(t, "done "+o.key, text)
			require.Positive(t, runs)
			continue
		}
		f := resultmap.FromError(o.err)
		kinds[string(f.Code)]++
		t.Logf("%s, which has run %d times: %s", o.key, runs, f.Message)
		switch f.Code {
		case contract.CodeOutcomeUnknown:
			require.Equal(t, upstream.ToolPlain, o.tool)
		case contract.CodeUnavailable:
			if o.tool == upstream.ToolPlain {
				require.Zero(t, runs, "the caller may take it for a call that did not run")
			}
		default:
			require.NoError(t, o.err)
		}
	}
	t.Logf("%v; %d requests", kinds, r.total())
	require.GreaterOrEqual(t, kinds["completed"], n/2)
	up.NoViolation(t)
}
