package harness

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func mustDecode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, v), "%s", raw)
}

// ConnectStdio connects a client of the MCP Go SDK to a new connector. Revision
// is empty for the newest that both sides know.
func (s *Temporal) ConnectStdio(t testing.TB, revision string, options *mcp.ClientOptions, args ...string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(Program(t, "durable-mcp-connector"), s.connectorArgs(args)...)
	cmd.SysProcAttr = childAttributes()
	log := newLog()
	cmd.Stderr = log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("connector, its standard error:\n%s", log.tail())
		}
	})
	return connect(t, &mcp.CommandTransport{Command: cmd}, revision, options)
}

// Connect connects a client of the MCP Go SDK.
func (h *HTTP) Connect(t testing.TB, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	return connect(t, &mcp.StreamableClientTransport{Endpoint: h.URL}, revision, options)
}

func connect(t testing.TB, transport mcp.Transport, revision string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, options)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}
