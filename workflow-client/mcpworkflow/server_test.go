package mcpworkflow_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"
)

var (
	devServer     sync.Once
	devServerStop func()
	devClient     client.Client
	errDevServer  error
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withServer{m})
}

// withServer are the tests of the package, with the dev server that they share.
type withServer struct{ tests *testing.M }

func (w withServer) Run() int {
	defer func() {
		if devServerStop != nil {
			devServerStop()
		}
	}()
	return w.tests.Run()
}

// quiet is the logger of clients and Workers whose errors are part of the test.
func quiet() sdklog.Logger {
	return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
}

// temporalServer returns a client of the dev server that all tests share, or
// skips the test where there is none.
func temporalServer(t *testing.T) client.Client {
	t.Helper()
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("TEMPORAL_CLI is not set")
		}
		t.Skip("TEMPORAL_CLI is not set; ./justw test sets it and runs everything")
	}
	devServer.Do(func() {
		var server *testsuite.DevServer
		server, errDevServer = testsuite.StartDevServer(context.Background(), testsuite.DevServerOptions{
			ExistingPath: cli, ClientOptions: &client.Options{Logger: quiet(), Identity: "mcpworkflow"},
			LogLevel: "error", Stdout: io.Discard, Stderr: io.Discard,
			ExtraArgs: []string{"--dynamic-config-value", "activity.enableCallbacks=true"},
		})
		if errDevServer == nil {
			devClient = server.Client()
			devServerStop = func() { devClient.Close(); _ = server.Stop() } // it answers "signal: killed" or so
		}
	})
	require.NoError(t, errDevServer)
	return devClient
}

// quietLog logs from a level on.
func quietLog(level slog.Level) sdklog.Logger {
	return sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}

// place is an endpoint, a Nexus service behind it and a task queue, all of one
// name.
type place struct {
	client client.Client
	name   string
}

func newPlace(t *testing.T, prefix string) place {
	t.Helper()
	return newPlaceOf(t, temporalServer(t), prefix)
}

func newPlaceOf(t *testing.T, c client.Client, prefix string) place {
	t.Helper()
	return newNamedPlace(t, c, prefix+"-"+strings.ToLower(rand.Text()[:10]))
}

func newNamedPlace(t *testing.T, c client.Client, name string) place {
	t.Helper()
	p := place{client: c, name: name}
	_, err := c.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{Name: p.name, Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
			Worker: &nexuspb.EndpointTarget_Worker{Namespace: client.DefaultNamespace, TaskQueue: p.name},
		}}},
	})
	require.NoError(t, err)
	return p
}

// options are worker options with the interceptor. The SDK fails a Workflow task
// that computes for more than a second, which on a busy machine, under the race
// detector, some megabytes of JSON may take.
func options() worker.Options {
	return worker.Options{
		Interceptors:             []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()},
		DeadlockDetectionTimeout: time.Minute,
	}
}

// serve runs a Worker on the place's task queue.
func (p place) serve(t *testing.T, o worker.Options, register func(worker.Worker)) {
	t.Helper()
	w := worker.New(p.client, p.name, o)
	register(w)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// start starts a Workflow on the place's task queue.
func (p place) start(t *testing.T, workflow string, input any) client.WorkflowRun {
	t.Helper()
	run, err := p.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: p.name + "-" + rand.Text(), TaskQueue: p.name, WorkflowRunTimeout: 4 * time.Minute,
	}, workflow, input)
	require.NoError(t, err)
	return run
}

// tool is a raw operation.
func tool(name string, run func(ctx context.Context, input json.RawMessage, o nexus.StartOperationOptions) (json.RawMessage, error)) nexus.RegisterableOperation {
	return nexus.NewSyncOperation(name, func(ctx context.Context, in converter.RawValue, o nexus.StartOperationOptions) (converter.RawValue, error) {
		input, err := resultmap.JSON(in)
		if err != nil {
			return converter.RawValue{}, err
		}
		output, err := run(ctx, input, o)
		return resultmap.RawValue(output), err
	})
}

// toolJSON is a tool object of a manifest.
func toolJSON(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":{"type":"object"}%s}`, name, name, more)
}

// lists is the list operation with one page of these tools.
func lists(tools ...string) nexus.RegisterableOperation {
	return tool(contract.OperationListTools, func(context.Context, json.RawMessage, nexus.StartOperationOptions) (json.RawMessage, error) {
		return json.RawMessage(`{"tools":[` + strings.Join(tools, ",") + `],"_meta":{"io.temporal/contract":1}}`), nil
	})
}

func echo(name string) nexus.RegisterableOperation {
	return tool(name, func(_ context.Context, input json.RawMessage, _ nexus.StartOperationOptions) (json.RawMessage, error) {
		return input, nil
	})
}

func service(name string, operations ...nexus.RegisterableOperation) *nexus.Service {
	s := nexus.NewService(name)
	s.MustRegister(operations...)
	return s
}

// workflowNamed registers a Workflow that a test runs once or more.
func workflowNamed(w worker.Worker, name string, f any) {
	w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
}

func nexusFailure(context.Context, any, nexus.StartOperationOptions) (any, error) {
	return nil, nexus.NewOperationFailedErrorf("It does not work.")
}
