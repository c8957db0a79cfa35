package harness

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func mustDecode(tb testing.TB, raw json.RawMessage, v any) {
	tb.Helper()
	require.NoError(tb, json.Unmarshal(raw, v), "%s", raw)
}

// ConnectStdio connects a client of the MCP Go SDK to a new connector. Revision
// is empty for the newest that both sides know.
func (s *Temporal) ConnectStdio(tb testing.TB, revision string, options *mcp.ClientOptions, args ...string) *mcp.ClientSession {
	tb.Helper()
	return connectCommand(tb, Command(Program(tb, "durable-mcp-connector"), s.connectorArgs(args)...), revision, options)
}

// ConnectProgram connects a client of the MCP Go SDK to a program that is not ours,
// with more variables in its environment.
func ConnectProgram(tb testing.TB, revision string, env []string, path string, args ...string) *mcp.ClientSession {
	tb.Helper()
	cmd := Command(path, args...)
	cmd.Env = append(cmd.Env, env...)
	return connectCommand(tb, cmd, revision, nil)
}

func connectCommand(tb testing.TB, cmd *exec.Cmd, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	tb.Helper()
	log := newLog()
	cmd.Stderr = log
	tb.Cleanup(func() {
		noFault(tb, cmd.Path, log)
		if tb.Failed() {
			tb.Logf("%s, its standard error:\n%s", cmd.Path, log.tail())
		}
	})
	return connect(tb, &mcp.CommandTransport{Command: cmd}, revision, options)
}

// Connect connects a client of the MCP Go SDK.
func (h *HTTP) Connect(tb testing.TB, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	tb.Helper()
	return connect(tb, &mcp.StreamableClientTransport{Endpoint: h.URL}, revision, options)
}

func connect(tb testing.TB, transport mcp.Transport, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	tb.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, options)
	session, err := client.Connect(tb.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = session.Close() })
	return session
}
