package connector_test

import (
	"context"
	"fmt"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// TestTemporalRestarts: with a durable store, the calls that wait go on waiting
// and get their results, and calls that come while Temporal is away are started
// once it is back.
func TestTemporalRestarts(t *testing.T) {
	t.Parallel()

	temporal := harness.StartDurableTemporal(t)
	service := temporal.StartService(t)
	args := []string{"--service", service.Name, "--wait-budget", "90s"}
	stdio := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025November)
	server := temporal.StartHTTP(t, args...)
	peers := []*harness.Peer{stdio, server.Speak(harness.Revision2025June), server.Speak(harness.Revision2026)}
	line := harness.Unique("line")
	var waiting []*harness.Pending
	for _, p := range peers {
		require.Contains(t, p.ListTools(t).Names(t), "slow")
		for range 3 {
			waiting = append(waiting, p.StartTool(t, "slow", `{"seconds":4,"line":"`+line+`","value":{"n":1.0}}`))
		}
	}
	harness.Until(t, func() bool { return service.Effects(t, line) == len(waiting) })

	temporal.Kill()
	var during []*harness.Pending
	for _, p := range peers {
		during = append(during, p.StartTool(t, "note", `{"line":"during `+line+`"}`))
	}
	require.Contains(t, stdio.ListTools(t).Names(t), "slow", "the list needs no Temporal")
	for _, call := range append(waiting, during...) {
		_, answered := call.Find(100*time.Millisecond, harness.IsAnswer(call.ID))
		require.False(t, answered, "an answer without Temporal")
	}
	temporal.Restart(t)
	back := time.Now()
	for _, call := range waiting {
		require.Equal(t, `{"n":1.0}`, string(call.Answer(t).ToolResult(t).Structured))
	}
	for _, call := range during {
		require.False(t, call.Answer(t).ToolResult(t).IsError)
	}
	t.Logf("every call was answered within %v of the restart", time.Since(back).Round(time.Millisecond))
	require.Equal(t, len(waiting), service.Effects(t, line))
	require.Equal(t, len(during), service.Effects(t, "during "+line))
	require.Equal(t, `{"a":1}`, string(stdio.Tool(t, "echo", `{"a":1}`).Structured))
}

// TestOneWaitIsOnePoll: a wait that runs out of time costs one long poll. (A
// deadline on its context would cost about a thousand.)
func TestOneWaitIsOnePoll(t *testing.T) {
	t.Parallel()

	var polls atomic.Int64
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if path.Base(method) == "PollNexusOperationExecution" {
			polls.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	server := library(t, mcpserver.Options{Caller: harness.Unique("poller"), WaitBudget: 3 * time.Second}, grpc.WithChainUnaryInterceptor(count))
	ctx := t.Context()
	here, there := mcp.NewInMemoryTransports()
	_, err := server.MCP().Connect(ctx, there, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil).Connect(ctx, here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	_, err = session.ListTools(ctx, nil)
	require.NoError(t, err)

	before := polls.Load()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 60}})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(res.StructuredContent), "running")
	require.EqualValues(t, 1, polls.Load()-before)

	before = polls.Load()
	res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "get_operation_result", Arguments: map[string]any{
		"operation_id": res.StructuredContent.(map[string]any)["operation_id"], "wait_seconds": 2,
	}})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(res.StructuredContent), "running")
	require.EqualValues(t, 1, polls.Load()-before)
}

// TestManyWaits: more calls wait at once than there are long polls, and each gets
// its own result, those that are parked not much later than the others.
func TestManyWaits(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November, "--wait-budget", "60s")
	p.ListTools(t)
	const calls = 160
	var pending []*harness.Pending
	for i := range calls {
		pending = append(pending, p.StartTool(t, "slow", fmt.Sprintf(`{"seconds":8,"value":{"call":%d}}`, i)))
	}
	var latest time.Time
	for i, call := range pending {
		m := call.Answer(t)
		require.Equal(t, fmt.Sprintf(`{"call":%d}`, i), string(m.ToolResult(t).Structured))
		if m.At.After(latest) {
			latest = m.At
		}
	}
}
