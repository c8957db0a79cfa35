package harness

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ConnectorCommand is how to start a connector on the server, for clients that
// start it themselves.
func (s *Temporal) ConnectorCommand(tb testing.TB, args ...string) (path string, all []string) {
	tb.Helper()
	return Program(tb, "durable-mcp-connector"), s.connectorArgs(args)
}

// RunProgram runs a program that is not ours to its end, without input.
func RunProgram(tb testing.TB, env []string, path string, args ...string) Outcome {
	tb.Helper()
	return RunLongProgram(tb, Patience, env, path, args...)
}

// RunLongProgram is [RunProgram] for a program that may take so long.
func RunLongProgram(tb testing.TB, patience time.Duration, env []string, path string, args ...string) Outcome {
	tb.Helper()
	p, err := start(command{name: path, path: path, args: args, env: env})
	require.NoError(tb, err)
	p.own(tb)
	code := p.exit(tb, patience)
	return Outcome{Code: code, Stdout: p.Stdout.String(), Stderr: p.Stderr.String()}
}

// StartWorker starts a program of [Build] and returns when it says that it is ready.
func StartWorker(tb testing.TB, path string, args ...string) {
	tb.Helper()
	StartProcess(tb, nil, path, args...).Stdout.Await(tb, "ready\n")
}

// StartProcess starts a program that runs until the test ends it.
func StartProcess(tb testing.TB, env []string, path string, args ...string) *Process {
	tb.Helper()
	p, err := start(command{name: filepath.Base(path), path: path, args: args, env: env})
	require.NoError(tb, err)
	return p.own(tb)
}

// StartProgram starts a program that is not ours and speaks JSON-RPC in lines.
func StartProgram(tb testing.TB, env []string, path string, args ...string) *Stdio {
	tb.Helper()
	return startLines(tb, command{name: path, path: path, args: args, env: env})
}

// startLines starts a child that writes a message a line.
func startLines(tb testing.TB, c command) *Stdio {
	tb.Helper()
	r, w, err := os.Pipe()
	require.NoError(tb, err)
	c.stdout, c.stdin = w, true
	s := &Stdio{Inbox: newInbox(), output: r}
	s.Process, err = start(c)
	_ = w.Close()
	require.NoError(tb, err)
	s.own(tb)
	go func() {
		defer s.end()
		defer func() { _ = r.Close() }()
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				if err == io.EOF && len(line) > 0 {
					s.add(line)
				}
				return
			}
			s.add(line)
		}
	}()
	return s
}
