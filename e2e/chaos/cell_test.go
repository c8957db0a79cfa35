package chaos_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// The milliseconds that a tool takes, from and to: those that a fault is to meet are
// still at work when some have begun.
var (
	brief  = [2]int{0, 500}
	steady = [2]int{1000, 2500}
)

// run makes so many calls in rounds, breaks the cell's target once in each, and
// returns what became of the calls.
func (w *world) run(t *testing.T, c cell, calls, batch int) *tally {
	t.Helper()
	sum := &tally{cell: c}
	for round := 0; calls > 0; round++ {
		n := min(calls, batch)
		calls -= n
		list := make([]*call, n)
		for i := range list {
			list[i] = newCall(kind(i%int(kinds)), c.takes(), i/int(kinds)%2 == 0)
		}
		w.round(t, c, round, list, sum)
		w.ask(list)
		sum.add(t, w, list)
	}
	return sum
}

func (c cell) takes() [2]int {
	if c.phase == inFlight {
		return steady
	}
	return brief
}

// round meets the calls with the fault.
func (w *world) round(t *testing.T, c cell, round int, list []*call, sum *tally) {
	t.Helper()
	newClient := func(i int) *mcpClient {
		return w.newClient(harness.Revisions[1+i/2%2])
	}
	if c.target.name == "connector" && c.fault.name == "network cut" {
		newClient = func(int) *mcpClient { return w.newRemoteClient() }
		for _, call := range list {
			// What the client is not told of in time, it cannot find without a key.
			call.named = true
		}
	}
	var running sync.WaitGroup
	each := func(do func(i int, call *call)) {
		for i, call := range list {
			running.Go(func() { do(i, call) })
		}
	}
	stay := func(i int, call *call) { newClient(i).make(call) }

	switch c.phase {
	case beforeStart:
		c.begin(t, w, c.target)
		each(stay)
		c.sent(t, list)
	case inFlight:
		each(stay)
		want := 1 + rand.IntN(1+len(list)/2)
		w.until(t, func() bool {
			sum, least := w.executed(t, list)
			return sum >= want && least > 0
		})
		c.begin(t, w, c.target)
	case afterCompletion:
		each(func(_ int, call *call) { w.newLeavingClient().make(call) })
		running.Wait()
		w.closed(t, list)
		c.begin(t, w, c.target)
		each(func(i int, call *call) { call.began = time.Now(); newClient(i).read(call) })
	}
	<-time.After(c.lasts())
	mended := time.Now()
	c.end(t, w, c.target, 1+round+int(c.phase))
	fresh := w.healthy(t)
	sum.recovered = append(sum.recovered, time.Since(mended))
	running.Wait()
	sum.add(t, w, fresh)
}

// ask asks once more for the answers that are missing: a client that has given up can
// come back.
func (w *world) ask(list []*call) {
	var all sync.WaitGroup
	for _, call := range list {
		if call.outcome == lost {
			all.Go(func() { w.newClient(harness.Revision2025November).make(call) })
		}
	}
	all.Wait()
}

// sent waits until the calls have been sent. Where the connector takes connections
// and answers nobody, they have been after a moment, and nothing tells.
func (c cell) sent(t *testing.T, list []*call) {
	t.Helper()
	mute := c.target.name == "connector" && c.holds
	limit := patience
	if mute {
		limit = 300 * time.Millisecond
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	for _, call := range list {
		select {
		case <-call.sent:
		case <-late.C:
			require.True(t, mute, "not every call was sent")
			return
		}
	}
}

// executed counts the calls that have been executed: all, and those of the kind with
// the fewest.
func (w *world) executed(t *testing.T, list []*call) (sum, least int) {
	t.Helper()
	w.ledger.read(t)
	var of [kinds]int
	for _, call := range list {
		if w.ledger.executions(call.key) > 0 {
			of[call.kind]++
			sum++
		}
	}
	return sum, slices.Min(of[:min(len(list), len(of))])
}

func (w *world) until(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !condition(); <-tick.C {
		require.True(t, time.Now().Before(end), "the condition is not met in time")
	}
}

// closed waits until Temporal has the end of every call.
func (w *world) closed(t *testing.T, list []*call) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(patience, cancel).Stop() // no deadline: the SDK would poll without end in its last second
	var all sync.WaitGroup
	for _, call := range list {
		require.NotEmpty(t, call.id, "the first progress notification names the operation")
		all.Go(func() {
			h := w.temporal.Client(t).GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: call.id})
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			// The ID goes out before the start, which the connector makes though the
			// client has left. Any other end is one.
			for errors.As(h.Get(ctx, nil), new(*serviceerror.NotFound)) && ctx.Err() == nil {
				<-tick.C
			}
		})
	}
	all.Wait()
	require.NoError(t, ctx.Err(), "not every call has ended")
	sum, _ := w.executed(t, list)
	require.Equal(t, len(list), sum, "not every call that has ended has run")
}
