package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// What a `_meta` takes grows with its size, and not with the square of its keys.
func TestMetaOfManyKeys(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	p := stdio(t, server, time.Second)
	p.send(initialize)
	require.Equal(t, "init", p.read().ID)
	p.send(initialized)
	var meta strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&meta, `"io.modelcontextprotocol/%d":1,`, i)
	}
	answered := make(chan answer, 1)
	go func() {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":1},"_meta":{%s"a":1}}}`, meta.String()))
		answered <- p.read()
	}()
	select {
	case a := <-answered:
		require.Nil(t, a.Error)
		require.Contains(t, string(a.Result), `"structuredContent":{"n":1}`)
	case <-time.After(30 * time.Second):
		t.Fatal("the call takes too long")
	}
	require.NoError(t, p.in.Close())
	require.NoError(t, <-p.ended)
}

// Without an MCP client there is no revision that a result would have to fit.
func TestPollToolReadsWhatTheCallReturned(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{Caller: "ada"})
	count := contract.Tool{Name: "count", Encoding: contract.EncodingValue, OutputSchema: []byte(`{"type":"integer"}`)}
	id, err := server.Operations().Start(t.Context(), operation.Call{
		Endpoint: "tools", Service: "tools", Tool: count, Caller: operation.Caller{Transport: operation.Stdio, Name: "ada"},
	})
	require.NoError(t, err)
	called, err := server.Operations().Result(t.Context(), id, count, 0)
	require.NoError(t, err)
	require.Equal(t, "9007199254740993", string(called.Structured()))
	read, ok, err := server.PollTool(t.Context(), contract.ToolGetOperationResult, fmt.Appendf(nil, `{"operation_id":%q}`, id))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, string(called.JSON()), string(read.JSON()))
}

// At its end a server still says what Temporal tells at once.
func TestDrainedServerAnswersWhatIsKnown(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{Caller: "ada"})
	echo := contract.Tool{Name: "echo"}
	id, err := server.Operations().Start(t.Context(), operation.Call{
		Endpoint: "tools", Service: "tools", Tool: echo, Caller: operation.Caller{Transport: operation.Stdio, Name: "ada"},
	})
	require.NoError(t, err)
	_, err = server.Operations().Result(t.Context(), id, echo, 0)
	require.NoError(t, err)
	server.Drain(0)
	for name, arguments := range map[string]string{
		contract.ToolListOperations:     `{}`,
		contract.ToolCancelOperation:    fmt.Sprintf(`{"operation_id":%q}`, id),
		contract.ToolGetOperationResult: fmt.Sprintf(`{"operation_id":%q}`, id),
	} {
		says := ""
		for range 20 { // each has a moment only, which may be too short for a busy machine
			result, _, err := server.PollTool(t.Context(), name, json.RawMessage(arguments))
			require.NoError(t, err)
			says = string(result.JSON())
			if !result.IsError() && !strings.Contains(says, "still running") {
				break
			}
		}
		require.NotContains(t, says, "isError", name)
		require.NotContains(t, says, "still running", name)
	}
}
