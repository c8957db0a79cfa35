package chaos_test

import (
	"fmt"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

// target is a part that breaks.
type target struct {
	name string
	// links are its ways to others, which a network cut severs. The proxy's is that
	// to Temporal alone: it goes on reaching its upstream, which is worse.
	links func(w *world) []*harness.Relay
	child func(w *world) *harness.Process
	start func(t *testing.T, w *world) // again
	// hold is how long a pause or a cut lasts. For whoever heartbeats, or hears
	// heartbeats, it is longer than their timeout.
	hold time.Duration
}

// fault is a way to break.
type fault struct {
	name string
	// begin returns when the part is broken; end, when it has been mended, which
	// says nothing of whether it works again.
	begin func(t *testing.T, w *world, x target)
	end   func(t *testing.T, w *world, x target, round int)
	holds bool // it lasts for the target's hold, and else for a moment
}

// phase is the moment of a call that a fault meets.
type phase int

const (
	beforeStart     phase = iota // the fault is there when the client sends the call
	inFlight                     // the tool runs
	afterCompletion              // the call has ended, its client has yet to read the result
)

var phases = []phase{beforeStart, inFlight, afterCompletion}

func (p phase) String() string {
	return [...]string{"before start", "in flight", "after completion"}[p]
}

// The matrix: every target with every fault at every phase.
var (
	targets = []target{
		{
			name: "connector", hold: 2 * time.Second,
			links: func(w *world) []*harness.Relay { return []*harness.Relay{w.clientLink, w.connectorLink} },
			child: func(w *world) *harness.Process { return w.connector.Process },
			start: func(t *testing.T, w *world) { t.Helper(); w.connector.Start(t) },
		},
		{
			name: "proxy", hold: heartbeat + time.Second,
			links: func(w *world) []*harness.Relay { return []*harness.Relay{w.proxyLink} },
			child: func(w *world) *harness.Process { return w.proxy.Process },
			start: func(t *testing.T, w *world) { t.Helper(); w.proxy.Launch(t) },
		},
		{
			name: "tool worker", hold: heartbeat + time.Second,
			links: func(w *world) []*harness.Relay { return []*harness.Relay{w.toolsLink} },
			child: func(w *world) *harness.Process { return w.tools.process },
			start: func(t *testing.T, w *world) { t.Helper(); w.tools.Start(t) },
		},
		{
			name: "Temporal", hold: heartbeat + time.Second,
			links: func(w *world) []*harness.Relay { return []*harness.Relay{w.connectorLink, w.proxyLink, w.toolsLink} },
			child: func(w *world) *harness.Process { return w.temporal.Child() },
			start: func(t *testing.T, w *world) { t.Helper(); w.temporal.Restart(t) },
		},
		{
			name: "upstream", hold: 2 * time.Second,
			links: func(w *world) []*harness.Relay { return []*harness.Relay{w.upstreamLink} },
			child: func(w *world) *harness.Process { return w.upstream.Child() },
			start: func(t *testing.T, w *world) { t.Helper(); w.upstream.Start(t) },
		},
	}

	faults = []fault{
		{
			name:  "kill -9",
			begin: func(_ *testing.T, w *world, x target) { x.child(w).Kill() },
			end:   func(t *testing.T, w *world, x target, _ int) { t.Helper(); x.start(t, w) },
		},
		{
			name: "stop and start",
			begin: func(t *testing.T, w *world, x target) {
				t.Helper()
				p := x.child(w)
				p.Signal(t, syscall.SIGTERM)
				p.Exit(t)
			},
			end: func(t *testing.T, w *world, x target, _ int) { t.Helper(); x.start(t, w) },
		},
		{
			name: "pause", holds: true,
			begin: func(t *testing.T, w *world, x target) { t.Helper(); x.child(w).Signal(t, syscall.SIGSTOP) },
			end:   func(t *testing.T, w *world, x target, _ int) { t.Helper(); x.child(w).Signal(t, syscall.SIGCONT) },
		},
		{
			name: "network cut", holds: true,
			begin: func(_ *testing.T, w *world, x target) {
				for _, link := range x.links(w) {
					link.Cut()
				}
			},
			// In turns what was held back is lost with its connections, or arrives late.
			end: func(_ *testing.T, w *world, x target, round int) {
				for _, link := range x.links(w) {
					if round%2 == 0 {
						link.Reset()
					} else {
						link.Heal()
					}
				}
			},
		},
	}
)

// cell is one of the matrix.
type cell struct {
	target
	fault
	phase phase
}

func (c cell) String() string { return fmt.Sprintf("%s, %s, %v", c.target.name, c.fault.name, c.phase) }

// matrix returns every cell whose name matches, or a sample of them that has every
// target with every fault, and both with every phase.
func matrix(sample bool, match *regexp.Regexp) (all []cell) {
	for i, x := range targets {
		for j, f := range faults {
			for _, p := range phases {
				c := cell{x, f, p}
				if match.MatchString(c.String()) && (!sample || phases[(i+j)%len(phases)] == p) {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// lasts is how long a fault is there at least.
func (c cell) lasts() time.Duration {
	if c.holds {
		return c.hold
	}
	return 500 * time.Millisecond
}
