package containers_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	module       = "github.com/durable-mcp/durable-mcp/"
	temporalPort = "7233/tcp"
	mcpPort      = "8080/tcp"
)

// TestCallThrough calls a tool of each kind from outside, through the connector
// and Temporal, to a tool service.
func TestCallThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	temporalImage := w.temporalImage(t)
	w.build(t, module+"connector/cmd/durable-mcp-connector", module+"examples/lucky-number")
	atTemporal := testcontainers.WithEnv(map[string]string{"TEMPORAL_ADDRESS": "temporal:7233"})

	w.start(t, "temporal", temporalImage,
		wait.ForListeningPort(temporalPort).SkipInternalCheck(), // which needs a shell
		testcontainers.WithExposedPorts(temporalPort),
		testcontainers.WithCmd("server", "start-dev", "--headless", "--ip", "0.0.0.0", "--log-level", "warn",
			"--dynamic-config-value", "nexusoperation.enableStandalone=true",
			"--dynamic-config-value", "activity.enableCallbacks=true"))
	w.start(t, "lucky-number", w.image(t, "lucky-number", filepath.Join(w.dir, "lucky-number")),
		wait.ForLog("lucky-number is ready"), atTemporal, testcontainers.WithCmd("--ensure-endpoint"))
	host, err := w.provider.DaemonHost(contextOf(t))
	require.NoError(t, err)
	connector := w.start(t, "connector", w.image(t, "connector", filepath.Join(w.dir, "durable-mcp-connector")),
		wait.ForHTTP("/readyz").WithPort(mcpPort), atTemporal,
		testcontainers.WithExposedPorts(mcpPort),
		testcontainers.WithCmd("--service", "lucky-number", "--transport", "http", "--listen", "0.0.0.0:8080", "--allow-host", host))

	address, err := connector.PortEndpoint(contextOf(t), mcpPort, "http")
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(contextOf(t), &mcp.StreamableClientTransport{Endpoint: address + "/mcp"}, nil)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()

	require.Equal(t, map[string]any{"name": "Ada", "number": 21.0}, call(t, session, "lucky_number", `{"name":"Ada"}`))
	require.Equal(t, "Ada", call(t, session, "draw_ticket", `{"name":"Ada"}`)["name"])
	require.Equal(t, "After 1 seconds the leaves say of tea: all will be well.",
		call(t, session, "brew_report", `{"topic":"tea","seconds":1}`)["report"])
	handle := call(t, session, "create_topic_list", `{}`)["handle"].(string)
	require.Equal(t, []any{"tea"}, call(t, session, "remember_topic", `{"topic":"tea","handle":"`+handle+`"}`)["topics"])
}

// call calls a tool and returns its structured content.
func call(t *testing.T, session *mcp.ClientSession, tool, args string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(contextOf(t), time.Minute)
	defer cancel()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	require.NoError(t, err)
	require.False(t, result.IsError, "%s: %v", tool, result.Content)
	content, ok := result.StructuredContent.(map[string]any)
	require.True(t, ok, "%s: %v", tool, result.StructuredContent)
	return content
}
