package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
)

var temporal *stage.Temporal

// How long a condition may take, and how often it is asked.
const (
	waitFor = 30 * time.Second
	tick    = 50 * time.Millisecond
)

func TestMain(m *testing.M) { os.Exit(withWorld(m.Run)) }

// withWorld runs the tests beside a dev server and the tool service.
func withWorld(run func() int) int {
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		return run()
	}
	st, err := stage.New()
	if err == nil {
		defer func() { _ = st.Close() }()
		err = startWorld(context.Background(), st, cli)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func startWorld(ctx context.Context, st *stage.Stage, cli string) (err error) {
	if err := st.Build(ctx, "github.com/durable-mcp/durable-mcp/examples/lucky-number"); err != nil {
		return err
	}
	if temporal, err = st.StartTemporal(ctx, cli); err != nil {
		return err
	}
	service, err := st.Start("lucky-number", st.Program("lucky-number"), []string{"--ensure-endpoint"}, temporal.Env())
	if err != nil {
		return err
	}
	return service.AwaitLog(ctx, "lucky-number is ready")
}

// log is a buffer for a logger and a reader at once.
type log struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

// serve serves the example's handler and returns its address and its log.
func serve(t *testing.T) (url string, logs *log) {
	t.Helper()
	if temporal == nil {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			require.FailNow(t, how)
		}
		t.Skip(how)
	}
	logs = new(log)
	logger := slog.New(slog.NewTextHandler(logs, nil))
	c, err := client.NewLazyClient(client.Options{
		HostPort:     temporal.Address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
		Logger:       sdklog.NewStructuredLogger(logger),
	})
	require.NoError(t, err)
	known, err := parseUsers("ada=secret-1 eve=secret-2 guest=secret-3")
	require.NoError(t, err)
	server, handler, err := newHandler(c, stage.Namespace, known, logger)
	require.NoError(t, err)
	fresh, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { server.Run(fresh) })
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.Close()
		stop()
		background.Wait()
		c.Close()
	})
	return web.URL, logs
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, token string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: url + "/tools/mcp", HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool and decodes the structured content of its result into v.
func call(t *testing.T, session *mcp.ClientSession, tool string, args map[string]any, v any) *mcp.CallToolResult {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	data, err := json.Marshal(result.StructuredContent)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, v), "%s", data)
	return result
}

type operations struct {
	Operations []struct {
		ID   string `json:"operation_id"`
		Tool string
	}
}

func TestUsersSeeTheirOwnCallsOnly(t *testing.T) {
	t.Parallel()
	url, logs := serve(t)
	ada, eve := connect(t, url, "secret-1"), connect(t, url, "secret-2")

	var number struct{ Number int }
	call(t, ada, "lucky_number", map[string]any{"name": "Ada"}, &number)
	require.Equal(t, 21, number.Number)

	var own operations
	require.Eventually(t, func() bool { // Temporal's list lags behind
		call(t, ada, contract.ToolListOperations, map[string]any{}, &own)
		return len(own.Operations) == 1
	}, waitFor, tick)
	require.Equal(t, "lucky_number", own.Operations[0].Tool)

	var hers operations
	call(t, eve, contract.ToolListOperations, map[string]any{}, &hers)
	require.Empty(t, hers.Operations)
	byID := map[string]any{"operation_id": own.Operations[0].ID}
	call(t, ada, contract.ToolGetOperationResult, byID, &number)
	require.Equal(t, 21, number.Number)
	var none any
	require.True(t, call(t, eve, contract.ToolGetOperationResult, byID, &none).IsError)

	require.Regexp(t, `msg=call user=ada tool=lucky_number took=\S+ error=<nil>`, logs.String())
	require.Regexp(t, `msg=call user=eve tool=get_operation_result`, logs.String())
}

func TestGuestsOnlyRead(t *testing.T) {
	t.Parallel()
	url, _ := serve(t)
	session := connect(t, url, "secret-3")

	var number struct{ Number int }
	call(t, session, "lucky_number", map[string]any{"name": "Ada"}, &number)
	require.Equal(t, 21, number.Number)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "draw_ticket", Arguments: map[string]any{"name": "Ada"}})
	require.ErrorContains(t, err, "A guest may not call draw_ticket")
}

func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	url, _ := serve(t)

	for path, want := range map[string]int{"/tools/mcp": http.StatusUnauthorized, "/tools/": http.StatusUnauthorized, "/": http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		resp, err := bearer("nobody").RoundTrip(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode, path)
	}
}

func TestParseUsers(t *testing.T) {
	t.Parallel()

	known, err := parseUsers(" ada=1=2  eve=3 ")
	require.NoError(t, err)
	require.Equal(t, users{"1=2": "ada", "3": "eve"}, known)
	for _, bad := range []string{"", "ada", "ada=", "=1"} {
		_, err := parseUsers(bad)
		require.ErrorContains(t, err, "USERS: ", "%q", bad)
	}
}

// TestRunStopsInOrder starts the service as main does, and ends it.
func TestRunStopsInOrder(t *testing.T) {
	t.Parallel()

	ctx, stop := context.WithCancel(t.Context())
	logs := new(log)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "ada=secret-1", logs) }()
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), "serving MCP at http://127.0.0.1:") }, waitFor, tick)
	stop()
	require.NoError(t, <-ended)
}
