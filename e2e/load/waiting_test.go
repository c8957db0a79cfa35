package load_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// What a call that waits may take of the connector's memory, its HTTP connection
// included, and what the connector may keep beside that. The race detector multiplies
// both.
const (
	memoryPerCall = 256 << 10
	memoryBeside  = 64 << 20
	raceFactor    = 6
)

// patience is how long many calls may take. On a busy machine a handler may be late
// six times in a row, and the server blocks its endpoint for a minute then, more than
// once.
func patience(n int) time.Duration { return 4*harness.Patience + time.Duration(n)*300*time.Millisecond }

// await waits for a condition that many calls have to meet.
func await(t *testing.T, n int, what string, condition func() bool) {
	t.Helper()
	end := time.After(patience(n))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-end:
			require.FailNow(t, "not in time: "+what)
		}
	}
}

// startGates calls gate n times at once, from a number on. Each call is an HTTP
// connection of its own.
func startGates(t *testing.T, p *harness.Peer, from, n int) []*harness.Pending {
	t.Helper()
	pending := make([]*harness.Pending, n)
	errs := make([]error, n)
	var sent sync.WaitGroup
	for i := range n {
		sent.Go(func() {
			pending[i], errs[i] = p.TryRequest("tools/call", harness.ToolParams(toolGate, fmt.Sprintf(`{"call":%d}`, from+i)),
				fmt.Sprintf(`"progressToken":%d`, from+i))
		})
	}
	sent.Wait()
	for i := range n {
		require.NoError(t, errs[i])
		require.Equal(t, 200, pending[i].Exchange.Status, "%s", pending[i].Exchange.Body())
		t.Cleanup(pending[i].Exchange.Close)
	}
	return pending
}

// noneAnswered wants no call to be answered yet.
func noneAnswered(t *testing.T, pending []*harness.Pending) {
	t.Helper()
	for _, call := range pending {
		m, ok := call.Find(0, harness.IsAnswer(call.ID))
		require.False(t, ok, "an answer too early: %s", m.Raw)
	}
}

// answeredRight wants the calls to be answered, each with its own result.
func answeredRight(t *testing.T, pending []*harness.Pending, from int) {
	t.Helper()
	for i, call := range pending {
		m, ok := call.Find(patience(len(pending)), harness.IsAnswer(call.ID))
		require.True(t, ok, "call %d has no answer: %s", from+i, call.Exchange.Body())
		r := m.ToolResult(t)
		require.False(t, r.IsError, "%s", r.Raw)
		var got gateArguments
		require.NoError(t, json.Unmarshal(r.Structured, &got), "%s", r.Raw)
		require.Equal(t, from+i, got.Call, "the answer to another call")
	}
}

// startConnector returns when the tools are known.
func startConnector(t *testing.T, server *harness.Temporal, s *service, args ...string) (*harness.HTTP, *harness.Peer) {
	t.Helper()
	c := server.StartHTTP(t, append([]string{"--service", s.name, "--wait-budget", "1h", "--log-level", "info"}, args...)...)
	p := c.Speak(harness.Revision2025June)
	harness.Until(t, func() bool { return len(p.ListTools(t).Tools) >= 2 })
	return c, p
}

// idle is what a connector has open that nobody asks for anything.
type idle struct{ files, goroutines, memory int }

// atRest starts a connector for its figures alone.
func atRest(t *testing.T, server *harness.Temporal, s *service) idle {
	t.Helper()
	c, p := startConnector(t, server, s)
	p.Tool(t, toolEcho, `{}`)
	at := idle{files: c.Files(), memory: c.RSS()}
	at.goroutines = len(c.Goroutines(t))
	require.NotZero(t, at.goroutines)
	return at
}

// few is by how much the figures of a connector may differ from another's at rest.
const few = 10

// backAtRest wants a connector to hold no more than one that has just started, and ends
// it.
func backAtRest(t *testing.T, c *harness.HTTP, at idle) {
	t.Helper()
	await(t, 0, "the connector closes its connections", func() bool { return c.Files() <= at.files+few })
	stacks := c.Goroutines(t)
	require.LessOrEqual(t, len(stacks), at.goroutines+few, "goroutines leak:\n%s", strings.Join(stacks, "\n\n"))
}

// TestWaitingCalls: as many calls at once as one connector is to hold, over and over.
// Each is answered right and has run once; what waits costs a bounded amount of memory,
// keeps nobody else from being answered, and leaves nothing behind.
func TestWaitingCalls(t *testing.T) { //nolint:paralleltest // it measures, and takes all that there is
	const rounds = 2
	server := harness.Shared(t)
	s := startService(t, server)
	at := atRest(t, server, s)
	c, p := startConnector(t, server, s)
	n := calls(t)
	peaks := make([]int, rounds)
	for round := range rounds {
		s.shut()
		began := time.Now()
		pending := startGates(t, p, round*n, n)
		t.Cleanup(func() { explain(t, server, s, pending, round*n) })
		await(t, n, "all calls have begun", func() bool { return s.begun() == (round+1)*n })
		waiting := time.Since(began)
		peaks[round] = c.RSS()

		short := time.Now()
		require.False(t, p.Tool(t, toolEcho, `{}`).IsError)
		t.Logf("%d calls wait after %v; a short one beside them took %v", n, waiting.Round(time.Millisecond), time.Since(short).Round(time.Millisecond))

		began = time.Now()
		s.open()
		answeredRight(t, pending, round*n)
		t.Logf("all were answered %v after the gate opened; %d MiB at rest, %d MiB while they waited (%d KiB a call), %d MiB after",
			time.Since(began).Round(time.Millisecond), at.memory>>20, peaks[round]>>20, (peaks[round]-at.memory)/n>>10, c.RSS()>>20)
	}
	s.once(t, rounds*n)

	limit, growth := memoryBeside+n*memoryPerCall, peaks[0]/4+memoryBeside/4
	if harness.Race {
		limit, growth = limit*raceFactor, 2*growth
	}
	require.LessOrEqual(t, peaks[0], at.memory+limit)
	require.LessOrEqual(t, peaks[1], peaks[0]+growth, "the second round takes more memory than the first one")
	backAtRest(t, c, at)
}
