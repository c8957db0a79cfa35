package stdio_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/stretchr/testify/require"
)

// started returns the processes, servers and supervisors, that wrote to a file.
func started(t *testing.T, file string) []int {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var pids []int
	for f := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(f)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// alive reports whether a process runs: one that is dead and not yet waited for
// does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	state := strings.TrimSpace(string(out))
	return state != "" && state[0] != 'Z'
}

// requireGone waits a moment at most: what Close has ended is gone already.
func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	require.NotEmpty(t, pids)
	for _, pid := range pids {
		require.False(t, alive(pid), "process %d lives", pid)
	}
}

// family starts a stubborn server with stubborn children; the processes are the
// server, its supervisor, a child and a grandchild.
func family(t *testing.T) (*mcpclient.Session, []int) {
	t.Helper()
	s := dial(t, server("stubborn"), options())
	var p struct{ Pids []int }
	call(t, s, "children", "", &p)
	require.Len(t, p.Pids, 4)
	for _, pid := range p.Pids {
		require.True(t, alive(pid))
	}
	return s, p.Pids
}

func TestCloseLeavesNoDescendant(t *testing.T) {
	t.Parallel()

	s, pids := family(t)
	began := time.Now()
	s.Close()
	requireGone(t, pids...)
	require.Less(t, time.Since(began), 5*time.Second)
	s.Close()
	require.Error(t, s.Err())
}

func TestACrashLeavesNoDescendant(t *testing.T) {
	t.Parallel()

	s, pids := family(t)
	_, err := try(t.Context(), s, "exit", "7")
	e := failure(t, err)
	require.Equal(t, mcpclient.Sent, e.Outcome)
	require.True(t, e.Lost)
	require.True(t, e.Retryable)
	require.Equal(t, "the server process exited with code 7", e.Message)
	<-s.Done()
	require.Eventually(t, func() bool { return !alive(pids[1]) }, patience, time.Millisecond)
	requireGone(t, pids...)

	sending := false
	_, err = s.Call(t.Context(), mcpclient.Request{Method: "tools/list", Sending: func() { sending = true }})
	e = failure(t, err)
	require.Equal(t, mcpclient.NotSent, e.Outcome)
	require.True(t, e.Lost)
	require.False(t, sending)
}

func TestAKilledServerLeavesNoDescendant(t *testing.T) {
	t.Parallel()

	s, pids := family(t)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	<-s.Done()
	require.ErrorContains(t, s.Err(), "was killed by signal 9")
	s.Close()
	requireGone(t, pids...)
}

func TestAKilledSupervisorTakesTheServerWithIt(t *testing.T) {
	t.Parallel()

	s := dial(t, server("stubborn"), options())
	var p struct{ Pid, Ppid int }
	call(t, s, "process", "", &p)
	require.NoError(t, syscall.Kill(p.Ppid, syscall.SIGKILL))
	<-s.Done()
	s.Close()
	require.Eventually(t, func() bool { return !alive(p.Pid) }, patience, time.Millisecond)
}

// own is the main function of an owner that tests kill: it prints who runs, and
// after an interrupt whether the session still works.
func own() {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	s, err := mcpclient.Dial(context.Background(), stdio.New(server("stubborn")), options())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, tool := range []string{"children", "process"} {
		raw, err := try(context.Background(), s, tool, "")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintf(os.Stdout, "%s\n", raw)
		<-interrupted
	}
	os.Exit(0)
}

// owner starts one in a process group of its own, as a shell does.
func owner(t *testing.T) (*exec.Cmd, *bufio.Reader, []int) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	c.Env = []string{serverEnv + "=owner", quickExit}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	r := bufio.NewReader(out)
	line, err := r.ReadBytes('\n')
	require.NoError(t, err)
	var p struct{ Pids []int }
	require.NoError(t, json.Unmarshal(line, &p))
	require.Len(t, p.Pids, 4)
	return c, r, p.Pids
}

func TestAKilledOwnerLeavesNoDescendant(t *testing.T) {
	t.Parallel()

	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()

			c, _, pids := owner(t)
			require.NoError(t, c.Process.Signal(s))
			require.Error(t, c.Wait())
			for _, pid := range pids {
				require.Eventually(t, func() bool { return !alive(pid) }, patience, 10*time.Millisecond)
			}
		})
	}
}

func TestAnInterruptAtTheTerminalReachesTheOwnerOnly(t *testing.T) {
	t.Parallel()

	c, r, pids := owner(t)
	require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGINT))
	line, err := r.ReadBytes('\n')
	require.NoError(t, err)
	var p struct{ Pid int }
	require.NoError(t, json.Unmarshal(line, &p))
	require.Equal(t, pids[0], p.Pid)
	require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGINT))
	require.NoError(t, c.Wait())
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, patience, 10*time.Millisecond)
	}
}

func TestManySessionsLeaveNothing(t *testing.T) {
	t.Parallel()

	pids := filepath.Join(t.TempDir(), "pids")
	for range 200 {
		s, err := mcpclient.Dial(t.Context(), stdio.New(server("modern", "pids="+pids)), options())
		require.NoError(t, err)
		s.Close()
	}
	all := started(t, pids)
	require.Len(t, all, 400)
	left := 0
	for _, pid := range all {
		if syscall.Kill(pid, 0) == nil && alive(pid) {
			left++
		}
	}
	require.Zero(t, left)
}
