package load_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// calls is how many calls wait at once. With the race detector two cores take longer
// to start hundreds than a handler has, and the server delivers them again and again.
func calls(t *testing.T) int {
	t.Helper()
	text := os.Getenv("DURABLE_MCP_LOAD_CALLS")
	switch {
	case text == "" && harness.Race:
		return 100
	case text == "":
		return 300
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.Positive(t, n)
	return n
}

// The tools: gate returns its arguments once the gate is open, echo at once.
const (
	toolGate = "gate"
	toolEcho = "echo"
)

// service is a tool service whose Worker is part of the test, so that it knows what ran
// without a word of Temporal.
type service struct {
	name string

	mu   sync.Mutex
	gate chan struct{}
	ran  map[int]int // how often the gate's call of a number has begun
}

// gateArguments are the arguments of a call of gate, and its result.
type gateArguments struct {
	Call int `json:"call"`
}

// startService returns when the Worker polls.
func startService(t *testing.T, server *harness.Temporal) *service {
	t.Helper()
	s := &service{name: harness.Unique("load"), gate: make(chan struct{}), ran: map[int]int{}}
	server.CreateEndpoint(t, s.name, s.name)
	c, err := client.Dial(client.Options{
		HostPort: server.Address,
		Logger:   sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		// The results that an open gate lets go come all at once. The SDK drops one
		// that the server does not take within its ten seconds.
		RPCTimeout: patience(calls(t)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := worker.New(c, s.name, worker.Options{DisableWorkflowWorker: true, MaxConcurrentActivityExecutionSize: 10_000})
	operations := nexus.NewService(s.name)
	require.NoError(t, operations.Register(s.listTools(), s.operation(), nexus.NewSyncOperation(toolEcho,
		func(_ context.Context, input converter.RawValue, _ nexus.StartOperationOptions) (converter.RawValue, error) {
			return input, nil
		})))
	w.RegisterNexusService(operations)
	w.RegisterActivityWithOptions(s.wait, activity.RegisterOptions{Name: toolGate})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	t.Cleanup(s.open)
	return s
}

func (s *service) listTools() nexus.RegisterableOperation {
	manifest := contract.Manifest{Version: contract.Version}
	for _, name := range []string{toolGate, toolEcho} {
		manifest.Tools = append(manifest.Tools, contract.Tool{
			Name: name, Raw: json.RawMessage(`{"name":"` + name + `","description":"Of the load test.","inputSchema":{"type":"object"}}`),
		})
	}
	return nexus.NewSyncOperation(contract.OperationListTools,
		func(context.Context, converter.RawValue, nexus.StartOperationOptions) (converter.RawValue, error) {
			return resultmap.RawValue(manifest.JSON()), nil
		})
}

// operation runs gate as an activity, which costs the server less than a Workflow.
func (s *service) operation() nexus.RegisterableOperation {
	return temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
		Name: toolGate,
		Start: func(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, o temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
			return temporalnexus.StartActivity(ctx, nc, client.StartActivityOptions{
				ID: toolGate + "-" + o.RequestID, TaskQueue: s.name, StartToCloseTimeout: time.Hour,
				RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
			}, s.wait, input)
		},
	})
}

func (s *service) wait(ctx context.Context, input converter.RawValue) (converter.RawValue, error) {
	var args gateArguments
	if err := json.Unmarshal(input.Payload().GetData(), &args); err != nil {
		return converter.RawValue{}, err
	}
	s.mu.Lock()
	s.ran[args.Call]++
	gate := s.gate
	s.mu.Unlock()
	select {
	case <-gate:
		return input, nil
	case <-ctx.Done():
		return converter.RawValue{}, ctx.Err()
	}
}

// open lets all calls through, those that are yet to come too.
func (s *service) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gate:
	default:
		close(s.gate)
	}
}

// shut makes the calls from here on wait.
func (s *service) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// begun is how many calls of gate have begun.
func (s *service) begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ran)
}

// once wants each call to have begun exactly once.
func (s *service) once(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.ran, n)
	for call, times := range s.ran {
		require.Equal(t, 1, times, "call %d", call)
	}
}
