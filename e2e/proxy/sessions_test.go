package proxy_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

const legacy = "2025-11-25"

// TestCallersAreKeptApart: what a server keeps for a session is one caller's, and
// stays that caller's from call to call.
func TestCallersAreKeptApart(t *testing.T) {
	t.Parallel()

	for _, http := range []bool{true, false} {
		t.Run(fmt.Sprintf("http %t", http), func(t *testing.T) {
			t.Parallel()
			var u *harness.Upstream
			if http {
				u = harness.StartUpstream(t, "--protocols", legacy)
			} else {
				u = harness.PrepareUpstream(t, "--protocols", legacy)
			}
			first := through(t, u)
			callers := []*harness.Peer{first.Peer, peer(t, harness.Revision2026, first.service), peer(t, legacy, first.service)}
			var work sync.WaitGroup
			for i, caller := range callers {
				work.Go(func() {
					for round := range 5 {
						place := fmt.Sprintf("place %d of caller %d", round, i)
						if got := caller.Tool(t, "set_location", `{"location":"`+place+`"}`); got.IsError {
							t.Errorf("%s", got.Raw)
							return
						}
						if got := caller.Tool(t, "get_location", `{}`).Text(t); got != place {
							t.Errorf("caller %d: %q, want %q", i, got, place)
						}
					}
				})
			}
			work.Wait()
			sessions := map[string]bool{}
			for _, e := range u.Entries(t, upstream.EventRun) {
				sessions[e.Session] = true
			}
			require.GreaterOrEqual(t, len(sessions), len(callers))
			u.NoViolation(t)

			// One who does not say who calls gets a session that knows nothing.
			require.NoError(t, operate(t, first.service, "set_location", `{"arguments":{"location":"nobody's"}}`))
			require.NoError(t, operate(t, first.service, "get_location", `{"arguments":{}}`))
			runs := u.Entries(t, upstream.EventRun)
			last, before := runs[len(runs)-1], runs[len(runs)-2]
			require.Empty(t, last.Key)
			require.NotEqual(t, before.Session, last.Session)
		})
	}
}

// TestMoreCallersThanSessions: a session in use is nobody else's, one that is idle
// makes room, and who finds none waits.
func TestMoreCallersThanSessions(t *testing.T) {
	t.Parallel()

	p := through(t, harness.PrepareUpstream(t, "--protocols", legacy), harness.ProxyServer{"max_sessions": 2})
	callers := []path{p}
	for range 3 {
		q := p
		q.Peer = peer(t, legacy, p.service)
		callers = append(callers, q)
	}
	var held []*harness.Pending
	for i, c := range callers {
		held = append(held, c.start(t, upstream.ToolPlain, upstream.Script{Key: fmt.Sprint("caller ", i), Wait: p.upstream.File("go")}))
	}
	running := func() (n int) {
		for i := range callers {
			n += p.upstream.Runs(t, fmt.Sprint("caller ", i))
		}
		return n
	}
	harness.Until(t, func() bool { return running() == 2 })
	_, early := p.Stdio.Find(2*time.Second, func(harness.Message) bool { return running() > 2 })
	require.False(t, early)
	require.Equal(t, 2, running(), "more calls than sessions")
	p.upstream.Release(t, "go")
	for i, call := range held {
		require.Equal(t, fmt.Sprint("done caller ", i), call.Answer(t).ToolResult(t).Text(t))
	}
	for _, c := range callers {
		c.works(t)
	}
	p.upstream.NoViolation(t)
}

// TestSharedSession: where the operator says so, all callers have one session.
func TestSharedSession(t *testing.T) {
	t.Parallel()

	p := through(t, harness.PrepareUpstream(t, "--protocols", legacy), harness.ProxyServer{"session": "shared"})
	q := peer(t, harness.Revision2026, p.service)
	p.Tool(t, "set_location", `{"location":"everyone's"}`)
	require.Equal(t, "everyone's", q.Tool(t, "get_location", `{}`).Text(t))

	// And calls at once: none waits for another.
	held := p.start(t, upstream.ToolPlain, upstream.Script{Key: "held", Wait: p.upstream.File("go")})
	p.upstream.AwaitRun(t, "held")
	require.Equal(t, "everyone's", q.Tool(t, "get_location", `{}`).Text(t))
	p.upstream.Release(t, "go")
	require.Equal(t, "done held", held.Answer(t).ToolResult(t).Text(t))
	sessions := map[string]bool{}
	for _, e := range p.upstream.Entries(t, upstream.EventRun) {
		sessions[e.Session] = true
	}
	require.Len(t, sessions, 1)
}

