package mcpproxy_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
)

// TestAnActivityWithoutAHeartbeatTimeout: what somebody starts by hand beats as any
// other call does.
func TestAnActivityWithoutAHeartbeatTimeout(t *testing.T) {
	t.Parallel()

	const long = 1500 * time.Millisecond
	s := newServer(t, `{"name":"long","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	s.Call = func(ctx context.Context, _ *fakeConn, _ string, _ contract.Object) (string, *contract.ProtocolError) {
		select {
		case <-ctx.Done():
		case <-time.After(long):
		}
		return `{"content":[]}`, nil
	}
	temporal(t)
	var beats atomic.Int64
	count := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
			beats.Add(1)
		}
		return invoke(ctx, method, request, reply, conn, options...)
	}
	c, err := client.Dial(client.Options{
		HostPort: server.FrontendHostPort(), Logger: quiet(), Plugins: []client.Plugin{newProxy(t, "fake", s.upstream(), mcpproxy.Options{})},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue := newEndpoint(t)
	w := worker.New(c, queue, worker.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	h, err := c.ExecuteActivity(t.Context(), client.StartActivityOptions{ID: queue, TaskQueue: queue, StartToCloseTimeout: time.Minute},
		"fake."+contract.MethodOperation("tools/call"), resultmap.RawValue([]byte(`{"arguments":{}}`)), map[string]string{"tool": "long"})
	require.NoError(t, err)
	var out converter.RawValue
	require.NoError(t, h.Get(t.Context(), &out))
	require.LessOrEqual(t, beats.Load(), int64(5))
}
