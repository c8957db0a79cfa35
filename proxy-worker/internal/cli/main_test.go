package cli

// Internal tests: tables of what the command line makes of single words. The
// black-box tests beside them start the test binary as the program.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/goleak"
)

// devServer is that of the test binary; nil where there is no Temporal CLI.
var devServer *testsuite.DevServer

// The test binary is also the program and a server behind it, by what it is
// started as.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == program:
		os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == scripted:
		os.Exit(scriptedServer(os.Args[2:]))
	}
	goleak.VerifyTestMain(withTemporal{m})
}

// withTemporal are the tests of the package, with the dev server that they share.
type withTemporal struct{ tests *testing.M }

func (w withTemporal) Run() int {
	if os.Getenv("TEMPORAL_CLI") == "" {
		return w.tests.Run()
	}
	s, err := testsuite.StartDevServer(context.Background(), testsuite.DevServerOptions{
		ExistingPath:  os.Getenv("TEMPORAL_CLI"),
		ClientOptions: &client.Options{Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))},
		LogLevel:      "error", Stdout: io.Discard, Stderr: io.Discard,
		ExtraArgs: []string{
			"--dynamic-config-value", "nexusoperation.enableStandalone=true",
			"--dynamic-config-value", "activity.enableCallbacks=true",
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "cli: dev server:", err)
		return 1
	}
	devServer = s
	defer func() { s.Client().Close(); _ = s.Stop() }()
	return w.tests.Run()
}

func devClient(t *testing.T) client.Client {
	t.Helper()
	if devServer == nil {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	return devServer.Client()
}

// running is held while the program runs in this process: the flag library keeps
// state of its own.
var running sync.Mutex

// run runs the program in this process.
func run(stdin string, args ...string) (code int, out, errOut string) {
	running.Lock()
	defer running.Unlock()
	var stdout, stderr bytes.Buffer
	code = Main(append([]string{program}, args...), strings.NewReader(stdin), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// output is what a process writes, while it does.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is the program as a process of its own.
type process struct {
	cmd      *exec.Cmd
	out, err output
	exited   chan struct{}
}

// start starts the program with few variables beside these.
func start(t *testing.T, stdin string, env []string, args ...string) *process {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	p := &process{exited: make(chan struct{})}
	p.cmd = exec.Command(executable)
	p.cmd.Args = append([]string{program}, args...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = strings.NewReader(stdin), &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		require.NotContains(t, p.err.String(), "DATA RACE")
	})
	return p
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		require.Fail(t, "it does not exit", p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// file writes a file of servers; $SELF is the test binary, as a JSON string, and
// $SOON a variable that lets it exit at once also under the race detector.
func file(t *testing.T, document string) string {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer("$SELF", fmt.Sprintf("%q", executable), "$SOON", `"GORACE": "atexit_sleep_ms=0"`).Replace(document)), 0o600))
	return path
}
