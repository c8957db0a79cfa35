package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
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
	const poll = "PollNexusOperationExecution"
	polls := temporal.Calls(poll)
	go func() {
		defer close(goOn)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for temporal.Calls(poll) <= polls && t.Context().Err() == nil {
			<-tick.C
		}
	}()
	code, out := call("--wait", "1m", "get_operation_result", `{"operation_id":"`+id+`"}`)
	require.Equal(t, exitDone, code)
	require.Equal(t, "done\n", out)
	code, out = call("get_operation_result", `{"operation_id":"nobody"}`)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "is not the ID of a call of this caller")
}

// A codec that is away for a while is waited for, as Temporal is.
func TestReadingAResultWaitsForTheCodec(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, map[string]temporaltest.Handler{
		"echo": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil },
	})
	var fails atomic.Int32
	handler := converter.NewPayloadCodecHTTPHandler()
	codec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var payloads commonpb.Payloads
		_ = protojson.Unmarshal(body, &payloads)
		// What is kept of the call has its arguments in a string.
		if bytes.Contains(payloads.GetPayloads()[0].GetData(), []byte(`\"n\"`)) && fails.Add(-1) >= 0 {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(codec.Close)
	call := func(args ...string) (code int, out, errOut string) {
		return run(append([]string{"call", "--service", "tools", "--temporal-address", temporal.Address(), "--codec-endpoint", codec.URL}, args...)...)
	}
	code, out, _ := call("echo", `{"n":1.0}`)
	require.Equal(t, exitDone, code, out)
	fails.Store(3)
	id := `{"operation_id":"` + temporal.Operations("tools")[0].GetOperationId() + `"}`
	code, out, errOut := call("get_operation_result", id)
	require.Equal(t, "{\"n\":1.0}\n", out)
	require.Equal(t, exitDone, code)
	require.Negative(t, fails.Load())
	require.Equal(t, 1, strings.Count(errOut, "Service Unavailable: away"), "who waits is told for what")

	fails.Store(1 << 20)
	code, out, _ = call("cancel_operation", id)
	require.Contains(t, out, "The call has ended already: completed.", "what says so needs no codec")
	require.Equal(t, exitDone, code)
}

// A look waits for as long as the person does, whatever one request of a client may.
func TestALookIsAsLongAsTheWait(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		args         string
		wait, budget time.Duration
		want         string
	}{
		{`{"operation_id":"x"}`, 0, untilDone, `{"operation_id":"x","wait_seconds":4611686018.427}`},
		{`{"operation_id":"x"}`, 10 * time.Minute, 10 * time.Minute, `{"operation_id":"x","wait_seconds":600.000}`},
		{`{"operation_id":"x"}`, 50 * time.Millisecond, waitBudget, `{"operation_id":"x","wait_seconds":0.050}`},
		{`{"wait_seconds":5}`, 10 * time.Minute, 0, `{"wait_seconds":5}`},
	} {
		var s settings
		require.Equal(t, test.want, string(s.lookFor(json.RawMessage(test.args), test.wait)))
		require.Equal(t, test.budget, s.server.WaitBudget, test.args)
	}
}
