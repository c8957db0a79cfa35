package bench_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
)

// BenchmarkProxiedRequests is what a Worker asks of Temporal for a call: a figure
// that no load changes. Polls that find nothing do not count.
func BenchmarkProxiedRequests(b *testing.B) {
	upstream := harness.StartUpstream(b)
	name, queue := harness.Unique("up"), harness.Unique("raw")
	proxy, err := mcpproxy.New(name, mcpproxy.HTTP(upstream.URL, mcpproxy.HTTPOptions{}), mcpproxy.Options{
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	var requests atomic.Int64
	temporal := server(b)
	require.NoError(b, countedWorker(b, temporal, &requests, name, proxy).Start())
	w := countedWorker(b, temporal, &requests, queue)
	require.NoError(b, registerRaw(w, queue, nil))
	require.NoError(b, w.Start())
	through := nexusClient(b, temporal, name)
	calls := map[string]func(context.Context) error{
		"raw":     operation(nexusClient(b, temporal, queue), echoActivity, callOf(arguments), time.Hour),
		"proxied": operation(through, toolRepeated, callOf(arguments), time.Hour),
		"once":    operation(through, toolOnce, callOf(answer), time.Hour),
	}
	total, rounds := map[string]int64{}, 0
	for ; b.Loop(); rounds++ {
		for kind, call := range calls {
			before := requests.Load()
			require.NoError(b, call(b.Context()))
			total[kind] += requests.Load() - before
		}
	}
	for kind, n := range total {
		b.ReportMetric(float64(n)/float64(rounds), kind+"-requests/call")
	}
}

// countedWorker returns a Worker whose requests are counted, on a task queue with an
// endpoint of that name.
func countedWorker(b *testing.B, temporal *harness.Temporal, requests *atomic.Int64, queue string, plugins ...client.Plugin) worker.Worker {
	b.Helper()
	temporal.CreateEndpoint(b, queue, queue)
	c, err := client.Dial(client.Options{
		HostPort: temporal.Address, Logger: quiet(), Plugins: plugins,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(counter(requests))}},
	})
	require.NoError(b, err)
	b.Cleanup(c.Close)
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true})
	b.Cleanup(w.Stop)
	return w
}

func counter(requests *atomic.Int64) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		poll, isPoll := reply.(interface{ GetTaskToken() []byte })
		if !isPoll && !strings.HasSuffix(method, "/RecordWorkerHeartbeat") { // which is the process's, in its own time
			requests.Add(1)
		}
		err := invoke(ctx, method, request, reply, conn, options...)
		if isPoll && len(poll.GetTaskToken()) > 0 {
			requests.Add(1)
		}
		return err
	}
}
