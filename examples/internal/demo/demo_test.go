package demo_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the demo, built once into a directory that TestMain removes.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(dir, "demo")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/durable-mcp/durable-mcp/examples/cmd/demo").CombinedOutput()
	if err != nil {
		return "", &buildError{err, out}
	}
	return path, nil
})

type buildError struct {
	error
	out []byte
}

func (e *buildError) Error() string { return e.error.Error() + "\n" + string(e.out) }

var dir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if dir, err = os.MkdirTemp("", "durable-mcp-demo-"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		return m.Run()
	}())
}

// demo is the demo as a child, with a directory for temporary files of its own.
type demo struct {
	*exec.Cmd

	temp   string
	done   chan struct{}
	mu     sync.Mutex
	output bytes.Buffer
}

// Write implements io.Writer.
func (d *demo) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output.Write(p)
}

func (d *demo) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.output.String()
}

func start(t *testing.T, cli string, args ...string) *demo {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	d := &demo{Cmd: exec.Command(path, args...), temp: t.TempDir(), done: make(chan struct{})}
	d.Env = append(os.Environ(), "TMPDIR="+d.temp, "TEMPORAL_CLI="+cli)
	d.Stdout, d.Stderr = d, d
	require.NoError(t, d.Start())
	go func() {
		_ = d.Wait()
		close(d.done)
	}()
	t.Cleanup(func() {
		_ = d.Process.Kill()
		if t.Failed() {
			t.Logf("the demo said:\n%s", d.said())
		}
	})
	return d
}

// exit waits for the end and returns the exit code.
func (d *demo) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-d.done:
	case <-time.After(5 * time.Minute):
		require.FailNow(t, "the demo does not end")
	}
	return d.ProcessState.ExitCode()
}

// says waits until the demo has said something that matches.
func (d *demo) says(t *testing.T, pattern string) (groups []string) {
	t.Helper()
	what := regexp.MustCompile(pattern)
	require.Eventually(t, func() bool {
		groups = what.FindStringSubmatch(d.said())
		return groups != nil
	}, 3*time.Minute, 20*time.Millisecond, pattern)
	return groups
}

// leavesNothing wants no process and no file of the demo to be left.
func (d *demo) leavesNothing(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(d.temp)
	require.NoError(t, err)
	require.Empty(t, left)
	d.stoppedAll(t)
}

// stoppedAll asks the dev server, which is the first to start and the last to
// stop, and the processes of the system where it tells.
func (d *demo) stoppedAll(t *testing.T) {
	t.Helper()
	if ui := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(d.said()); ui != "" {
		require.False(t, answers(ui), "the dev server still runs")
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		require.NotContains(t, strings.ReplaceAll(string(command), "\x00", " "), d.temp, "still runs")
	}
}

// answers reports whether there is a page.
func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func temporalCLI(t *testing.T) string {
	t.Helper()
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			require.FailNow(t, how)
		}
		t.Skip(how)
	}
	return cli
}

func TestDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	d := start(t, temporalCLI(t))

	ui := d.says(t, `Look inside while the story goes on: (http://\S+)`)[1]
	require.Eventually(t, func() bool { return answers(ui) }, time.Minute, 50*time.Millisecond, "the web interface does not answer")

	require.Equal(t, 0, d.exit(t))
	require.Contains(t, d.said(), "every step went as told")
	require.Len(t, regexp.MustCompile(`(?m)^    ✓ [0-9.]+ s$`).FindAllString(d.said(), -1), 18, "each step has its time")
	for line := range strings.SplitSeq(d.said(), "\n") {
		require.NotRegexp(t, `level=|^\d{4}[-/]\d\d|ERROR|WARN`, line, "a log line")
	}
	d.leavesNothing(t)
}

func TestDemoStopsEverythingWhenInterrupted(t *testing.T) {
	t.Parallel()
	d := start(t, temporalCLI(t))

	d.says(t, `after 3\.\d s the answer is: running`)
	require.NoError(t, d.Process.Signal(os.Interrupt))
	require.Equal(t, 130, d.exit(t))
	require.Contains(t, d.said(), "Interrupted. Everything that was started is stopped.")
	d.leavesNothing(t)
}

func TestDemoKeepsRunningWhenAsked(t *testing.T) {
	t.Parallel()
	d := start(t, temporalCLI(t), "--keep")

	// The last line names a command to try.
	command := d.says(t, `Call a tool yourself +(\S+) call --temporal-address (\S+) --service lucky-number lucky_number '(\S+)'\n`)
	out, err := exec.Command(command[1], "call", "--temporal-address", command[2], "--service", "lucky-number", "lucky_number", command[3]).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), `"name":"you"`)
	require.NoError(t, d.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, d.exit(t))
	d.leavesNothing(t)
}

func TestDemoSaysWhichStepFailed(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "temporal")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho no room on this machine >&2\nexit 1\n"), 0o700))
	d := start(t, broken)

	require.Equal(t, 1, d.exit(t))
	require.Contains(t, d.said(), "step 2 is not as told (A Temporal dev server starts.)")
	logs := regexp.MustCompile(`The logs are in (\S+)`).FindStringSubmatch(d.said())
	require.NotNil(t, logs)
	log, err := os.ReadFile(filepath.Join(logs[1], "1-temporal.log"))
	require.NoError(t, err)
	require.Equal(t, "no room on this machine\n", string(log))
	d.stoppedAll(t)
}

func TestDemoNeedsACLI(t *testing.T) {
	t.Parallel()
	d := start(t, "")

	require.Equal(t, 2, d.exit(t))
	require.Contains(t, d.said(), "./justw demo")
	d.leavesNothing(t)
}
