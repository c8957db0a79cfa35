package connector_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// The connector passes the suite that every caller of tools runs against itself.
func TestContract(t *testing.T) {
	t.Parallel()
	server := harness.Shared(t)
	name := harness.Unique("contract")
	server.CreateEndpoint(t, name, name)
	w := worker.New(server.Client(t), name, worker.Options{})
	w.RegisterNexusService(contracttest.NewService(name))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	for transport, peer := range map[string]*harness.Peer{
		"stdio": server.StartStdio(t, "--service", name).Speak(t, harness.Revision2026),
		"http":  server.StartHTTP(t, "--service", name).Speak(harness.Revision2026),
	} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			contracttest.Caller(t, func(_ context.Context, tool string, arguments json.RawMessage) contracttest.Outcome {
				m := peer.StartTool(t, tool, string(arguments)).Answer(t)
				if m.Error != nil {
					return contracttest.Outcome{Protocol: &contract.ProtocolError{Code: int64(m.Error.Code), Message: m.Error.Message, Data: m.Error.Data}}
				}
				// A call that somebody else cancelled has no outcome of its own in MCP.
				var note struct{ Type string }
				_ = json.Unmarshal(m.ToolResult(t).Meta[contract.MetaFailure], &note)
				return contracttest.Outcome{Result: m.Result, Canceled: note.Type == string(contract.CodeCanceled)}
			})
		})
	}
}
