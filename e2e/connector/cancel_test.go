package connector_test

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Which end of a client cancels its calls, and which leaves them running.

// TestWhatCancels: the client says so. What runs behind the operation hears it.
func TestWhatCancels(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	cancelled := func(t *testing.T, line string) {
		t.Helper()
		harness.Until(t, func() bool { return kit.Effects(t, "cancelled "+line) == 1 })
	}
	begin := func(t *testing.T, p *harness.Peer) (*harness.Pending, string) {
		t.Helper()
		line := harness.Unique("line")
		call := p.StartTool(t, "slow", `{"seconds":600,"line":"`+line+`"}`)
		harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
		return call, line
	}

	for _, revision := range harness.Revisions {
		t.Run("notifications/cancelled on stdio "+revision, func(t *testing.T) {
			t.Parallel()
			p := stdioPeer(t, revision)
			call, line := begin(t, p)
			p.Stdio.Notify(t, "notifications/cancelled", `{"requestId":`+call.ID+`,"reason":"changed my mind"}`)
			cancelled(t, line)
			p.Tool(t, "echo", `{}`)
			_, answered := p.Stdio.Find(0, harness.IsAnswer(call.ID))
			require.False(t, answered, "a cancelled request gets no answer")
		})
	}
	t.Run("closed response stream over HTTP "+harness.Revision2026, func(t *testing.T) {
		t.Parallel()
		call, line := begin(t, httpServer(t).Speak(harness.Revision2026))
		call.Exchange.Close()
		cancelled(t, line)
	})
	t.Run("SDK client", func(t *testing.T) {
		t.Parallel()
		for _, session := range []*mcp.ClientSession{
			harness.Shared(t).ConnectStdio(t, "", nil, "--service", kit.Name), httpServer(t).Connect(t, "", nil),
		} {
			line := harness.Unique("line")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 600, "line": line}})
				done <- err
			}()
			harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			cancelled(t, line)
		}
	})
}

// TestWhatLeavesACallRunning: a client that dies, or that cannot say that it
// cancels. The call ends by itself, and its result is there.
func TestWhatLeavesACallRunning(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	for name, leave := range map[string]func(*testing.T, *harness.Stdio){
		"end of input": func(t *testing.T, c *harness.Stdio) {
			t.Helper()
			require.NoError(t, c.Stdin.Close())
			c.Exit(t)
		},
		"death of the client": func(t *testing.T, c *harness.Stdio) {
			t.Helper()
			c.StopReading()
			require.NoError(t, c.Stdin.Close())
			c.Exit(t)
		},
		"nobody reads": func(t *testing.T, c *harness.Stdio) {
			t.Helper()
			c.StopReading()
			_, _ = io.WriteString(c.Stdin, `{"jsonrpc":"2.0","id":"x","method":"ping"}`+"\n") // the answer fails
			c.Exit(t)
		},
		"kill -9": func(_ *testing.T, c *harness.Stdio) { c.Kill() },
		"SIGTERM": func(t *testing.T, c *harness.Stdio) { t.Helper(); c.Signal(t, syscall.SIGTERM); c.Exit(t) },
		"SIGINT":  func(t *testing.T, c *harness.Stdio) { t.Helper(); c.Signal(t, syscall.SIGINT); c.Exit(t) },
	} {
		t.Run("stdio: "+name, func(t *testing.T) {
			t.Parallel()
			line := harness.Unique("line")
			args := []string{"--service", kit.Name, "--caller", harness.Unique("leaver"), "--shutdown-timeout", "1s"}
			p := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025November)
			p.StartTool(t, "slow", `{"seconds":6,"line":"`+line+`","value":"done"}`, `"progressToken":1`)
			harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
			leave(t, p.Stdio)
			found(t, temporal.StartStdio(t, args...).Speak(t, harness.Revision2025November), kit, line)
		})
	}
	for _, revision := range harness.Revisions[:2] {
		t.Run("http: disconnect of "+revision, func(t *testing.T) {
			t.Parallel()
			p := httpServer(t).Speak(revision)
			line := harness.Unique("line")
			call := p.StartTool(t, "slow", `{"seconds":6,"line":"`+line+`","value":"done"}`, `"progressToken":1`)
			id := progressOf(t, call.Await(t, "progress", harness.IsNotification("notifications/progress"))).Meta["io.temporal/operationId"]
			harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
			call.Exchange.Close()
			require.Equal(t, "done", result(t, p, id).Text(t))
			require.Zero(t, kit.Effects(t, "cancelled "+line))
		})
	}
}

// result reads a result by its ID, however long it takes.
func result(t *testing.T, p *harness.Peer, id string) harness.ToolResult {
	t.Helper()
	for end := time.Now().Add(harness.Patience); ; {
		r := p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":30}`)
		if string(r.Meta["io.temporal/operationId"]) == "" || r.IsError {
			return r
		}
		r.Running(t)
		require.True(t, time.Now().Before(end), "no result: %s", r.Raw)
	}
}

// found finds the only call of the caller and wants it to end well.
func found(t *testing.T, p *harness.Peer, kit *harness.Service, line string) {
	t.Helper()
	var calls []harness.Operation
	harness.Until(t, func() bool { calls = p.Operations(t, `{}`); return len(calls) == 1 })
	require.Equal(t, "done", result(t, p, calls[0].OperationID).Text(t))
	require.Equal(t, 1, kit.Effects(t, line))
	require.Zero(t, kit.Effects(t, "cancelled "+line))
}