// TestSessionIsGone: 404 for a session is answered by one new session and one
// replay; a second 404 in a row ends the attempt.
func TestSessionIsGone(t *testing.T) {
	t.Parallel()

	gone := func(times int) upstream.Fault {
		return upstream.Fault{Name: upstream.FaultStatus, Method: "tools/call", Status: 404, Text: "Session not found", Times: times}
	}
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t, "--protocols", legacy))
		p.works(t)
		before := p.upstream.Requests(t, "initialize")
		p.upstream.Fault(t, gone(1))
		p.works(t)
		require.Equal(t, before+1, p.upstream.Requests(t, "initialize"))
		p.works(t)
		require.Equal(t, before+1, p.upstream.Requests(t, "initialize"), "the new session is kept")
		p.upstream.NoViolation(t)
	})
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t, "--protocols", legacy), harness.ProxyServer{"policy": map[string]any{
			"retry": map[string]any{"initial_interval": "100ms", "maximum_attempts": 3},
		}})
		p.works(t)
		calls := p.upstream.Requests(t, "tools/call")
		p.upstream.Fault(t, gone(0))
		r := p.run(t, upstream.ToolPlain, upstream.Script{Key: "never"})
		t.Logf("%s, after %d requests", r.Text(t), p.upstream.Requests(t, "tools/call")-calls)
		require.True(t, r.IsError)
		require.NotEqual(t, "McpOutcomeUnknown", failureOf(t, r).Type, "no session, no call")
		require.LessOrEqual(t, p.upstream.Requests(t, "tools/call")-calls, 6, "it asks on and on")
		require.Zero(t, p.upstream.Runs(t, "never"))
		p.upstream.Fault(t)
		p.works(t)
	})
}

// TestDeadChildIsReplaced: a process that died between two calls costs nobody
// anything.
func TestDeadChildIsReplaced(t *testing.T) {
	t.Parallel()

	for _, flags := range [][]string{{"--protocols", legacy}, nil} {
		p := through(t, harness.PrepareUpstream(t, flags...))
		p.works(t)
		for range 3 {
			for _, e := range p.upstream.Entries(t, upstream.EventStart) {
				if harness.Alive(e.PID) {
					require.NoError(t, syscall.Kill(e.PID, syscall.SIGKILL))
				}
			}
			p.works(t)
		}
		p.upstream.NoViolation(t)
	}
}

// TestManyCallsLeaveNoProcess: 200 calls, of one caller and of nobody, leave as many
// processes as there were.
func TestManyCallsLeaveNoProcess(t *testing.T) {
	t.Parallel()

	p := through(t, harness.PrepareUpstream(t, "--protocols", legacy), harness.ProxyServer{"max_sessions": 3})
	p.works(t)
	for range 180 {
		p.works(t)
	}
	for range 20 {
		require.NoError(t, operate(t, p.service, "echo", `{"arguments":{}}`))
	}
	harness.Until(t, func() bool { return len(children(t, p.proxy.PID())) <= 3 }) // the caller's, and two that list
	t.Logf("%d processes were started, %d are there", len(p.upstream.Entries(t, upstream.EventStart)), len(children(t, p.proxy.PID())))
	require.Less(t, len(p.upstream.Entries(t, upstream.EventStart)), 30, "the caller's process is kept")
}

// TestNoDescendantIsLeft: whatever ends the proxy, and however stubborn its children
// and theirs are.
func TestNoDescendantIsLeft(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(t *testing.T, p *harness.Proxy){
		"SIGTERM": func(t *testing.T, p *harness.Proxy) {
			t.Helper()
			p.Signal(t, syscall.SIGTERM)
			require.Zero(t, p.Exit(t))
		},
		"kill -9": func(_ *testing.T, p *harness.Proxy) { p.Kill() },
	} {
		for _, stubborn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stubborn %t", name, stubborn), func(t *testing.T) {
				t.Parallel()
				u := harness.PrepareUpstream(t, "--protocols", legacy)
				faults := []upstream.Fault{{Name: upstream.FaultChildren, Count: 2}}
				if stubborn {
					faults = append(faults, upstream.Fault{Name: upstream.FaultIgnoreStop})
				}
				u.Fault(t, faults...)
				p := through(t, u)
				p.works(t)
				held := p.start(t, upstream.ToolPlain, upstream.Script{Key: "held", Wait: u.File("go"), Stubborn: true})
				u.AwaitRun(t, "held")
				var pids []int
				for _, e := range append(u.Entries(t, upstream.EventStart), u.Entries(t, upstream.EventChild)...) {
					if harness.Alive(e.PID) {
						pids = append(pids, e.PID)
					}
				}
				require.GreaterOrEqual(t, len(pids), 3)
				t.Cleanup(func() {
					for _, pid := range pids {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				})
				end(t, p.proxy)
				left := 0
				harness.Until(t, func() bool {
					left = 0
					for _, pid := range pids {
						if harness.Alive(pid) {
							left++
						}
					}
					return left == 0
				})
				_ = held
			})
		}
	}
}

// children are the processes of a process, zombies included.
func children(t *testing.T, of int) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		if ppid, _ := harness.Parent(pid); ppid == of {
			pids = append(pids, pid)
		}
	}
	return pids
}
