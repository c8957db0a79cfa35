package contracttest_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// dial starts a dev server for the test, or skips it where there is none.
func dial(t *testing.T) client.Client {
	t.Helper()

	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("TEMPORAL_CLI is not set")
		}
		t.Skip("TEMPORAL_CLI is not set; ./justw test sets it and runs everything")
	}
	// The server outlives the test's context, which ends before the cleanups run.
	server, err := testsuite.StartDevServer(context.WithoutCancel(t.Context()), testsuite.DevServerOptions{
		ExistingPath:  cli,
		ClientOptions: &client.Options{Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))},
		LogLevel:      "error",
		Stdout:        io.Discard,
		Stderr:        io.Discard,
		ExtraArgs: []string{
			"--dynamic-config-value", "nexusoperation.enableStandalone=true",
			"--dynamic-config-value", "activity.enableCallbacks=true",
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() }) // it answers "signal: killed" or so
	return server.Client()
}

// serve runs the service behind an endpoint of its own.
func serve(t *testing.T, c client.Client, service *nexus.Service, register ...func(worker.Worker)) (endpoint string) {
	t.Helper()

	endpoint = "contracttest-" + strings.ReplaceAll(service.Name, "_", "-")
	_, err := c.OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{
			Name: endpoint,
			Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
				Worker: &nexuspb.EndpointTarget_Worker{Namespace: client.DefaultNamespace, TaskQueue: endpoint},
			}},
		},
	})
	require.NoError(t, err)
	w := worker.New(c, endpoint, worker.Options{})
	w.RegisterNexusService(service)
	for _, f := range register {
		f(w)
	}
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return endpoint
}

// caller is the least caller there is: the manifest, one operation for each call,
// and package resultmap.
type caller struct {
	client            client.Client
	endpoint, service string

	once  sync.Once
	tools map[string]contract.Tool
	err   error
}

func (c *caller) list(ctx context.Context) {
	call := contracttest.NexusCall(c.client, c.endpoint, c.service, 10*time.Second)
	m, err := contract.Collect(ctx, func(ctx context.Context, cursor string) (json.RawMessage, error) {
		return call(ctx, contract.OperationListTools, contract.ListInput(cursor))
	})
	c.err, c.tools = err, map[string]contract.Tool{}
	for _, tool := range m.Tools {
		c.tools[tool.Name] = tool
	}
}

func (c *caller) call(ctx context.Context, name string, arguments json.RawMessage) contracttest.Outcome {
	if c.once.Do(func() { c.list(ctx) }); c.err != nil {
		return contracttest.Outcome{Err: c.err}
	}
	tool := c.tools[name]
	input, err := contract.CallParams{Arguments: arguments}.Encode(tool.Encoding)
	if err != nil {
		return contracttest.Outcome{Err: err}
	}
	call := contracttest.NexusCall(c.client, c.endpoint, c.service, tool.ScheduleToCloseTimeout)
	output, err := call(ctx, name, input)
	if err == nil {
		var result contract.Result
		if result, err = resultmap.ToResult(tool, output); err == nil {
			return contracttest.Outcome{Result: result.JSON()}
		}
	}
	f := resultmap.FromError(err)
	if f.Code == contract.CodeCanceled {
		return contracttest.Outcome{Canceled: true}
	}
	if p := f.Protocol(); p != nil {
		return contracttest.Outcome{Protocol: p}
	}
	return contracttest.Outcome{Result: f.Result().JSON()}
}

func TestAgainstTemporal(t *testing.T) {
	t.Parallel()

	c := dial(t)
	endpoint := serve(t, c, contracttest.NewService("scripted"))

	t.Run("service", func(t *testing.T) {
		t.Parallel()

		contracttest.Service(t, contracttest.NexusCall(c, endpoint, "scripted", 10*time.Second))
	})
	t.Run("caller", func(t *testing.T) {
		t.Parallel()

		contracttest.Caller(t, (&caller{client: c, endpoint: endpoint, service: "scripted"}).call)
	})
	t.Run("context", func(t *testing.T) {
		t.Parallel()

		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(200*time.Millisecond, func() { cancel(errStop) })
		defer stop.Stop()
		_, err := contracttest.NexusCall(c, endpoint, "scripted", 0)(ctx, "timed_out", json.RawMessage("{}"))
		require.ErrorIs(t, err, errStop)
	})
	t.Run("limits", func(t *testing.T) {
		t.Parallel()

		checkLimits(t, c)
	})
}
