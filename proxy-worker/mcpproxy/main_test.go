package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
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
	"go.uber.org/goleak"
)

// childEnv makes the test binary a Worker that a test can kill, see crash_test.go.
const childEnv = "MCPPROXY_TEST_CHILD"

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
	options := testsuite.DevServerOptions{
		ExistingPath:  os.Getenv("TEMPORAL_CLI"),
		ClientOptions: &client.Options{Logger: quiet()},
		LogLevel:      "error",
		Stdout:        io.Discard,
		Stderr:        io.Discard,
	}
	for _, c := range []string{
		"nexusoperation.enableStandalone=true", "activity.enableCallbacks=true", "history.outboundProcessorMaxPollRPS=1000",
	} {
		options.ExtraArgs = append(options.ExtraArgs, "--dynamic-config-value", c)
	}
	s, err := testsuite.StartDevServer(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpproxy: dev server:", err)
		return 1
	}
	server = s
	defer func() { s.Client().Close(); _ = s.Stop() }()
	return w.tests.Run()
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(discard()) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// temporal returns a client of the dev server that knows no proxy.
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

// dial returns a client with plugins.
func dial(t *testing.T, plugins ...client.Plugin) client.Client {
	t.Helper()
	temporal(t)
	c, err := client.Dial(client.Options{HostPort: server.FrontendHostPort(), Logger: quiet(), Plugins: plugins})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

var endpoints atomic.Int64

// newEndpoint makes a Nexus endpoint and returns its name, which is also its task
// queue's.
func newEndpoint(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("mcpproxy-%d", endpoints.Add(1))
	_, err := temporal(t).OperatorService().CreateNexusEndpoint(t.Context(), &operatorservice.CreateNexusEndpointRequest{
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

// newProxy returns a proxy that logs nothing.
func newProxy(t *testing.T, name string, upstream mcpproxy.Upstream, o mcpproxy.Options) *mcpproxy.Proxy {
	t.Helper()
	if o.Logger == nil {
		o.Logger = discard()
	}
	p, err := mcpproxy.New(name, upstream, o)
	require.NoError(t, err)
	return p
}

// caller calls the operations of one service.
type caller struct {
	t        *testing.T
	endpoint string
	service  string
	header   nexus.Header
}

// serve runs a proxy on a Worker of its own.
func serve(t *testing.T, upstream mcpproxy.Upstream, o mcpproxy.Options) caller {
	t.Helper()
	p := newProxy(t, "fake", upstream, o)
	return serveProxy(t, p, "fake")
}

func serveProxy(t *testing.T, p *mcpproxy.Proxy, service string) caller {
	t.Helper()
	endpoint := newEndpoint(t)
	w := worker.New(dial(t, p), endpoint, worker.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return caller{t: t, endpoint: endpoint, service: service}
}

// with returns a caller whose calls have a Nexus header.
func (c caller) with(key, value string) caller {
	header := nexus.Header{key: value}
	maps.Copy(header, c.header)
	c.header = header
	return c
}

// headers puts Nexus headers on standalone operations.
type headers struct {
	interceptor.ClientInterceptorBase
	header nexus.Header
}

func (h *headers) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	out := &headersOutbound{header: h.header}
	out.Next = next
	return out
}

type headersOutbound struct {
	interceptor.ClientOutboundInterceptorBase
	header nexus.Header
}

func (h *headersOutbound) ExecuteNexusOperation(ctx context.Context, in *interceptor.ClientExecuteNexusOperationInput) (client.NexusOperationHandle, error) {
	for k, v := range h.header {
		in.NexusHeader.Set(k, v)
	}
	return h.Next.ExecuteNexusOperation(ctx, in)
}

var ids atomic.Int64

// start starts a call with raw input.
func (c caller) start(operation, input string, timeout time.Duration) client.NexusOperationHandle {
	c.t.Helper()
	tc := temporal(c.t)
	if c.header != nil {
		var err error
		tc, err = client.NewClientFromExistingWithContext(c.t.Context(), tc, client.Options{
			Logger: quiet(), Interceptors: []interceptor.ClientInterceptor{&headers{header: c.header}},
		})
		require.NoError(c.t, err)
		c.t.Cleanup(tc.Close)
	}
	nc, err := tc.NewNexusClient(client.NexusClientOptions{Endpoint: c.endpoint, Service: c.service})
	require.NoError(c.t, err)
	options := client.StartNexusOperationOptions{
		ID: fmt.Sprintf("%s-%d", c.endpoint, ids.Add(1)), ScheduleToCloseTimeout: timeout,
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

const callTimeout = time.Minute

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
