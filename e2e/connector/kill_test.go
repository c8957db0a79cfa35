package connector_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// The kill test makes killRounds × killCalls calls over each transport, and one
// connector dies in each round.
const (
	killRounds = 2
	killCalls  = 50
)

// TestKillLosesNoCall: kill -9 of the connector at a random point. Every call that
// was started is found by the client's means, its right result is read through
// another connector, and each ran once.
func TestKillLosesNoCall(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range killRounds {
		t.Run(fmt.Sprintf("stdio %d", round), func(t *testing.T) {
			t.Parallel()
			k := newKill(t, kit, seed, 2*round)
			args := []string{"--service", kit.Name, "--caller", harness.Unique("killed")}
			p := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025November)
			p.ListTools(t)
			k.run(p, p.Stdio.Kill)
			k.settle()

			// The client lost every ID: it lists its calls.
			q := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025November)
			ids := map[int]string{}
			harness.Until(t, func() bool {
				for _, call := range q.Operations(t, `{"limit":100,"tool":"slow"}`) {
					ids[k.number(call.Arguments)] = call.OperationID
				}
				return len(ids) >= k.started()
			})
			k.read(q, ids)
			k.count(ids)
		})
		t.Run(fmt.Sprintf("http %d", round), func(t *testing.T) {
			t.Parallel()
			k := newKill(t, kit, seed, 2*round+1)
			server := httpServer(t)
			p := server.Speak(harness.Revision2026)
			p.ListTools(t)
			k.run(p, server.Kill)

			// The first progress notification of a call has its ID.
			ids := map[int]string{}
			for i, call := range k.calls {
				if call == nil {
					continue
				}
				call.AwaitEnd(t)
				if m, ok := call.Find(0, harness.IsNotification("notifications/progress")); ok {
					ids[i] = progressOf(t, m).Meta["io.temporal/operationId"]
				}
			}
			k.settle()
			k.read(httpServer(t).Speak(harness.Revision2026), ids)
			k.count(ids)
		})
	}
}

// kill is one round.
type kill struct {
	t      *testing.T
	kit    *harness.Service
	line   string
	random *rand.Rand
	calls  []*harness.Pending // nil for those that it did not take
}

func newKill(t *testing.T, kit *harness.Service, seed uint64, round int) *kill {
	t.Helper()
	return &kill{t: t, kit: kit, line: harness.Unique("kill"), random: rand.New(rand.NewPCG(seed, uint64(round)))}
}

// run sends one call after the other until the connector is gone, which is some
// time between the first and the last of them: calls are being started then,
// waited for, and answered.
func (k *kill) run(p *harness.Peer, die func()) {
	const pace = 40 * time.Millisecond
	until := time.Duration(k.random.Int64N(int64(killCalls * pace)))
	died := make(chan struct{})
	time.AfterFunc(until, func() { die(); close(died) })
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var sent sync.WaitGroup
	k.calls = make([]*harness.Pending, killCalls)
	for i := range killCalls {
		args := fmt.Sprintf(`{"line":"%s/%d","seconds":%.3f,"value":{"call":%d,"exact":9007199254740993.0}}`, k.line, i, 2*k.random.Float64(), i)
		sent.Go(func() { // a POST returns with the first byte of its answer
			if call, err := p.TryRequest("tools/call", harness.ToolParams("slow", args), fmt.Sprintf(`"progressToken":%d`, i)); err == nil {
				k.calls[i] = call
			}
		})
		<-tick.C
	}
	sent.Wait()
	<-died
	k.t.Logf("killed after %v", until.Round(time.Millisecond))
}

// number is the call's place in the round, from its arguments in short.
func (k *kill) number(arguments string) int {
	_, rest, found := strings.Cut(arguments, k.line+"/")
	require.True(k.t, found, arguments)
	digits, _, _ := strings.Cut(rest, `"`)
	n, err := strconv.Atoi(digits)
	require.NoError(k.t, err)
	return n
}

// started counts the calls that have had their effect.
func (k *kill) started() int {
	n := 0
	for _, line := range k.kit.AllEffects(k.t) {
		if strings.HasPrefix(line, k.line+"/") {
			n++
		}
	}
	return n
}

// settle waits until no further call has its effect.
func (k *kill) settle() {
	last, since := -1, time.Now()
	harness.Until(k.t, func() bool {
		if n := k.started(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
}

// read reads every result through another connector. An ID that Temporal does not
// know is that of a call whose start the connector did not live to see; it must not
// have run.
func (k *kill) read(p *harness.Peer, ids map[int]string) {
	pending := map[int]*harness.Pending{}
	for i, id := range ids {
		pending[i] = p.StartTool(k.t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":30}`)
	}
	for i, call := range pending {
		r := call.Answer(k.t).ToolResult(k.t)
		if r.IsError && strings.Contains(r.Text(k.t), "Temporal has no operation") {
			k.t.Logf("call %d was never started", i)
			delete(ids, i)
			continue
		}
		harness.RequireExact(k.t, fmt.Sprintf(`{"call":%d,"exact":9007199254740993.0}`, i), string(r.Structured))
	}
}

// count wants every call that ran to be found, and to have run once.
func (k *kill) count(ids map[int]string) {
	times := map[int]int{}
	for _, line := range k.kit.AllEffects(k.t) {
		if digits, ok := strings.CutPrefix(line, k.line+"/"); ok {
			n, err := strconv.Atoi(digits)
			require.NoError(k.t, err)
			times[n]++
		}
	}
	require.Len(k.t, times, len(ids))
	for i, n := range times {
		require.Equal(k.t, 1, n, "call %d", i)
		require.Contains(k.t, ids, i)
	}
	k.t.Logf("%d calls had started, %d were found, each ran once", len(times), len(ids))
}
