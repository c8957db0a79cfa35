package mcpworkflow

import (
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"go.temporal.io/sdk/workflow"
)

// run is what all clients of one Workflow run share: how many Nexus operations
// are pending, and who waits to start one. Only the coroutines of the run touch
// it, one at a time.
type run struct {
	pending int
	queue   []*waiter
	// bytes is what the inputs of operations take that may go out with one
	// Workflow task.
	bytes   int
	pausing bool
}

// waiter wants to start one operation.
type waiter struct {
	limit int // most operations pending, this one included
	bytes int
	grant workflow.Settable
}

// maxTaskBytes bounds the inputs of the operations that go out with one Workflow
// task: the server takes 4 MiB in one message, and fails the task again and again
// over that.
const maxTaskBytes = 3 << 20

// acquire waits for the right to start an operation, first come, first served. It
// returns the error of ctx if that is cancelled first.
func (r *run) acquire(ctx workflow.Context, limit, bytes int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	granted, grant := workflow.NewFuture(ctx)
	w := &waiter{limit: limit, bytes: bytes, grant: grant}
	r.queue = append(r.queue, w)
	r.next(ctx)
	err := wait(ctx, granted)
	if err != nil {
		r.queue = slices.DeleteFunc(r.queue, func(o *waiter) bool { return o == w })
		r.next(ctx)
	}
	return err
}

// wait returns nil once the future is ready, or the error of ctx if that is
// cancelled before.
func wait(ctx workflow.Context, f workflow.Future) error {
	if !f.IsReady() {
		workflow.NewSelector(ctx).
			AddFuture(f, func(workflow.Future) {}).
			AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
	}
	if !f.IsReady() {
		return ctx.Err()
	}
	return nil
}

// release gives the right back.
func (r *run) release(ctx workflow.Context) {
	if r.pending--; r.pending == 0 {
		r.bytes = 0 // all that went out has come back
	}
	r.next(ctx)
}

// next grants whom there is room for, in order.
func (r *run) next(ctx workflow.Context) {
	for len(r.queue) > 0 && r.pending < r.queue[0].limit {
		w := r.queue[0]
		if r.bytes > 0 && r.bytes+w.bytes > maxTaskBytes {
			r.pause(ctx)
			return
		}
		r.queue = r.queue[1:]
		r.pending++
		r.bytes += w.bytes
		w.grant.SetValue(nil)
	}
}

// pause goes on in the next Workflow task, which a timer brings about.
func (r *run) pause(ctx workflow.Context) {
	if r.pausing {
		return
	}
	r.pausing = true
	calm, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(calm, func(ctx workflow.Context) {
		_ = workflow.Sleep(ctx, time.Millisecond) // calm is never cancelled
		r.pausing, r.bytes = false, 0
		r.next(ctx)
	})
}

// runs finds the run of a context. Both sides are weak: a Workflow that leaves
// the Worker's cache takes its run along, and comes back as another one. A run
// that nobody holds has nothing pending, so a new one is the same: nothing that a
// Workflow does depends on when memory is freed.
var runs = struct {
	mu sync.Mutex
	of map[weak.Pointer[workflow.Info]]weak.Pointer[run]
}{of: map[weak.Pointer[workflow.Info]]weak.Pointer[run]{}}

// runOf returns the run of the context. The SDK has one Info for each Workflow
// run that it keeps in memory.
//
//workflowcheck:ignore
func runOf(ctx workflow.Context) *run {
	info := workflow.GetInfo(ctx)
	key := weak.Make(info)
	runs.mu.Lock()
	defer runs.mu.Unlock()
	entry, known := runs.of[key]
	if r := entry.Value(); r != nil {
		return r
	}
	r := &run{}
	runs.of[key] = weak.Make(r)
	if !known {
		runtime.AddCleanup(info, forget, key)
	}
	return r
}

//workflowcheck:ignore
func forget(key weak.Pointer[workflow.Info]) {
	runs.mu.Lock()
	defer runs.mu.Unlock()
	delete(runs.of, key)
}
