package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience is how long a condition may take that is expected at once: the
// machine may be busy.
const Patience = 60 * time.Second

// Process is a child process.
type Process struct {
	Stdin  io.WriteCloser
	Stdout *Log // nil where the starter reads the pipe itself
	Stderr *Log

	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// Command is a child that does not outlive the test binary. Its environment is that
// of the tests without what configures Temporal, the product, or where the race
// detector reports to.
func Command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = childAttributes()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "DURABLE_MCP_") || strings.HasPrefix(v, "GORACE=")
	})
	return cmd
}

// command describes a [Command] with more variables in its environment.
type command struct {
	name   string
	path   string
	args   []string
	env    []string
	stdout io.Writer // nil: a Log
	stdin  bool
}

func start(c command) (*Process, error) {
	p := &Process{Stderr: newLog(), name: c.name, done: make(chan struct{})}
	p.cmd = Command(c.path, c.args...)
	p.cmd.Env = append(p.cmd.Env, c.env...)
	p.cmd.Stderr = p.Stderr
	if p.cmd.Stdout = c.stdout; c.stdout == nil {
		p.Stdout = newLog()
		p.cmd.Stdout = p.Stdout
	}
	if c.stdin {
		in, err := p.cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		p.Stdin = in
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.Stderr.end()
		if p.Stdout != nil {
			p.Stdout.end()
		}
		close(p.done)
	}()
	return p, nil
}

// own ends the process with the test, and shows its output if the test failed.
func (p *Process) own(tb testing.TB) *Process {
	tb.Helper()
	tb.Cleanup(func() {
		p.Kill()
		noFault(tb, p.name, p.Stderr)
		if tb.Failed() {
			tb.Logf("%s, its standard error:\n%s", p.name, p.Stderr.tail())
			if p.Stdout != nil {
				tb.Logf("%s, its standard output:\n%s", p.name, p.Stdout.tail())
			}
		}
	})
	return p
}

// faults are what the Go runtime says on standard error of a program that is wrong.
var faults = []string{"WARNING: DATA RACE", "panic: ", "fatal error: "}

// faultIn returns what the runtime says is wrong with a program, empty if nothing is.
func faultIn(log *Log) string {
	text := log.String()
	for _, fault := range faults {
		if at := strings.Index(text, fault); at >= 0 {
			return text[at:min(len(text), at+8<<10)]
		}
	}
	return ""
}

// noFault wants the runtime to have nothing to say on a child's standard error.
func noFault(tb testing.TB, name string, log *Log) {
	tb.Helper()
	if fault := faultIn(log); fault != "" {
		tb.Errorf("%s: %s", name, fault)
	}
}

// Kill is kill -9. It returns when the process is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Signal sends a signal, if the process has not ended.
func (p *Process) Signal(tb testing.TB, signal os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(tb, err)
	}
}

// Exit waits for the process to end by itself and returns its exit code.
func (p *Process) Exit(tb testing.TB) int {
	tb.Helper()
	return p.exit(tb, Patience)
}

func (p *Process) exit(tb testing.TB, patience time.Duration) int {
	tb.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		require.FailNow(tb, p.name+" does not end", p.Stderr.tail())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// RSS is the resident memory of the process in bytes, 0 where the system does
// not tell.
func (p *Process) RSS() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var size, resident int
	_, _ = fmt.Sscan(string(data), &size, &resident)
	return resident * os.Getpagesize()
}

// Threads counts the operating system's threads of the process, 0 where the system
// does not tell.
func (p *Process) Threads() int { return p.count("task") }

// Files counts the open file descriptors of the process, 0 where the system does
// not tell.
func (p *Process) Files() int { return p.count("fd") }

func (p *Process) count(what string) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, what))
	if err != nil {
		return 0
	}
	return len(entries)
}

// terminate is SIGTERM, and SIGKILL for what does not listen.
func (p *Process) terminate() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
}

// Log is what a process wrote. It is an [io.Writer].
type Log struct {
	mu      sync.Mutex
	data    bytes.Buffer
	changed chan struct{}
	ended   bool
}

func newLog() *Log { return &Log{changed: make(chan struct{})} }

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.data.Write(p)
}

func (l *Log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		close(l.changed)
	}
}

// String is all that was written until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

func (l *Log) tail() string {
	const most = 8 << 10
	s := l.String()
	if len(s) > most {
		s = "…" + s[len(s)-most:]
	}
	return s
}

// await returns what find finds in the log, at the latest when the process ends.
func (l *Log) await(what string, find func(string) (string, bool)) (string, error) {
	last := time.NewTimer(Patience)
	defer last.Stop()
	for {
		l.mu.Lock()
		text, changed, ended := l.data.String(), l.changed, l.ended
		l.mu.Unlock()
		if found, ok := find(text); ok {
			return found, nil
		}
		if ended {
			return "", errors.New("it ended without " + what + ":\n" + l.tail())
		}
		select {
		case <-changed:
		case <-last.C:
			return "", errors.New("no " + what + " in time:\n" + l.tail())
		}
	}
}

// Await waits until the log has the text.
func (l *Log) Await(tb testing.TB, text string) {
	tb.Helper()
	_, err := l.await(text, func(s string) (string, bool) { return "", strings.Contains(s, text) })
	require.NoError(tb, err)
}

// Until waits until the condition is met. It runs on the test's own goroutine, so
// the condition may end the test.
func Until(tb testing.TB, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !condition(); <-tick.C {
		require.True(tb, time.Now().Before(end), "the condition is not met in time")
	}
}
