package cli

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"
)

// serveFlagsOf returns the flags for the dev server.
func serveFlagsOf(t *testing.T, path, queue string) []string {
	t.Helper()
	devClient(t)
	return []string{"serve", "--config", path, "--temporal-address", devServer.FrontendHostPort(), "--task-queue", queue, "--listen", "127.0.0.1:0"}
}

var healthURL = regexp.MustCompile(`url=(http://[0-9.:]+)/readyz`)

// base returns where the health checks are.
func (p *process) base(t *testing.T) string {
	t.Helper()
	var found []string
	require.Eventually(t, func() bool {
		found = healthURL.FindStringSubmatch(p.err.String())
		return found != nil
	}, 30*time.Second, 10*time.Millisecond, "no health checks: %v", &p.err)
	return found[1]
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	raw, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(raw)
}

// ready waits until the program serves.
func (p *process) ready(t *testing.T) {
	t.Helper()
	base := p.base(t)
	require.Eventually(t, func() bool {
		select {
		case <-p.exited:
			return true
		default:
		}
		status, _ := get(t, base+"/readyz")
		return status == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond)
	status, body := get(t, base+"/readyz")
	require.Equal(t, http.StatusOK, status, body)
}

func (p *process) signal(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// call starts a tool of a service behind the endpoint of its name.
func call(t *testing.T, service, tool, arguments string) client.NexusOperationHandle {
	t.Helper()
	nexus, err := devClient(t).NewNexusClient(client.NexusClientOptions{Endpoint: service, Service: service})
	require.NoError(t, err)
	var handle client.NexusOperationHandle
	require.Eventually(t, func() bool { // the servers learn of an endpoint one after the other
		handle, err = nexus.ExecuteOperation(t.Context(), tool, resultmap.RawValue(json.RawMessage(`{"arguments":`+arguments+`}`)),
			client.StartNexusOperationOptions{ID: service + "-" + tool, ScheduleToCloseTimeout: time.Minute})
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	return handle
}

func TestServe(t *testing.T) {
	t.Parallel()

	path := file(t, `{"cli-a": {"command": $SELF, "args": ["scripted-server"]}, "b": {"command": $SELF, "args": ["scripted-server"], "service": "cli-b"},
		"cli-lost": {"command": $SELF, "args": ["scripted-server", "--exit", "1"], "env": {$SOON}}}`)
	flags := append(serveFlagsOf(t, path, "cli-serve"), "--ensure-endpoints", "--continue-on-error", "--shutdown-timeout", "1s")
	// Twice: the second finds the endpoints there.
	for range 2 {
		p := start(t, "", nil, flags...)
		p.ready(t)
		status, body := get(t, p.base(t)+"/healthz")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "ok\n", body)
		p.signal(t)
		require.Equal(t, exitDone, p.wait(t), p.err.String())
		require.Empty(t, p.out.String())
		require.Contains(t, p.err.String(), `"mcpproxy: the tools could not be listed" server=cli-lost`)
	}

	p := start(t, "", nil, flags...)
	p.ready(t)
	for _, service := range []string{"cli-a", "cli-b"} {
		var result converter.RawValue
		require.NoError(t, call(t, service, "look", `{"n":1.0}`).Get(t.Context(), &result))
		require.JSONEq(t, `{"content":[],"structuredContent":{"n":1.0}}`, string(result.Payload().GetData()))
	}
	// A call that never ends holds nothing up longer than it may.
	call(t, "cli-a", "send", `{}`)
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "send is called") }, 20*time.Second, 20*time.Millisecond)
	began := time.Now()
	p.signal(t)
	require.Equal(t, exitDone, p.wait(t), p.err.String())
	took := time.Since(began)
	require.Greater(t, took, 900*time.Millisecond, "the call has its time")
	require.Less(t, took, 10*time.Second)
	require.Contains(t, p.err.String(), "stopping; ")
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()

	path := file(t, `{"cli-twice": {"command": $SELF, "args": ["scripted-server"]}}`)
	p := start(t, "", nil, append(serveFlagsOf(t, path, "cli-twice"), "--ensure-endpoints", "--shutdown-timeout", "10m")...)
	p.ready(t)
	call(t, "cli-twice", "send", `{}`)
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "send is called") }, 20*time.Second, 20*time.Millisecond)
	p.signal(t)
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "stopping; ") }, 20*time.Second, 20*time.Millisecond)
	p.signal(t)
	require.Equal(t, exitFailed, p.wait(t))
}

