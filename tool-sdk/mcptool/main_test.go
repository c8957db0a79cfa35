package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"
)

// childEnv makes the test binary a Worker that a test can kill, see child_test.go.
const childEnv = "MCPTOOL_TEST_CHILD"

// server is the dev server of the test binary; nil where there is no Temporal CLI.
var server *testsuite.DevServer

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	goleak.VerifyTestMain(withServer{m})
}

// withServer are the tests of the package, with the dev server that they share.
type withServer struct{ tests *testing.M }

func (w withServer) Run() int {
	if os.Getenv("TEMPORAL_CLI") == "" {
		return w.tests.Run()
	}
	s, err := startServer(
		"nexusoperation.enableStandalone=true",
		"activity.enableCallbacks=true",
		"history.enableUpdateCallbacks=true", // for operations that send an update
		"history.outboundProcessorMaxPollRPS=1000",
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptool: dev server:", err)
		return 1
	}
	server = s
	defer func() { s.Client().Close(); _ = s.Stop() }()
	return w.tests.Run()
}

func startServer(config ...string) (*testsuite.DevServer, error) {
	options := testsuite.DevServerOptions{
		ExistingPath:  os.Getenv("TEMPORAL_CLI"),
		ClientOptions: &client.Options{Logger: quiet()},
		LogLevel:      "error",
		Stdout:        io.Discard,
		Stderr:        io.Discard,
	}
	for _, c := range config {
		options.ExtraArgs = append(options.ExtraArgs, "--dynamic-config-value", c)
	}
	return testsuite.StartDevServer(context.Background(), options)
}

func quiet() sdklog.Logger {
	return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
}

// temporal returns a client of the dev server.
func temporal(t *testing.T) client.Client {
	t.Helper()
	if server == nil {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	return server.Client()
}

var endpoints atomic.Int64

// newEndpoint makes a Nexus endpoint and returns its name, which is also its task
// queue's.
func newEndpoint(t *testing.T) string {
	t.Helper()
	return newEndpointOn(t, temporal(t))
}

func newEndpointOn(t *testing.T, c client.Client) string {
	t.Helper()
	name := fmt.Sprintf("mcptool-%d", endpoints.Add(1))
	_, err := c.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{
			Name: name,
			Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
				Worker: &nexuspb.EndpointTarget_Worker{Namespace: "default", TaskQueue: name},
			}},
		},
	})
	require.NoError(t, err)
	return name
}

// caller calls the operations of one service.
type caller struct {
	t        *testing.T
	endpoint string
	service  string
	client   client.Client // nil for the server of the test binary
}

// serve registers the service with a Worker of its own.
func serve(t *testing.T, s *mcptool.Service, service string, setup ...func(worker.Worker)) caller {
	t.Helper()
	temporal(t)
	return serveOn(t, server, s, service, setup...)
}

func serveOn(t *testing.T, on *testsuite.DevServer, s *mcptool.Service, service string, setup ...func(worker.Worker)) caller {
	t.Helper()
	c := on.Client()
	endpoint := newEndpointOn(t, c)
	w := worker.New(c, endpoint, worker.Options{})
	for _, f := range setup {
		f(w)
	}
	require.NoError(t, s.Register(w))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return caller{t: t, endpoint: endpoint, service: service, client: c}
}

var calls atomic.Int64

// start starts a call with raw input.
func (c caller) start(operation, input string, timeout time.Duration) client.NexusOperationHandle {
	c.t.Helper()
	if c.client == nil {
		c.client = temporal(c.t)
	}
	nc, err := c.client.NewNexusClient(client.NexusClientOptions{Endpoint: c.endpoint, Service: c.service})
	require.NoError(c.t, err)
	options := client.StartNexusOperationOptions{
		ID: fmt.Sprintf("%s-%d", c.endpoint, calls.Add(1)), ScheduleToCloseTimeout: timeout,
	}
	var handle client.NexusOperationHandle
	require.Eventually(c.t, func() bool { // the endpoint registry is eventually consistent
		handle, err = nc.ExecuteOperation(c.t.Context(), operation, resultmap.RawValue(json.RawMessage(input)), options)
		return err == nil || !strings.Contains(err.Error(), "endpoint")
	}, 10*time.Second, 20*time.Millisecond)
	require.NoError(c.t, err)
	return handle
}

// wait returns the output of a call as bytes.
func (c caller) wait(handle client.NexusOperationHandle) (string, error) {
	c.t.Helper()
	// A deadline on the context would make the SDK poll without pause.
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	defer time.AfterFunc(time.Minute, cancel).Stop()
	var output converter.RawValue
	if err := handle.Get(ctx, &output); err != nil {
		return "", err
	}
	data, err := resultmap.JSON(output)
	return string(data), err
}

const callTimeout = 30 * time.Second

// call runs an operation and returns its output as bytes.
func (c caller) call(operation, input string) (string, error) {
	c.t.Helper()
	return c.wait(c.start(operation, input, callTimeout))
}

// ok is a call that must succeed.
func (c caller) ok(operation, input string) string {
	c.t.Helper()
	output, err := c.call(operation, input)
	require.NoError(c.t, err)
	return output
}

// fails is a call that must fail.
func (c caller) fails(operation, input string) *contract.Failure {
	c.t.Helper()
	output, err := c.call(operation, input)
	require.Error(c.t, err, "it returned %.200s", output)
	return resultmap.FromError(err)
}

// answers is a call that must end as a tool error; it returns the text.
func (c caller) answers(operation, input string) string {
	c.t.Helper()
	f := c.fails(operation, input)
	require.Equal(c.t, contract.CodeToolError, f.Code, "%v", f.Cause)
	text, ok := f.Result().Text()
	require.True(c.t, ok)
	return text
}

// manifest lists the tools.
func (c caller) manifest() contract.Manifest {
	c.t.Helper()
	m, err := contract.Collect(c.t.Context(), func(_ context.Context, cursor string) (json.RawMessage, error) {
		output, err := c.call(contract.OperationListTools, string(contract.ListInput(cursor)))
		return json.RawMessage(output), err
	})
	require.NoError(c.t, err)
	require.Empty(c.t, m.Warnings)
	return m
}

// sync is a sync operation whose options nobody needs.
func sync[I, O any](name string, f func(ctx context.Context, in I) (O, error)) nexus.Operation[I, O] {
	return nexus.NewSyncOperation(name, func(ctx context.Context, in I, _ nexus.StartOperationOptions) (O, error) {
		return f(ctx, in)
	})
}

var errBoom = errors.New("boom")

// readOnly is a declaration without warnings.
func readOnly(description string) mcptool.Tool {
	return mcptool.Tool{Description: description, Annotations: mcptool.Annotations{ReadOnlyHint: true}}
}

// countWorkflows counts the Workflows of a task queue.
func countWorkflows(taskQueue string) *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: "default", Query: fmt.Sprintf("TaskQueue='%s'", taskQueue),
	}
}

func failure(err error) *contract.Failure { return resultmap.FromError(err) }
