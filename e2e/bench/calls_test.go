package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
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
		if err := runRawWorker(os.Getenv(rawWorkerAddress), queue); err != nil {
			fmt.Fprintln(os.Stderr, "raw worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Run(m))
}

var arguments = json.RawMessage(`{"text":"hello","n":9007199254740993}`)

// raw calls the operation as the Temporal SDK does it.
func raw(ctx context.Context, b *testing.B, c client.NexusClient) {
	b.Helper()
	h, err := c.ExecuteOperation(ctx, "echo", resultmap.RawValue(arguments), client.StartNexusOperationOptions{ID: harness.Unique("raw")})
	require.NoError(b, err)
	var output converter.RawValue
	require.NoError(b, h.Get(ctx, &output))
}

// throughConnector calls the same operation as an MCP client does it.
func throughConnector(ctx context.Context, b *testing.B, session *mcp.ClientSession) {
	b.Helper()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: arguments})
	require.NoError(b, err)
	require.False(b, res.IsError)
}

type pair struct {
	service *harness.Service
	nexus   client.NexusClient
	session *mcp.ClientSession
}

func newPair(b *testing.B) pair {
	b.Helper()
	temporal := harness.Shared(b)
	service := harness.SharedService(b)
	nexus, err := temporal.Client(b).NewNexusClient(client.NexusClientOptions{Endpoint: service.Name, Service: service.Name})
	require.NoError(b, err)
	return pair{
		service: service,
		nexus:   nexus,
		session: temporal.ConnectStdio(b, "", nil, "--service", service.Name, "--log-level", "error"),
	}
}

// BenchmarkSyncCall is one call at a time: the median through the connector and
// the median of the raw operation.
func BenchmarkSyncCall(b *testing.B) {
	p := newPair(b)
	ctx := context.Background()
	for range 20 {
		raw(ctx, b, p.nexus)
		throughConnector(ctx, b, p.session)
	}
	var direct, through []time.Duration
	for b.Loop() {
		began := time.Now()
		raw(ctx, b, p.nexus)
		between := time.Now()
		throughConnector(ctx, b, p.session)
		direct = append(direct, between.Sub(began))
		through = append(through, time.Since(between))
	}
	b.ReportMetric(milliseconds(median(direct)), "raw-p50-ms")
	b.ReportMetric(milliseconds(median(through)), "connector-p50-ms")
	b.ReportMetric(float64(median(through))/float64(median(direct)), "ratio")
}

// BenchmarkConcurrentCalls is 32 callers at once: calls per second through the
// connector and of the raw loop.
func BenchmarkConcurrentCalls(b *testing.B) {
	const callers, each = 32, 8
	p := newPair(b)
	ctx := context.Background()
	round := func(call func()) time.Duration {
		began := time.Now()
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range each {
					call()
				}
			})
		}
		group.Wait()
		return time.Since(began)
	}
	round(func() { raw(ctx, b, p.nexus) })
	var direct, through, rounds time.Duration
	for b.Loop() {
		// The order changes each time: the server slows down as it fills.
		if rounds++; rounds%2 == 0 {
			direct += round(func() { raw(ctx, b, p.nexus) })
			through += round(func() { throughConnector(ctx, b, p.session) })
		} else {
			through += round(func() { throughConnector(ctx, b, p.session) })
			direct += round(func() { raw(ctx, b, p.nexus) })
		}
	}
	calls := float64(rounds) * callers * each
	b.ReportMetric(calls/direct.Seconds(), "raw-calls/s")
	b.ReportMetric(calls/through.Seconds(), "connector-calls/s")
	b.ReportMetric(direct.Seconds()/through.Seconds(), "ratio")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
