package connector_test

import (
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// A progress token comes back as it was sent, beyond what float64 can hold.
func TestProgressTokenIsExact(t *testing.T) {
	t.Parallel()

	const token = "9007199254740993"
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		call := p.StartTool(t, "echo", `{}`, `"progressToken":`+token)
		m := call.Await(t, "progress", harness.IsNotification("notifications/progress"))
		var params struct{ ProgressToken json.RawMessage }
		require.NoError(t, json.Unmarshal(m.Params, &params))
		require.Equal(t, token, string(params.ProgressToken))
		call.Answer(t)
	})
}
