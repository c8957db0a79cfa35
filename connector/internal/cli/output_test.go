package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A result that is lost on its way out is no success.
func TestAResultThatCannotBePrinted(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, map[string]temporaltest.Handler{
		"echo": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil },
	})
	for _, flags := range [][]string{nil, {"--json"}} {
		running.Lock()
		var stderr strings.Builder
		code := Main(append([]string{"durable-mcp-connector", "call", "--service", "tools", "--temporal-address", temporal.Address(), "echo"}, flags...),
			strings.NewReader(""), full{}, &stderr)
		running.Unlock()
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr.String(), "the result could not be printed: no space left")
	}
}

// hook is standard error that calls seen once somebody has written the word.
type hook struct {
	mu   sync.Mutex
	text strings.Builder
	word string
	seen func()
}

func (h *hook) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Write(p); h.seen != nil && strings.Contains(h.text.String(), h.word) {
		h.seen()
		h.seen = nil
	}
	return len(p), nil
}

func (h *hook) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// Who is interrupted while the call starts can have started it.
func TestInterruptedWhileItStarts(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	errOut := &hook{word: "operation mcp-", seen: func() {
		temporal.SetDown(serviceerror.NewUnavailable("away"))
		interrupt()
	}}
	var out strings.Builder
	running.Lock()
	err := env{strings.NewReader(""), &out, errOut}.app().RunContext(ctx,
		[]string{"durable-mcp-connector", "call", "--service", "tools", "--temporal-address", temporal.Address(), "echo"})
	running.Unlock()
	require.Equal(t, exitError(exitRunning), err, out.String())
	require.Empty(t, out.String())
	id := strings.Fields(errOut.String()[strings.Index(errOut.String(), "operation mcp-"):])[1]
	require.Contains(t, errOut.String(), `get_operation_result '{"operation_id":"`+id+`"}'`)
	require.Contains(t, errOut.String(), "The call may have been recorded")
	require.NotContains(t, errOut.String(), "still running", "nobody knows")
}

func TestCodecEndpointThatIsNoURL(t *testing.T) {
	t.Parallel()

	for _, value := range []string{"nonsense", "ftp://localhost", "http://", "://"} {
		code, _, errOut := run("tools", "--service", "tools", "--codec-endpoint", value)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errOut, "--codec-endpoint: ")
	}
}

// Whoever reads the result of an earlier call waits for it as for that of their own.
func TestReadingAResultWaits(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	goOn := make(chan struct{})
	temporal.Serve("tools", `{"tools":[{"name":"brood","inputSchema":{"type":"object"}}]}`, map[string]temporaltest.Handler{
		"brood": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-goOn
			return json.RawMessage(`"done"`), nil
		},
	})
	call := func(args ...string) (code int, out string) {
		code, out, _ = run(append([]string{"call", "--service", "tools", "--caller", "ada", "--temporal-address", temporal.Address()}, args...)...)
		return code, out
	}
	code, _ := call("--wait", "1ms", "brood")
	require.Equal(t, exitRunning, code)
	id := temporal.Operations("tools")[0].GetOperationId()
	for _, args := range [][]string{
		{"--wait", "300ms", "get_operation_result", `{"operation_id":"` + id + `"}`},
		{"get_operation_result", `{"operation_id":"` + id + `","wait_seconds":0.1}`},
	} {
		began := time.Now()
		code, out := call(args...)
		require.Equal(t, exitRunning, code)
		require.Contains(t, out, "still running")
		require.Less(t, time.Since(began), 5*time.Second)
	}
	const look = "DescribeNexusOperationExecution"
	looks := temporal.Calls(look)
	s := settings{
		client: client.Options{HostPort: temporal.Address(), Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()}},
		server: mcpserver.Options{Services: []catalog.Service{{Name: "tools"}}, Caller: "ada", WaitBudget: time.Second},
	}
	server, done, err := s.open(t.Context())
	require.NoError(t, err)
	defer done()
	go func() {
		defer close(goOn)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for temporal.Calls(look) <= looks+1 && t.Context().Err() == nil {
			<-tick.C
		}
	}()
	var args contract.Object
	args.Set("operation_id", contract.Quote(id))
	result, err := awaitResult(t.Context(), server, id, args, 0)
	require.NoError(t, err)
	require.Equal(t, "done\n", printed(result, false))
	require.Greater(t, temporal.Calls(look), looks+1, "one look ends with the wait budget")

	code, out := call("--wait", "1m", "get_operation_result", `{"operation_id":"`+id+`"}`)
	require.Equal(t, exitDone, code)
	require.Equal(t, "done\n", out)
	code, out = call("get_operation_result", `{"operation_id":"nobody"}`)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "is not the ID of a call of this caller")
}
