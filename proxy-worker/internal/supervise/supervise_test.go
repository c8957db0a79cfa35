//go:build unix

package supervise_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/supervise"
	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// shell runs a script and returns what it reads and writes.
func shell(t *testing.T, script string) (p *supervise.Process, stdin io.Closer, stdout *bufio.Reader) {
	t.Helper()
	in, inWrite, err := os.Pipe()
	require.NoError(t, err)
	outRead, out, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = inWrite.Close()
		_ = outRead.Close()
	})
	p, err = supervise.Start(supervise.Spec{
		Path: "/bin/sh", Args: []string{"a-name", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}, // or the supervisor takes a second to end
		Stdin: in, Stdout: out, Stderr: os.Stderr,
	})
	_ = in.Close()
	_ = out.Close()
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p, inWrite, bufio.NewReader(outRead)
}

func TestTheEndIsReported(t *testing.T) {
	t.Parallel()

	for script, want := range map[string]string{
		"exit 0":        "exited with code 0",
		"exit 200":      "exited with code 200",
		"kill -TERM $$": "was killed by signal 15 (terminated)",
	} {
		p, _, _ := shell(t, script)
		<-p.Done()
		require.Equal(t, want, p.Exit())
		require.Positive(t, p.Pid())
		require.ErrorIs(t, syscall.Kill(p.SupervisorPid(), 0), syscall.ESRCH)
	}
}

func TestAProcessHasTimeToEndInOrder(t *testing.T) {
	t.Parallel()

	p, stdin, stdout := shell(t, "echo ready; read x; echo saved; exit 5")
	line, err := stdout.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.Empty(t, p.Exit())
	_ = stdin.Close()
	p.Stop()
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.Equal(t, "saved\n", string(rest))
	<-p.Done()
	require.Equal(t, "exited with code 5", p.Exit())
}

func TestSIGTERMIsNextToTheLast(t *testing.T) {
	t.Parallel()

	p, _, stdout := shell(t, `trap 'echo asked; exit 6' TERM; echo ready; while :; do sleep 0.05; done`)
	_, err := stdout.ReadString('\n')
	require.NoError(t, err)
	p.Close()
	rest, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.Equal(t, "asked\n", string(rest))
	require.Equal(t, "exited with code 6", p.Exit())
}

func TestForksDoNotEscape(t *testing.T) {
	t.Parallel()

	// Each process starts the next and ends: the tree moves while it is killed.
	p, _, stdout := shell(t, `s='sh -c "$0" "$0" & sleep 0.2; exit'; echo ready; sh -c "$s" "$s" & read x; exit 0`)
	_, err := stdout.ReadString('\n')
	require.NoError(t, err)
	p.Close()
	require.Eventually(t, func() bool {
		_, err := stdout.ReadByte() // every process of the chain has the pipe
		return err == io.EOF
	}, patience, time.Millisecond)
}

func TestAFailedStartIsAnError(t *testing.T) {
	t.Parallel()

	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	t.Cleanup(func() { _ = null.Close() })
	for path, want := range map[string]string{"/no/such/file": "no such file", "/": "permission denied"} {
		_, err := supervise.Start(supervise.Spec{Path: path, Args: []string{"x"}, Stdin: null, Stdout: null, Stderr: null})
		require.ErrorContains(t, err, want)
	}
	_, err = supervise.Start(supervise.Spec{Path: "/bin/sh", Args: []string{"x"}, Dir: fmt.Sprintf("/none-%d", os.Getpid()), Stdin: null, Stdout: null, Stderr: null})
	require.ErrorContains(t, err, "no such file or directory")
}
