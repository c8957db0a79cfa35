package proxy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestKillAtEachPoint: kill -9 of the proxy at the points of a call that can be held.
func TestKillAtEachPoint(t *testing.T) {
	t.Parallel()

	t.Run("before the start", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t))
		p.works(t)
		p.proxy.Kill()
		call := p.start(t, upstream.ToolPlain, upstream.Script{Key: "k"})
		_, early := call.Find(500*time.Millisecond, harness.IsAnswer(call.ID))
		require.False(t, early)
		p.proxy.Start(t)
		require.Equal(t, "done k", call.Answer(t).ToolResult(t).Text(t))
		require.Equal(t, 1, p.upstream.Runs(t, "k"))
	})
	t.Run("after the start, before it is sent", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.PrepareUpstream(t, "--protocols", legacy)) // a session of its own for this caller
		awaitTools(t, p.Peer)
		starts := len(p.upstream.Entries(t, upstream.EventStart))
		p.upstream.Fault(t, upstream.Fault{Name: upstream.FaultSilent})
		call := p.start(t, upstream.ToolPlain, upstream.Script{Key: "k"})
		harness.Until(t, func() bool { return len(p.upstream.Entries(t, upstream.EventStart)) > starts })
		p.proxy.Kill()
		p.upstream.Fault(t)
		p.proxy.Start(t)
		r := call.Answer(t).ToolResult(t)
		require.Equal(t, "done k", r.Text(t), "it was not sent, so it runs")
		require.Equal(t, 1, p.upstream.Runs(t, "k"))
	})
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t))
		calls := map[string]*harness.Pending{}
		for tool := range mayRepeat {
			calls[tool] = p.start(t, tool, upstream.Script{Key: tool, Wait: p.upstream.File("go")})
		}
		for tool := range mayRepeat {
			p.upstream.AwaitRun(t, tool)
		}
		p.proxy.Kill()
		p.upstream.Release(t, "go")
		p.proxy.Start(t)
		for tool, repeat := range mayRepeat {
			r := calls[tool].Answer(t).ToolResult(t)
			if repeat {
				require.Equal(t, "done "+tool, r.Text(t))
				require.Equal(t, 2, p.upstream.Runs(t, tool))
			} else {
				outcomeUnknown(t, r)
				require.Equal(t, 1, p.upstream.Runs(t, tool))
			}
		}
	})
}

// TestKills: kill -9 of the proxy, of the upstream, and of both, at random points of
// 200 calls. Each call ends; the effect of a tool that must not be repeated is there
// at most once, and exactly once if its call ended well.
func TestKills(t *testing.T) {
	t.Parallel()

	const calls = 50
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round, victims := range []string{"proxy", "proxy and its children", "upstream", "both"} {
		t.Run(victims, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, uint64(round)))
			stdio := victims == "proxy and its children"
			u := harness.PrepareUpstream(t, "--protocols", legacy)
			if !stdio {
				u = harness.StartUpstream(t)
			}
			p := through(t, u, harness.ProxyServer{"session": "shared"})
			p.Peer = harness.Shared(t).StartStdio(t, "--service", p.service).Speak(t, legacy) // with tools to read results
			awaitTools(t, p.Peer)
			tally := kills(t, random, p, calls, func() {
				if victims != "upstream" {
					p.proxy.Kill()
				}
				if victims == "upstream" || victims == "both" {
					u.Kill()
					u.Start(t)
				}
				if victims != "upstream" {
					p.proxy.Start(t)
				}
			})
			t.Logf("%d calls, %d kills: %s", calls, tally.kills, tally)
			p.works(t)
		})
	}
}

// TestTemporalRestarts: kill -9 of a Temporal with a durable store, and its return.
// Calls under way end, and nothing that must not be repeated is.
func TestTemporalRestarts(t *testing.T) {
	t.Parallel()

	temporal := harness.StartDurableTemporal(t)
	u := harness.StartUpstream(t)
	service := harness.Unique("up")
	proxy := temporal.StartProxy(t, map[string]harness.ProxyServer{service: u.Server(quick)})
	p := path{Peer: temporal.StartStdio(t, "--service", service).Speak(t, legacy), service: service, upstream: u, proxy: proxy}
	awaitTools(t, p.Peer)
	tally := kills(t, rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), p, 40, func() {
		temporal.Kill()
		temporal.Restart(t)
	})
	t.Logf("40 calls, %d kills of Temporal: %s", tally.kills, tally)
	p.works(t)
}

type tally struct {
	kills, done, unknown, failed, repeated, twice int
}

func (c tally) String() string {
	return fmt.Sprintf("%d done, %d of unknown outcome, %d failed; %d that may be repeated ran more than once; 0 lost, %d repeated that may not be",
		c.done, c.unknown, c.failed, c.repeated, c.twice)
}

// kills makes so many calls while it kills now and then.
func kills(t *testing.T, random *rand.Rand, p path, n int, kill func()) (c tally) {
	t.Helper()
	tools := []string{upstream.ToolPlain, upstream.ToolRead, upstream.ToolDestroy, upstream.ToolPut}
	type made struct {
		tool, key string
		call      *harness.Pending
	}
	var mu sync.Mutex
	var list []made
	var sender sync.WaitGroup
	sender.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range n {
			mu.Lock()
			m := made{tool: tools[i%len(tools)], key: harness.Unique("kill")}
			s := upstream.Script{Key: m.key, Millis: random.IntN(1500)}
			mu.Unlock()
			m.call = p.start(t, m.tool, s)
			mu.Lock()
			list = append(list, m)
			mu.Unlock()
			<-tick.C
		}
	})
	for range 3 {
		mu.Lock()
		pause := time.Duration(random.IntN(1500)) * time.Millisecond
		mu.Unlock()
		<-time.After(pause)
		kill()
		c.kills++
	}
	sender.Wait()
	require.Len(t, list, n)
	for _, m := range list {
		r := p.outcome(t, m.call.Answer(t).ToolResult(t)) // it ends
		runs := p.upstream.Runs(t, m.key)
		repeat := mayRepeat[m.tool]
		switch {
		case !r.IsError:
			c.done++
			require.Equal(t, "done "+m.key, r.Text(t))
			require.GreaterOrEqual(t, runs, 1)
		case !repeat && failureOf(t, r).Type == "McpOutcomeUnknown":
			c.unknown++
		default:
			c.failed++
			require.False(t, repeat, "%s is lost: %s", m.tool, r.Raw)
			require.Zero(t, runs, "it says that it has not run: %s", r.Raw)
		}
		if runs > 1 {
			if repeat {
				c.repeated++
			} else {
				c.twice++
			}
		}
	}
	require.Zero(t, c.twice, "tools that must not be repeated were")
	require.Zero(t, c.failed, "every call is either done or of unknown outcome")
	return c
}

// outcome reads the result of a call that is still running until it has ended: a
// killed worker can cost its endpoint a minute.
func (p path) outcome(t *testing.T, r harness.ToolResult) harness.ToolResult {
	t.Helper()
	for range 10 {
		var state harness.Running
		if r.IsError || r.Structured == nil || json.Unmarshal(r.Structured, &state) != nil || state.Status != "running" {
			return r
		}
		t.Logf("%s takes more than its wait", state.OperationID)
		r = p.Tool(t, "get_operation_result", `{"operation_id":"`+state.OperationID+`","wait_seconds":30}`)
	}
	require.Fail(t, "a call does not end", "%s", r.Raw)
	return r
}
