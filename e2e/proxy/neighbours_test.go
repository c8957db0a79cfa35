package proxy_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestSickNeighbours: servers that are away, slow, silent or mad, and a sound one
// behind the same worker that does not notice. Nor does an endpoint get blocked:
// the moment the sick one is well, it is served.
func TestSickNeighbours(t *testing.T) {
	t.Parallel()

	optional := harness.ProxyServer{"continue_on_error": true, "startup_timeout": "2s"}
	sound := harness.StartUpstream(t)
	sick := map[string]*harness.Upstream{
		"away": harness.PrepareHTTPUpstream(t), "slow": harness.PrepareUpstream(t), "dies": harness.PrepareUpstream(t), "mad": harness.PrepareUpstream(t),
	}
	sick["slow"].Fault(t, upstream.Fault{Name: upstream.FaultSilent})
	sick["dies"].Fault(t, upstream.Fault{Name: upstream.FaultExitAtStart, Code: 3, Text: "no licence"})
	sick["mad"].Fault(t, upstream.Fault{Name: upstream.FaultGarbage})
	services := map[string]string{"sound": harness.Unique("sound")}
	servers := map[string]harness.ProxyServer{services["sound"]: sound.Server(quick)}
	for name, u := range sick {
		services[name] = harness.Unique(name)
		servers[services[name]] = u.Server(quick, optional)
	}
	proxy := harness.Shared(t).StartProxy(t, servers)
	good := path{Peer: peer(t, legacy, services["sound"]), service: services["sound"], upstream: sound, proxy: proxy}
	calls := func() (median, worst time.Duration) {
		var took []time.Duration
		for range 20 {
			began := time.Now()
			good.works(t)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2], took[len(took)-1]
	}
	aloneMedian, aloneWorst := calls()

	// Many calls to the sick, by name: nobody has listed their tools.
	var work sync.WaitGroup
	for name := range sick {
		for range 8 {
			work.Go(func() {
				if err := operate(t, services[name], upstream.ToolPlain, `{"arguments":{}}`); err == nil {
					t.Errorf("%s works", name)
				}
			})
		}
	}
	median, worst := calls()
	t.Logf("a call to the sound one takes %v, at most %v; before it was %v and %v", median, worst, aloneMedian, aloneWorst)
	require.Less(t, median, 5*time.Second)
	require.Less(t, worst, 20*time.Second, "a blocked endpoint would take a minute")
	work.Wait()

	for name, u := range sick {
		u.Fault(t)
		if u.URL != "" {
			u.Start(t)
		}
		began := time.Now()
		p := path{Peer: peer(t, legacy, services[name]), service: services[name], upstream: u, proxy: proxy}
		awaitTools(t, p.Peer)
		p.works(t)
		t.Logf("%s is served after %v", name, time.Since(began))
		require.Less(t, time.Since(began), 45*time.Second, "the endpoint was blocked")
	}
}

// TestCallsAtOnce: calls of one caller and of many, to a server that can and to one
// that takes one after the other; each ends, and ends right.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, _ way, p path) {
		t.Helper()
		var calls []*harness.Pending
		for i := range 15 {
			calls = append(calls, p.StartTool(t, "echo", fmt.Sprintf(`{"n":%d}`, i)))
		}
		for i, call := range calls {
			harness.RequireExact(t, fmt.Sprintf(`{"n":%d}`, i), string(call.Answer(t).ToolResult(t).Structured))
		}
	})
}
