package mcpproxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

const (
	readTool = `{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	payTool  = `{"name":"pay","inputSchema":{"type":"object"}}`
)

// quick are retries that a test does not wait for.
var quick = &mcpproxy.RetryPolicy{InitialInterval: 50 * time.Millisecond}

func TestAConnectionThatBreaksAfterTheRequest(t *testing.T) {
	t.Parallel()

	s := newServer(t, readTool, payTool)
	var broken atomic.Int64
	s.Call = func(_ context.Context, c *fakeConn, _ string, params contract.Object) (string, *contract.ProtocolError) {
		if broken.Add(1) == 1 {
			c.close()
			return "", nil
		}
		return `{"content":[]}`, nil
	}
	c := serve(t, s.upstream(), mcpproxy.Options{Policy: mcpproxy.Policy{Retry: quick}})

	t.Run("ends a tool that must not run twice", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		f := c.fails("pay", `{}`)
		require.Equal(t, contract.CodeOutcomeUnknown, f.Code, "%v", f)
		require.Equal(t, 1, s.count("tools/call"))
	})
	t.Run("is nothing to the next call", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		require.Equal(t, `{"content":[]}`, c.ok("pay", `{}`))
		require.Equal(t, 2, s.count("tools/call"))
	})
	t.Run("runs a read-only tool again", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		broken.Store(0)
		require.Equal(t, `{"content":[]}`, c.ok("read", `{}`))
		require.Equal(t, 4, s.count("tools/call"))
	})
}

func TestWhatWasNotSentIsTriedAgain(t *testing.T) {
	t.Parallel()

	var away atomic.Int64
	s := newServer(t, payTool)
	s.Legacy = true // a call has a connection of its own
	s.Refuse = func() error {
		if away.Add(-1) >= 0 {
			return errors.New("nobody is here: secret")
		}
		return nil
	}
	c := serve(t, s.upstream(), mcpproxy.Options{Policy: mcpproxy.Policy{Retry: quick}})

	away.Store(3)
	require.Equal(t, `{"content":[]}`, c.ok("pay", `{}`))
	require.Equal(t, 1, s.count("tools/call"))

	away.Store(1 << 30)
	f := c.fails("pay", `{}`)
	require.Equal(t, contract.CodeUnavailable, f.Code)
	require.Contains(t, f.Message, `the server "fake"`)
	require.Contains(t, f.Message, "after 5 attempts")
	require.NotContains(t, f.Message, "secret")
	require.Equal(t, 1, s.count("tools/call"))
}

func TestASessionThatDiedBeforeTheCallIsReplaced(t *testing.T) {
	t.Parallel()

	s := newServer(t, payTool)
	c := serve(t, s.upstream(), mcpproxy.Options{Policy: mcpproxy.Policy{Retry: &mcpproxy.RetryPolicy{MaximumAttempts: 1}}})
	c.ok("pay", `{}`)
	s.mu.Lock()
	s.conns[0].close()
	s.mu.Unlock()
	c.ok("pay", `{}`)
	require.Equal(t, 2, s.connections())
}

func TestAToolThatAnswersTooLate(t *testing.T) {
	t.Parallel()

	s := newServer(t, readTool, payTool)
	s.Call = func(ctx context.Context, _ *fakeConn, _ string, _ contract.Object) (string, *contract.ProtocolError) {
		<-ctx.Done()
		return "", nil
	}
	c := serve(t, s.upstream(), mcpproxy.Options{Policy: mcpproxy.Policy{
		StartToCloseTimeout: 2 * time.Second, Retry: &mcpproxy.RetryPolicy{InitialInterval: 50 * time.Millisecond, MaximumAttempts: 2},
	}})
	pay, read := c.start("pay", `{}`, callTimeout), c.start("read", `{}`, callTimeout)
	_, err := c.wait(pay)
	require.Equal(t, contract.CodeOutcomeUnknown, resultmap.FromError(err).Code, "%v", err)
	require.Contains(t, err.Error(), "did not answer in time")
	_, err = c.wait(read)
	require.Equal(t, contract.CodeUnavailable, resultmap.FromError(err).Code, "%v", err)
	require.Contains(t, err.Error(), "after 2 attempts")
	require.Equal(t, 3, s.count("tools/call"))
}

func TestAWorkerThatStopsDuringACall(t *testing.T) {
	t.Parallel()

	s := newServer(t, readTool, payTool)
	var running atomic.Int64
	s.Call = func(ctx context.Context, _ *fakeConn, _ string, _ contract.Object) (string, *contract.ProtocolError) {
		if running.Add(1) <= 2 {
			<-ctx.Done()
		}
		return `{"content":[]}`, nil
	}
	options := mcpproxy.Options{Policy: mcpproxy.Policy{Retry: quick}}
	endpoint := newEndpoint(t)
	first := worker.New(dial(t, newProxy(t, "fake", s.upstream(), options)), endpoint, worker.Options{})
	require.NoError(t, first.Start())
	c := caller{t: t, endpoint: endpoint, service: "fake"}
	pay, read := c.start("pay", `{}`, callTimeout), c.start("read", `{}`, callTimeout)
	require.Eventually(t, func() bool { return running.Load() == 2 }, 20*time.Second, 10*time.Millisecond)
	second := worker.New(dial(t, newProxy(t, "fake", s.upstream(), options)), endpoint, worker.Options{})
	require.NoError(t, second.Start())
	t.Cleanup(second.Stop)
	first.Stop()

	_, err := c.wait(pay)
	require.Equal(t, contract.CodeOutcomeUnknown, resultmap.FromError(err).Code, "%v", err)
	result, err := c.wait(read)
	require.NoError(t, err)
	require.Equal(t, `{"content":[]}`, result)
	require.EqualValues(t, 3, running.Load())
}

// modernHTTP is an MCP server of the SDK behind HTTP.
func modernHTTP(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{
		Name: "region", Description: "Regional.",
		InputSchema: map[string]any{"type": "object", "properties": map[string]any{
			"region": map[string]any{"type": "string", "x-mcp-header": "Region"},
			"deep":   map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer", "x-mcp-header": "N"}}},
		}},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	ts := httptest.NewServer(wrap(handler))
	t.Cleanup(ts.Close)
	return ts.URL
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()

	var calls atomic.Int64
	var first atomic.Int64
	url := modernHTTP(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/call" {
				now := time.Now().UnixNano()
				if calls.Add(1) == 1 {
					first.Store(now)
					w.Header().Set("Retry-After", "2")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				first.Store(now - first.Load())
			}
			next.ServeHTTP(w, r)
		})
	})
	c := serve(t, mcpproxy.HTTP(url, mcpproxy.HTTPOptions{}), mcpproxy.Options{Policy: mcpproxy.Policy{Retry: quick}})
	c.ok("region", `{}`) // refused once: it was not run
	require.EqualValues(t, 2, calls.Load())
	require.GreaterOrEqual(t, time.Duration(first.Load()), 1900*time.Millisecond)
}

func TestASessionThatTheServerForgotIsReplacedOnce(t *testing.T) {
	t.Parallel()

	var calls, runs atomic.Int64
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			runs.Add(1)
			return &mcp.CallToolResult{}, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	t.Cleanup(func() { // those that it seems to have forgotten
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	var always atomic.Bool
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) && (calls.Add(1) == 1 || always.Load()) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	c := serve(t, mcpproxy.HTTP(ts.URL, mcpproxy.HTTPOptions{}), mcpproxy.Options{
		ProtocolVersion: "2025-11-25", Policy: mcpproxy.Policy{Retry: &mcpproxy.RetryPolicy{MaximumAttempts: 1}},
	}).with(contract.HeaderCaller, "aaaaaaaaaaaaaaaa")
	c.ok("pay", `{}`)
	require.EqualValues(t, 2, calls.Load())
	require.EqualValues(t, 1, runs.Load())

	always.Store(true)
	f := c.fails("pay", `{}`)
	require.Equal(t, contract.CodeUnavailable, f.Code, "%v", f)
	require.EqualValues(t, 4, calls.Load())
	require.EqualValues(t, 1, runs.Load())
}

func TestArgumentsThatTravelAsHeaders(t *testing.T) {
	t.Parallel()

	headers := make(chan http.Header, 2)
	url := modernHTTP(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/call" {
				headers <- r.Header.Clone()
			}
			next.ServeHTTP(w, r)
		})
	})
	c := serve(t, mcpproxy.HTTP(url, mcpproxy.HTTPOptions{}), mcpproxy.Options{})
	c.ok("region", `{"arguments":{"region":"eu-ü","deep":{"n":7.0}}}`) // the server refuses headers that differ
	got := <-headers
	require.Equal(t, "=?base64?ZXUtw7w=?=", got.Get("Mcp-Param-Region"))
	require.Equal(t, "7", got.Get("Mcp-Param-N"))
	c.ok("region", `{"arguments":{"region":null}}`)
	require.Empty(t, (<-headers).Values("Mcp-Param-Region"))
}
