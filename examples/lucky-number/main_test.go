package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// temporal is the dev server of the tests; nil without a Temporal CLI.
var temporal client.Client

func TestMain(m *testing.M) { os.Exit(withTemporal(m.Run)) }

func withTemporal(run func() int) int {
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		return run()
	}
	st, err := stage.New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = st.Close() }()
	server, err := st.StartTemporal(context.Background(), cli)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	temporal, err = client.Dial(client.Options{
		HostPort:     server.Address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
		Logger:       quiet(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer temporal.Close()
	return run()
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// needTemporal skips the test without a dev server, and fails it in CI.
func needTemporal(t *testing.T) {
	t.Helper()
	if temporal != nil {
		return
	}
	const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
	if os.Getenv("CI") == "true" {
		require.FailNow(t, how)
	}
	t.Skip(how)
}

// tools is an MCP client of the tools, through a connector and a real server.
type tools struct {
	session *mcp.ClientSession
	queue   string
}

// serve starts a Worker of its own and connects a client to it.
func serve(t *testing.T, idle time.Duration) tools {
	t.Helper()
	needTemporal(t)
	queue := serviceName + "-" + strings.ToLower(rand.Text()[:10])
	_, err := temporal.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{Name: queue, Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
			Worker: &nexuspb.EndpointTarget_Worker{Namespace: stage.Namespace, TaskQueue: queue},
		}}},
	})
	require.NoError(t, err)
	w := worker.New(temporal, queue, worker.Options{})
	require.NoError(t, register(w, idle))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	server, err := mcpserver.New(temporal, mcpserver.Options{
		Services: []catalog.Service{{Name: serviceName, Endpoint: queue}},
		Logger:   slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	fresh, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() { server.Run(fresh) })
	t.Cleanup(func() { stop(); background.Wait() })
	here, there := mcp.NewInMemoryTransports()
	_, err = server.MCP().Connect(t.Context(), there, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })

	served := false
	for last := time.After(30 * time.Second); !served; {
		list, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, tool := range list.Tools {
			served = served || tool.Name == "lucky_number"
		}
		select {
		case <-last:
			require.FailNow(t, "the tools are not served")
		case <-time.After(50 * time.Millisecond): // a new endpoint takes its time to be known
		}
	}
	return tools{session, queue}
}

// call calls a tool. Structured is its structured content as JSON.
func (c tools) call(t *testing.T, tool string, args map[string]any) (result *mcp.CallToolResult, structured string) {
	t.Helper()
	result, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	data, err := json.Marshal(result.StructuredContent)
	require.NoError(t, err)
	return result, string(data)
}

// ok is a call that must succeed; the structured content goes into v.
func (c tools) ok(t *testing.T, tool string, args map[string]any, v any) {
	t.Helper()
	result, structured := c.call(t, tool, args)
	require.False(t, result.IsError, "%s: %s", tool, text(result))
	require.NoError(t, json.Unmarshal([]byte(structured), v))
}

// refused is a call that must end as an answer that reports an error; it returns
// the text.
func (c tools) refused(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	result, structured := c.call(t, tool, args)
	require.True(t, result.IsError, "%s: %s", tool, structured)
	return text(result)
}

func text(result *mcp.CallToolResult) string {
	var b strings.Builder
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}
