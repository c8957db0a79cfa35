package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

func TestMain(m *testing.M) {
	if queue := os.Getenv(rawWorkerQueue); queue != "" {
		if err := runRawWorker(os.Getenv(rawWorkerAddress), queue, os.Getenv(rawWorkerUpstream)); err != nil {
			fmt.Fprintln(os.Stderr, "raw worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Run(m))
}

var arguments = json.RawMessage(`{"text":"hello","n":9007199254740993}`)

// operate calls an operation as the Temporal SDK does it.
func operate(ctx context.Context, c client.NexusClient, operation string, input json.RawMessage, timeout time.Duration) error {
	h, err := c.ExecuteOperation(ctx, operation, resultmap.RawValue(input), client.StartNexusOperationOptions{
		ID: harness.Unique("op"), ScheduleToCloseTimeout: timeout,
	})
	if err != nil {
		return err
	}
	var output converter.RawValue
	return h.Get(ctx, &output)
}

// operation is a side that calls an operation by the Temporal SDK.
func operation(c client.NexusClient, name string, input json.RawMessage, timeout time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return operate(ctx, c, name, input, timeout) }
}

// tool is a side that calls a tool by the MCP SDK.
func tool(session *mcp.ClientSession, name string, arguments json.RawMessage) func(context.Context) error {
	return func(ctx context.Context) error {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err == nil && res.IsError {
			err = errors.New("the tool reports an error")
		}
		return err
	}
}

// noTimeout is an operation's that has none.
const noTimeout = 0

func nexusClient(b *testing.B, temporal *harness.Temporal, service string) client.NexusClient {
	b.Helper()
	c, err := temporal.Client(b).NewNexusClient(client.NexusClientOptions{Endpoint: service, Service: service})
	require.NoError(b, err)
	return c
}

// server is a dev server of the benchmark's own: one that has served others is full
// of their calls, and slower. Benchmarks that only have to run share one.
func server(b *testing.B) *harness.Temporal {
	b.Helper()
	if testing.Short() {
		return harness.Shared(b)
	}
	return harness.StartTemporal(b, harness.ServerFlags...)
}

// toolService is the tool service on such a server.
func toolService(b *testing.B, temporal *harness.Temporal) *harness.Service {
	b.Helper()
	if testing.Short() {
		return harness.SharedService(b)
	}
	return temporal.StartService(b)
}

// syncSides are a sync operation by the Temporal SDK, and the same one as a tool of
// the connector.
func syncSides(b *testing.B, temporal *harness.Temporal) (raw, connector *side) {
	b.Helper()
	service := toolService(b, temporal)
	session := temporal.ConnectStdio(b, "", nil, "--service", service.Name, "--log-level", "error")
	return &side{name: "raw", call: operation(nexusClient(b, temporal, service.Name), "echo", arguments, noTimeout)},
		&side{name: "connector", call: tool(session, "echo", arguments)}
}

// BenchmarkSyncCall is one call after the other, and one at a time at any moment.
func BenchmarkSyncCall(b *testing.B) {
	b.Run("in-turn", func(b *testing.B) {
		raw, connector := syncSides(b, server(b))
		compare(b, 1, 20, raw, connector)
		relate(b, "ratio", byLatency, connector, raw)
	})
	b.Run("any-time", func(b *testing.B) {
		raw, connector := syncSides(b, server(b))
		compareSingle(b, 20, raw, connector)
		relate(b, "ratio", byLatency, connector, raw)
	})
}

// BenchmarkConcurrentCalls is 32 callers at once.
func BenchmarkConcurrentCalls(b *testing.B) {
	const callers = 32
	raw, connector := syncSides(b, server(b))
	compareLonger(b, 4, callers, 8*callers, raw, connector) // to tell a twentieth
	relate(b, "ratio", bySpeed, connector, raw)
}
