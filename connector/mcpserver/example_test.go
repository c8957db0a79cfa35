package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// startTemporal starts a Temporal in memory with a worker behind the endpoint
// "greetings".
func startTemporal() (address string, stop func()) {
	temporal := temporaltest.Start()
	temporal.Serve("greetings", `{"tools":[
		{"name":"greet","description":"Greets somebody.","inputSchema":{"type":"object"}}
	]}`, map[string]temporaltest.Handler{
		"greet": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
			var who struct{ Name string }
			err := json.Unmarshal(input, &who)
			return contract.Quote("Hello, " + who.Name + "!"), err
		},
	})
	return temporal.Address(), temporal.Close
}

// A Temporal client, an MCP server over it, and the MCP Go SDK's transport of
// your choice.
func Example() {
	address, stop := startTemporal()
	defer stop()

	// Your own Temporal client: credentials, namespace, data converter. It needs
	// the interceptor, and dials at its first use.
	temporalClient, err := client.NewLazyClient(client.Options{
		HostPort:     address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
	})
	if err != nil {
		panic(err)
	}
	defer temporalClient.Close()
	server, err := mcpserver.New(temporalClient, mcpserver.Options{
		Services: []catalog.Service{{Name: "greetings"}},
		Caller:   "ada@example",
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go server.Run(ctx) // keeps the catalog fresh

	// Your own transport: here one in memory.
	serverSide, clientSide := mcp.NewInMemoryTransports()
	if _, err := server.MCP().Connect(ctx, serverSide, nil); err != nil {
		panic(err)
	}

	host := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := host.Connect(ctx, clientSide, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			panic(err)
		}
		fmt.Println(tool.Name)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// cancel_operation
	// get_operation_result
	// greet
	// list_operations
	// Hello, Ada!
}

// newServer is the first lines of the package example.
func newServer(ctx context.Context, address string) (server *mcpserver.Server, done func()) {
	temporalClient, err := client.NewLazyClient(client.Options{
		HostPort:     address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
	})
	if err != nil {
		panic(err)
	}
	server, err = mcpserver.New(temporalClient, mcpserver.Options{
		Services:         []catalog.Service{{Name: "greetings"}},
		DiscoveryTimeout: time.Second,
		Logger:           slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	go server.Run(ctx)
	return server, temporalClient.Close
}

// Middleware of your own sees every request before the server does.
func ExampleServer_MCP_middleware() {
	address, stop := startTemporal()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, done := newServer(ctx, address)
	defer done()

	server.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && call.Params.Name == "greet" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "No greetings on Sundays."}
			}
			return next(ctx, method, req)
		}
	})

	serverSide, clientSide := mcp.NewInMemoryTransports()
	if _, err := server.MCP().Connect(ctx, serverSide, nil); err != nil {
		panic(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	fmt.Println(err)
	// Output: calling "tools/call": No greetings on Sundays.
}

// The handler goes into a mux of your own, behind authentication. The user of
// the token is who calls: only they can read the results of their calls.
func ExampleServer_Handler() {
	address, stop := startTemporal()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, done := newServer(ctx, address)
	defer done()

	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if token != "token-of-ada" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "ada", Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/tools/", http.StripPrefix("/tools", auth.RequireBearerToken(verify, nil)(server.Handler())))
	web := httptest.NewServer(mux)
	defer web.Close()

	call := func(token string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/tools/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := web.Client().Do(req)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, strings.Contains(string(body), "Hello, Ada!"), err)
	}
	call("token-of-eve")
	call("token-of-ada")
	// Output:
	// 401 false <nil>
	// 200 true <nil>
}
