package connector_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"
)

// library is the connector as a library, over the shared tool service.
func library(t *testing.T, options mcpserver.Options, dial ...grpc.DialOption) *mcpserver.Server {
	t.Helper()
	kit := harness.SharedService(t)
	temporalClient, err := client.Dial(client.Options{
		HostPort:          harness.Shared(t).Address,
		Interceptors:      []interceptor.ClientInterceptor{operation.Interceptor()},
		ConnectionOptions: client.ConnectionOptions{DialOptions: dial},
	})
	require.NoError(t, err)
	t.Cleanup(temporalClient.Close)
	options.Services = []catalog.Service{{Name: kit.Name}}
	options.RefreshInterval, options.DiscoveryTimeout = time.Hour, harness.Patience
	server, err := mcpserver.New(temporalClient, options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); server.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ran })
	return server
}

// serveLibrary serves it over HTTP, where everybody is who their bearer token
// says.
func serveLibrary(t *testing.T, options mcpserver.Options) *harness.HTTP {
	t.Helper()
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	server := httptest.NewServer(auth.RequireBearerToken(verify, nil)(library(t, options).Handler()))
	t.Cleanup(server.Close)
	return &harness.HTTP{URL: server.URL + "/mcp", Base: server.URL}
}

// TestAuthenticatedCallers: over HTTP too a caller who is known lists and reads
// its own calls, and nobody else's.
func TestAuthenticatedCallers(t *testing.T) {
	t.Parallel()

	server := serveLibrary(t, mcpserver.Options{WaitBudget: time.Second})
	as := func(name string) *harness.Peer {
		p := server.Speak(harness.Revision2026)
		p.Headers = map[string]string{"Authorization": "Bearer " + name}
		return p
	}
	ann, bob := as(harness.Unique("ann")), as(harness.Unique("bob"))
	list := ann.ListTools(t)
	require.Contains(t, list.Names(t), "list_operations")
	require.Equal(t, "private", list.Scope)

	id := ann.Tool(t, "slow", `{"seconds":3,"value":"ann's"}`).Running(t)
	require.Regexp(t, `^mcp-http-stateless-[0-9a-f]{8}-[0-9a-f]{32}$`, id)
	harness.Until(t, func() bool {
		calls := ann.Operations(t, `{}`)
		return len(calls) == 1 && calls[0].OperationID == id
	})
	require.Empty(t, bob.Operations(t, `{}`))
	for _, tool := range []string{"get_operation_result", "cancel_operation"} {
		r := bob.Tool(t, tool, `{"operation_id":"`+id+`"}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Text(t), "not the ID of a call of this caller")
	}
	bob.Capabilities = declared
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		m := bob.Call(t, method, `{"taskId":"`+id+`"}`)
		require.NotNil(t, m.Error)
		require.Equal(t, -32602, m.Error.Code)
	}
	require.Equal(t, "ann's", result(t, ann, id).Text(t))

	k := harness.Unique("key")
	line := harness.Unique("line")
	kit := harness.SharedService(t)
	for i, p := range []*harness.Peer{ann, bob, ann} {
		p.Tool(t, "note", `{"line":"`+line+`"}`, key(k))
		require.Equal(t, min(i+1, 2), kit.Effects(t, line), "a key belongs to its caller")
	}
}

// TestTooManyCalls: one call more than the server takes is refused, and nothing is
// started for it.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	for _, revision := range harness.Revisions {
		p := serveLibrary(t, mcpserver.Options{MaxCalls: 2, WaitBudget: 5 * time.Second}).Speak(revision)
		p.Headers = map[string]string{"Authorization": "Bearer " + harness.Unique("crowd")}
		p.ListTools(t)
		line := harness.Unique("line")
		var busy []*harness.Pending
		for range 2 {
			busy = append(busy, p.StartTool(t, "slow", `{"seconds":600,"line":"`+line+`"}`))
		}
		refused := p.StartTool(t, "slow", `{"seconds":600,"line":"`+line+`"}`)
		refused.AwaitEnd(t)
		require.Equal(t, 503, refused.Exchange.Status)
		require.Equal(t, "1", refused.Exchange.Header.Get("Retry-After"))
		require.Contains(t, refused.Exchange.Body(), "Nothing was started")
		for _, call := range busy {
			call.Answer(t).ToolResult(t).Running(t)
		}
		harness.Until(t, func() bool { return kit.Effects(t, line) == 2 })
		require.False(t, p.Tool(t, "echo", `{}`).IsError)
		require.Equal(t, 2, kit.Effects(t, line))
	}

	here, there := mcp.NewInMemoryTransports()
	_, err := library(t, mcpserver.Options{MaxCalls: 1, Caller: harness.Unique("one")}).MCP().Connect(t.Context(), there, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	line := harness.Unique("line")
	done := make(chan error, 1)
	go func() {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 2, "line": line}})
		done <- err
	}()
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
	require.ErrorContains(t, err, "takes no more now")
	require.NoError(t, <-done)
}

// brokenPipe fails once it is told to.
type brokenPipe struct{ broken atomic.Bool }

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.broken.Load() {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// TestBrokenPipeCancelsNothing: a client that cannot be written to has not
// cancelled its calls.
func TestBrokenPipeCancelsNothing(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	caller := harness.Unique("pipe")
	server := library(t, mcpserver.Options{Caller: caller})
	in, client := io.Pipe()
	out := &brokenPipe{}
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(t.Context(), in, out, time.Second) }()
	send := func(line string) {
		_, err := io.WriteString(client, line+"\n")
		require.NoError(t, err)
	}
	line := harness.Unique("line")
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":4,"line":"` + line + `"}}}`)
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	out.broken.Store(true)
	send(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{}}`)
	select {
	case err := <-served:
		t.Logf("the session ended with: %v", err)
	case <-time.After(harness.Patience):
		require.FailNow(t, "the session does not end")
	}
	server = library(t, mcpserver.Options{Caller: caller})
	harness.Until(t, func() bool {
		r, _, err := server.PollTool(t.Context(), "list_operations", nil)
		require.NoError(t, err)
		require.NotContains(t, string(r.JSON()), `"status":"canceled"`)
		return strings.Contains(string(r.Structured()), `"status":"completed"`)
	})
	require.Zero(t, kit.Effects(t, "cancelled "+line))
}
