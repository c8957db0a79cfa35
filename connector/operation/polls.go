package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// polls waits for operations. A long poll costs a deep goroutine stack here and
// one of the frontend's slots there (1,200 per namespace and instance by
// default), so only so many are open. Further waits look once whether their
// operation has closed already, and are parked, which costs next to nothing: one
// visibility query tells which of them have closed since, and because visibility
// may lag or fail, parked waits also take turns with those that hold a long poll.
type polls struct {
	temporal client.Client
	looks    pool

	mu      sync.Mutex
	open    map[*wait]struct{} // hold a long poll
	parked  []*wait            // oldest first
	tending bool
}

const (
	maxOpenPolls  = 128
	maxLooks      = 16
	tendInterval  = 500 * time.Millisecond
	turnLength    = 10 * time.Second // an open poll gives way after it, if another wait is parked
	closedOverlap = 10 * time.Second // clocks and visibility lag
)

// wait is one operation that somebody waits for.
type wait struct {
	id     string
	run    string // empty where it is not known
	ctx    context.Context
	opened time.Time
	yield  context.CancelCauseFunc // ends the open poll
	output converter.RawValue
	err    error
	done   chan struct{}
}

var errTurnOver = errors.New("operation: another wait takes its turn")

// get returns the output of a closed operation, or the error of the poll. It
// returns soon after ctx ends, which must have no deadline.
func (p *polls) get(ctx context.Context, id, run string) (converter.RawValue, error) {
	w := &wait{id: id, run: run, ctx: ctx, done: make(chan struct{})}
	p.mu.Lock()
	full := len(p.open) >= maxOpenPolls
	if full {
		p.mu.Unlock()
		closed := p.closed(w) // its poll would return at once
		p.mu.Lock()
		full = len(p.open) >= maxOpenPolls && !closed
	}
	if full {
		p.park(w)
	} else {
		p.start(w)
	}
	p.mu.Unlock()
	select {
	case <-w.done:
		return w.output, w.err
	case <-ctx.Done():
		p.forget(w)
		return converter.RawValue{}, context.Cause(ctx)
	}
}

func (p *polls) handle(w *wait) client.NexusOperationHandle {
	return p.temporal.GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: w.id, RunID: w.run})
}

// closed reports whether the operation has closed. Not to know is no error.
func (p *polls) closed(w *wait) bool {
	return p.looks.do(w.ctx, func() error {
		d, err := p.handle(w).Describe(w.ctx, client.DescribeNexusOperationOptions{})
		if err == nil && statuses[d.Status] == Running {
			err = ErrRunning
		}
		return err
	}) == nil
}

// start opens a long poll. p.mu is held.
func (p *polls) start(w *wait) {
	ctx, cancel := context.WithCancelCause(w.ctx)
	w.opened, w.yield = time.Now(), cancel
	p.open[w] = struct{}{}
	go func() {
		h := p.handle(w)
		w.err = h.Get(ctx, nil)
		parked := p.polled(w, w.err != nil && errors.Is(context.Cause(ctx), errTurnOver))
		cancel(nil)
		if parked {
			return
		}
		// The handle has the outcome, so this asks the codec alone. One that hangs
		// holds up this wait, and no poll of another.
		var undecoded error
		if w.err == nil {
			undecoded = h.Get(w.ctx, &w.output)
		} else {
			undecoded = decodable(w.err)
		}
		if undecoded != nil {
			w.err = &codecError{undecoded}
		}
		close(w.done)
	}()
}

// decodable returns why the answer of a tool that a failure carries in its details
// cannot be read. Where the details of a failure are none, its message is all that
// counts.
func decodable(failure error) error {
	for ; failure != nil; failure = errors.Unwrap(failure) {
		app, ok := failure.(*temporal.ApplicationError) //nolint:errorlint // each link of the chain in turn
		if !ok || !app.HasDetails() {
			continue
		}
		if code := contract.Code(app.Type()); code == contract.CodeToolError || code == contract.CodeProtocolError {
			var details converter.RawValue
			return app.Details(&details)
		}
	}
	return nil
}

// polled gives the place of a poll that has ended to others, and parks its wait
// where only its turn is over.
func (p *polls) polled(w *wait, turnOver bool) (parked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, w)
	if parked = turnOver && w.ctx.Err() == nil; parked {
		p.park(w)
	}
	for len(p.parked) > 0 && len(p.open) < maxOpenPolls {
		next := p.parked[0]
		p.parked = p.parked[1:]
		if next.ctx.Err() == nil {
			p.start(next)
		}
	}
	return parked
}

// park puts a wait aside. p.mu is held.
func (p *polls) park(w *wait) {
	p.parked = append(p.parked, w)
	if !p.tending {
		p.tending = true
		go p.tend()
	}
}

// forget drops a parked wait that nobody waits for any more.
func (p *polls) forget(w *wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range p.parked {
		if o == w {
			p.parked = append(p.parked[:i:i], p.parked[i+1:]...)
			return
		}
	}
}

// tend looks after the parked waits until there are none.
func (p *polls) tend() {
	tick := time.NewTicker(tendInterval)
	defer tick.Stop()
	since := time.Now().Add(-closedOverlap)
	for range tick.C {
		p.mu.Lock()
		if len(p.parked) == 0 {
			p.tending = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		closed, last := p.closedSince(since)
		if t := last.Add(-closedOverlap); t.After(since) {
			since = t
		}
		p.mu.Lock()
		p.promote(closed)
		p.takeTurns()
		p.mu.Unlock()
	}
}

// closedSince returns the operations that visibility shows as closed since t,
// and when the last of them did. Not to know is no error.
func (p *polls) closedSince(t time.Time) (ids map[string]bool, last time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ids = map[string]bool{}
	list, err := p.temporal.ListNexusOperations(ctx, client.ListNexusOperationsOptions{Query: fmt.Sprintf(
		`OperationId STARTS_WITH "mcp-" AND ExecutionStatus != "Running" AND CloseTime > %s`, literal(t.UTC().Format(time.RFC3339Nano)))})
	if err != nil {
		return ids, last
	}
	for m, err := range list.Results {
		if err != nil {
			return ids, time.Time{} // what was not read may have closed earlier
		}
		ids[m.OperationID] = true
		if m.CloseTime.After(last) {
			last = m.CloseTime
		}
	}
	return ids, last
}

// promote opens polls for parked waits whose operation has closed: such a poll
// returns at once, so it may go over the bound for a moment. p.mu is held.
func (p *polls) promote(closed map[string]bool) {
	kept := make([]*wait, 0, len(p.parked))
	for _, w := range p.parked {
		if closed[w.id] && len(p.open) < 2*maxOpenPolls {
			p.start(w)
			continue
		}
		kept = append(kept, w)
	}
	p.parked = kept
}

// takeTurns ends as many open polls as there are parked waits, of those that
// have had their turn. p.mu is held.
func (p *polls) takeTurns() {
	n := len(p.parked)
	for w := range p.open {
		if n > 0 && time.Since(w.opened) > turnLength {
			w.yield(errTurnOver)
			n--
		}
	}
}