func TestServeThatCannot(t *testing.T) {
	t.Parallel()

	dead := file(t, `{"ok": {"command": $SELF, "args": ["scripted-server"]}, "dead-1": {"command": $SELF, "args": ["scripted-server", "--exit", "1"], "env": {$SOON}},
		"dead-2": {"command": $SELF, "args": ["scripted-server", "--exit", "2"], "env": {$SOON}, "continue_on_error": false},
		"dead-3": {"command": $SELF, "args": ["scripted-server", "--exit", "3"], "env": {$SOON}, "continue_on_error": true}}`)
	p := start(t, "", nil, serveFlagsOf(t, dead, "cli-dead")...)
	require.Equal(t, exitFailed, p.wait(t))
	require.Contains(t, p.err.String(), "durable-mcp-proxy: mcpproxy: dead-1: connect: the server process exited with code 1\nmcpproxy: dead-2: connect: the server process exited with code 2\n")

	fine := file(t, `{"cli-elsewhere": {"command": $SELF, "args": ["scripted-server"]}}`)
	p = start(t, "", nil, append(serveFlagsOf(t, fine, "cli-fine"), "--temporal-namespace", "no-such-namespace")...)
	require.Equal(t, exitFailed, p.wait(t))
	require.Contains(t, p.err.String(), `there is no namespace "no-such-namespace" at `)

	operator := devClient(t).OperatorService()
	elsewhere := endpoint{"cli-elsewhere", "default", "another-queue"}
	require.NoError(t, ensureEndpoint(t.Context(), operator, elsewhere, quiet()))
	p = start(t, "", nil, append(serveFlagsOf(t, fine, "cli-fine"), "--ensure-endpoints")...)
	require.Equal(t, exitFailed, p.wait(t))
	require.Contains(t, p.err.String(), `the Nexus endpoint "cli-elsewhere" exists and leads to task queue "another-queue" in namespace "default", not to "cli-fine" in "default"; it is not changed`)
	reply, err := operator.ListNexusEndpoints(t.Context(), &operatorservice.ListNexusEndpointsRequest{Name: elsewhere.name})
	require.NoError(t, err)
	require.Equal(t, "another-queue", reply.GetEndpoints()[0].GetSpec().GetTarget().GetWorker().GetTaskQueue())

	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	p = start(t, "", nil, append(serveFlagsOf(t, fine, "cli-fine"), "--listen", taken.Addr().String())...)
	require.Equal(t, exitUsage, p.wait(t))
	require.Contains(t, p.err.String(), "--listen: listen tcp")
}

// The program waits for a Temporal that is away, and serves when it comes.
func TestTemporalIsAway(t *testing.T) {
	t.Parallel()

	devClient(t)
	address := nowhere(t)
	path := file(t, `{"cli-away": {"command": $SELF, "args": ["scripted-server"]}}`)
	flags := append(serveFlagsOf(t, path, "cli-away"), "--temporal-address", address)

	p := start(t, "", nil, flags...)
	base := p.base(t)
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "Temporal cannot be reached; trying again") }, 20*time.Second, 20*time.Millisecond)
	status, _ := get(t, base+"/healthz")
	require.Equal(t, http.StatusOK, status)
	status, body := get(t, base+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "not ready: the Worker does not run\n", body)
	p.signal(t)
	require.Equal(t, exitDone, p.wait(t), p.err.String())

	p = start(t, "", nil, flags...)
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "Temporal cannot be reached; trying again") }, 20*time.Second, 20*time.Millisecond)
	stop := forward(t, address, devServer.FrontendHostPort())
	p.ready(t)
	stop()
	require.Eventually(t, func() bool { status, _ := get(t, p.base(t)+"/readyz"); return status != http.StatusOK }, 20*time.Second, 50*time.Millisecond)
	forward(t, address, devServer.FrontendHostPort())
	p.ready(t)
	p.signal(t)
	require.Equal(t, exitDone, p.wait(t), p.err.String())
}

// A Temporal that has just come up gets its namespaces a moment later.
func TestTheNamespaceComesLate(t *testing.T) {
	t.Parallel()

	devClient(t)
	address := nowhere(t)
	path := file(t, `{"cli-late": {"command": $SELF, "args": ["scripted-server"]}}`)
	p := start(t, "", nil, append(serveFlagsOf(t, path, "cli-late"), "--temporal-address", address, "--temporal-namespace", "cli-late")...)
	said := func(what string) {
		require.Eventually(t, func() bool { return strings.Contains(p.err.String(), what) }, 20*time.Second, 20*time.Millisecond, what)
	}
	said("connection refused")
	forward(t, address, devServer.FrontendHostPort())
	said("the namespace is not there yet; trying again")
	_, err := devClient(t).WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "cli-late", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	p.ready(t)
}

// nowhere returns an address at which nobody listens. Its port is below those that
// connections and listeners without a port of their own get.
func nowhere(t *testing.T) string {
	t.Helper()
	for port := 10_000 + rand.IntN(5_000); ; port++ {
		require.Less(t, port, 16_000)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
}

// forward is a way to an address that can be cut.
func forward(t *testing.T, from, to string) (stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", from)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(ctx, "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); _ = listener.Close() })
	t.Cleanup(stop)
	return stop
}
