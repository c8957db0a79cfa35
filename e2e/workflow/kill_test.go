package workflow_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

const killCalls = 40

// slowErrands are calls of the tool slow, which writes a line, sleeps and returns
// a value that no float64 holds.
func slowErrands(line string, seconds func(i int) float64) (all []errand) {
	for i := range killCalls {
		all = append(all, errand{Tool: "slow", Args: json.RawMessage(fmt.Sprintf(
			`{"line":"%s/%d","seconds":%.3f,"value":{"call":%d,"exact":9007199254740993.0}}`, line, i, seconds(i), i))})
	}
	return all
}

// requireResults wants every call to have ended with its own value.
func requireResults(t *testing.T, endings []ending) {
	t.Helper()
	require.Len(t, endings, killCalls)
	for i, e := range endings {
		r, err := contract.DecodeResult(json.RawMessage(e.Result))
		require.NoError(t, err, "call %d: %+v", i, e)
		require.False(t, r.IsError(), "call %d: %s", i, e.Result)
		harness.RequireExact(t, fmt.Sprintf(`{"call":%d,"exact":9007199254740993.0}`, i), string(r.Structured()))
	}
}

// TestAgentKilled: kill -9 of the agent's Worker, several times, at random points of
// forty calls. The Workflow gets every result, each once, and each tool ran once.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	temporal, kit := harness.Shared(t), harness.SharedService(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := newAgent(t, temporal)
	line := harness.Unique("killed")
	run := a.send(t, list{Services: of(kit), Parallel: true, Errands: slowErrands(line, func(int) float64 { return 4 * random.Float64() })})
	for n := range 3 {
		// At first in the middle of the starts, then in the middle of the ends.
		want := 1 + random.IntN(killCalls/2)
		harness.Until(t, func() bool { return started(t, kit, line) >= want })
		<-time.After(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		t.Logf("kill %d: %d calls have started", n, started(t, kit, line))
		a.kill()
		a.start(t)
	}
	requireResults(t, a.endings(t, run))
	for i := range killCalls {
		require.Equal(t, 1, kit.Effects(t, fmt.Sprintf("%s/%d", line, i)), "call %d", i)
	}
}

func started(t *testing.T, kit *harness.Service, line string) (n int) {
	t.Helper()
	for _, l := range kit.AllEffects(t) {
		if strings.HasPrefix(l, line+"/") {
			n++
		}
	}
	return n
}

// TestAgentWithoutCache: a Worker that keeps no Workflow replays it with every
// task, and comes to the same each time.
func TestAgentWithoutCache(t *testing.T) {
	t.Parallel()
	temporal, kit := harness.Shared(t), harness.SharedService(t)
	a := newAgentOf(t, temporal, 0)
	run := a.send(t, list{Services: of(kit), Parallel: true, Errands: slowErrands(harness.Unique("nocache"), func(i int) float64 { return float64(i%5) / 5 })})
	requireResults(t, a.endings(t, run))
	history := temporal.Client(t).GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, 1)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		require.Nil(t, event.GetWorkflowTaskFailedEventAttributes(), "%v", event)
	}
}

// TestAgentAway: calls end while no agent runs, and it finds the results later.
func TestAgentAway(t *testing.T) {
	t.Parallel()
	temporal, kit := harness.Shared(t), harness.SharedService(t)
	a := newAgent(t, temporal)
	line := harness.Unique("away")
	run := a.send(t, list{Services: of(kit), Errands: []errand{{Tool: "slow", Args: json.RawMessage(`{"line":"` + line + `","seconds":1,"value":7}`)}}})
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	a.kill()
	harness.Until(t, func() bool {
		history := temporal.Client(t).GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, 1)
		for history.HasNext() {
			event, err := history.Next()
			require.NoError(t, err)
			// The first that completes is the list.
			if a := event.GetNexusOperationCompletedEventAttributes(); a != nil && string(a.GetResult().GetData()) == "7" {
				return true
			}
		}
		return false
	})
	a.start(t)
	endings := a.endings(t, run)
	require.JSONEq(t, `{"content":[{"type":"text","text":"7"}]}`, endings[0].Result)
	require.Equal(t, 1, kit.Effects(t, line))
}

// TestServiceKilled: kill -9 of the tool service in the middle. What runs behind the
// calls is durable, so they go on when it is back.
func TestServiceKilled(t *testing.T) {
	t.Parallel()
	temporal := harness.Shared(t)
	kit := temporal.StartService(t)
	a := newAgent(t, temporal)
	line := harness.Unique("service")
	run := a.send(t, list{Services: of(kit), Parallel: true, Errands: slowErrands(line, func(i int) float64 { return float64(i%3) / 2 })})
	harness.Until(t, func() bool { return started(t, kit, line) > 10 })
	kit.Kill()
	kit.Start(t)
	requireResults(t, a.endings(t, run)) // what the service's own activities repeat is its matter
}
