package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
)

const toolsManifest = `{"tools":[
	{"name":"echo","inputSchema":{"type":"object"}},
	{"name":"brood","inputSchema":{"type":"object"}},
	{"name":"count","inputSchema":{"type":"object"},"outputSchema":{"type":"integer"}}
]}`

// start returns a server of a Temporal in memory with a service that has a tool
// that echoes, one that broods until it is cancelled, and one that counts.
func start(t *testing.T, options mcpserver.Options) (*mcpserver.Server, *temporaltest.Frontend) {
	t.Helper()
	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	return serve(t, temporal, options), temporal
}

func serve(t *testing.T, temporal *temporaltest.Frontend, options mcpserver.Options) *mcpserver.Server {
	t.Helper()
	temporal.Serve("tools", toolsManifest, map[string]temporaltest.Handler{
		"echo": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil },
		"brood": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"count": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage("9007199254740993"), nil
		},
	})
	discard := slog.New(slog.DiscardHandler)
	temporalClient, err := client.NewLazyClient(client.Options{
		HostPort:     temporal.Address(),
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
		Logger:       sdklog.NewStructuredLogger(discard),
	})
	require.NoError(t, err)
	t.Cleanup(temporalClient.Close)
	if options.Services == nil {
		options.Services = []catalog.Service{{Name: "tools"}}
	}
	options.Logger = discard
	server, err := mcpserver.New(temporalClient, options)
	require.NoError(t, err)
	server.Catalog().Refresh(t.Context())
	return server
}

// pipe is a stdio client: it writes lines and reads answers.
type pipe struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Reader
	ended chan error
}

func stdio(t *testing.T, server *mcpserver.Server, grace time.Duration) *pipe {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{t: t, in: inW, lines: bufio.NewReader(outR), ended: make(chan error, 1)}
	go func() {
		err := server.ServeStdio(t.Context(), inR, outW, grace)
		_ = outW.Close()
		p.ended <- err
	}()
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
	})
	return p
}

func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		_, err := io.WriteString(p.in, line+"\n")
		require.NoError(p.t, err)
	}
}

type answer struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// line returns the next answer as it came; notifications are skipped.
func (p *pipe) line() string {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		require.NoError(p.t, err)
		if !strings.Contains(line, `"method":`) {
			return line
		}
	}
}

// read returns the next answer; notifications are skipped.
func (p *pipe) read() answer {
	p.t.Helper()
	for {
		line, err := p.lines.ReadBytes('\n')
		require.NoError(p.t, err)
		var a answer
		require.NoError(p.t, json.Unmarshal(line, &a))
		if a.Method == "" {
			return a
		}
	}
}

// modern is a request of the revision without sessions.
func modern(id int, method, params string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, params, meta)
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func TestStdioGoesOnAfterBadLines(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	p := stdio(t, server, time.Second)
	go p.send(`{`, "", "   ", `[1,2`, strings.Repeat("a", mcpserver.MaxFrameBytes), initialize)
	for _, want := range []int{-32700, -32700, -32600} {
		a := p.read()
		require.Nil(t, a.ID)
		require.NotNil(t, a.Error)
		require.Equal(t, want, a.Error.Code)
	}
	require.Equal(t, "init", p.read().ID)
	require.NoError(t, p.in.Close())
	require.NoError(t, <-p.ended)
}

// The end of input lets what is under way be answered: as still running, for it
// goes on.
func TestStdioDrainsAtTheEndOfInput(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	p := stdio(t, server, 2*time.Second)
	p.send(initialize)
	require.Equal(t, "init", p.read().ID)
	p.send(initialized,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brood","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"n":1e400}}}`)
	require.NoError(t, p.in.Close())
	a := p.read()
	require.InDelta(t, 2, a.ID, 0)
	require.Contains(t, string(a.Result), `"structuredContent":{"n":1e400}`)
	a = p.read()
	require.InDelta(t, 1, a.ID, 0)
	require.Contains(t, string(a.Result), `"status":"running"`)
	require.NoError(t, <-p.ended)

	ops := temporal.Operations("tools")
	require.Len(t, ops, 2)
	for _, op := range ops {
		d, err := server.Operations().Describe(t.Context(), op.GetOperationId())
		require.NoError(t, err)
		require.False(t, d.CancelRequested)
	}
}

func TestStdioCancelledRequestGetsNoAnswer(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	cancelled := make(chan struct{})
	temporal.Handle("tools", "brood", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	p := stdio(t, server, time.Second)
	p.send(initialize)
	require.Equal(t, "init", p.read().ID)
	p.send(initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brood","arguments":{},"_meta":{"progressToken":"p"}}}`)
	line, err := p.lines.ReadString('\n') // the call is there
	require.NoError(t, err)
	require.Contains(t, line, "notifications/progress")
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-cancelled
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	a := p.read()
	require.InDelta(t, 2, a.ID, 0)
	require.JSONEq(t, `{}`, string(a.Result))
	require.NoError(t, p.in.Close())
	rest, err := io.ReadAll(p.lines)
	require.NoError(t, err)
	require.NotContains(t, string(rest), `"id":1`)
	require.NoError(t, <-p.ended)
}

// broken is the pipe to a client that does not read any more.
type broken struct{ wrote chan struct{} }

func (b broken) Write([]byte) (int, error) {
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return 0, errors.New("broken pipe")
}

func TestStdioEndsWithItsReader(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	inR, inW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- server.ServeStdio(t.Context(), inR, broken{make(chan struct{}, 1)}, time.Hour) }()
	_, err := io.WriteString(inW, initialize+"\n")
	require.NoError(t, err)
	require.Error(t, <-ended, "input goes on, but nobody reads the answers")
	require.NoError(t, inW.Close()) // it is the host's
}

// A client that neither reads nor closes its side does not hold up the end.
func TestStdioEndsThoughNobodyReads(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe() // as a pipe is that is full
	t.Cleanup(func() { _, _ = inW.Close(), outR.Close() })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeStdio(ctx, inR, outW, 100*time.Millisecond) }()
	_, err := io.WriteString(inW, initialize+"\n")
	require.NoError(t, err)
	_, err = outR.Read(make([]byte, 1))
	require.NoError(t, err)
	stop()
	require.ErrorContains(t, <-ended, "does not read")
}

// A client that is slow gets every answer, and a request that does not end is not
// told as the client's fault.
func TestStdioEndsWithASlowReader(t *testing.T) {
	t.Parallel()

	temporalClient, err := client.NewLazyClient(client.Options{Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()}})
	require.NoError(t, err)
	t.Cleanup(temporalClient.Close)
	for name, test := range map[string]struct {
		answers int
		want    string
	}{
		"all answers":           {3, ""},
		"one that does not end": {2, "a request does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				server, err := mcpserver.New(temporalClient, mcpserver.Options{Services: []catalog.Service{{Name: "tools"}}})
				require.NoError(t, err)
				goOn := make(chan struct{})
				defer close(goOn)
				server.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if method != "tools/call" {
							return next(ctx, method, req)
						}
						<-goOn
						go func() { // on its way out among the answers
							_ = req.GetSession().(*mcp.ServerSession).NotifyProgress(context.WithoutCancel(ctx), &mcp.ProgressNotificationParams{ProgressToken: "p"})
						}()
						return &mcp.CallToolResult{}, nil
					}
				})
				inR, inW := io.Pipe()
				defer func() { _ = inW.Close() }()
				outR, outW := io.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					err := server.ServeStdio(ctx, inR, outW, 100*time.Millisecond)
					_ = outW.Close()
					ended <- err
				}()
				for id := range 3 {
					_, err := io.WriteString(inW, modern(id, "tools/call", `"name":"echo"`)+"\n")
					require.NoError(t, err)
				}
				for range test.answers {
					goOn <- struct{}{}
				}
				synctest.Wait() // until they are on their way out
				stop()
				lines := bufio.NewReader(outR)
				answers := 0
				for {
					time.Sleep(700 * time.Millisecond)
					line, err := lines.ReadString('\n')
					if err != nil {
						break
					}
					if strings.Contains(line, `"result"`) {
						answers++
					}
				}
				require.Equal(t, test.answers, answers)
				if err := <-ended; test.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, "mcpserver: "+test.want)
				}
			})
		})
	}
}

// What needs a Temporal that is away waits no longer than the budget, and does not
// hold up the end.
func TestRequestsWithoutTemporal(t *testing.T) {
	t.Parallel()

	ada := operation.Caller{Transport: operation.Stdio, Name: "ada"}
	id := "mcp-stdio-stateful-" + ada.Owner() + "-" + strings.Repeat("0", 32)
	for name, request := range map[string]string{
		"a call":         modern(1, "tools/call", `"name":"echo"`),
		"a read":         modern(1, "resources/read", `"uri":"file:///one"`),
		"a task":         modern(1, "tasks/get", `"taskId":"`+id+`"`),
		"a cancellation": modern(1, "tasks/cancel", `"taskId":"`+id+`"`),
		"a list":         modern(1, "tools/call", `"name":"list_operations"`),
	} {
		for when, budget := range map[string]time.Duration{"budget": 100 * time.Millisecond, "end": time.Hour} {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()

				temporal := temporaltest.Start()
				t.Cleanup(temporal.Close)
				shelf{resources: []string{`{"uri":"file:///one","name":"one"}`}}.serve(temporal, "shelf", everything)
				server := serve(t, temporal, mcpserver.Options{
					Caller: "ada", WaitBudget: budget, Services: []catalog.Service{{Name: "tools"}, {Name: "shelf"}},
				})
				temporal.SetDown(serviceerror.NewUnavailable("away"))
				p := stdio(t, server, 100*time.Millisecond)
				began := time.Now()
				p.send(request)
				if budget == time.Hour {
					require.NoError(t, p.in.Close())
					go func() { _, _ = io.Copy(io.Discard, p.lines) }()
					require.NoError(t, <-p.ended)
				} else {
					require.Contains(t, p.line(), "Temporal does not answer")
				}
				require.Less(t, time.Since(began), 5*time.Second)
			})
		}
	}
}

// What its client has cancelled before it starts does not start.
func TestACancelBeforeTheStart(t *testing.T) {
	t.Parallel()

	server, temporal := twoShelves(t, mcpserver.Options{})
	temporal.Serve("c", toolsManifest, nil)
	server.Catalog().Refresh(t.Context())
	server.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return next(ctx, method, req)
		}
	})
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/call", `"name":"sea_echo"`), modern(2, "resources/read", `"uri":"file:///one"`))
	for range 2 {
		require.Contains(t, p.read().Error.Message, "canceled")
	}
	for _, service := range []string{"a", "c"} {
		for _, op := range temporal.Operations(service) {
			require.Contains(t, op.GetOperationId(), "mcp-discovery-")
		}
	}
}

// A start that Temporal does not answer may have been recorded: the client gets the
// ID that tells.
func TestAStartThatMayHaveBeenRecorded(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{WaitBudget: 300 * time.Millisecond})
	temporal.SetDown(serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"))
	for _, version := range bothRevisions {
		a := decodeAnswer(t, speak(t, server, version).raw(version, "tools/call", `"name":"echo","arguments":{}`))
		r, err := contract.DecodeResult(a.Result)
		require.NoError(t, err)
		var id string
		require.NoError(t, json.Unmarshal(r.Meta(contract.MetaOperationID), &id), "%s", r.JSON())
		text, _ := r.Text()
		require.Contains(t, text, "its operation is "+id)
		require.Regexp(t, `^mcp-stdio-stateful-`, id)
		require.JSONEq(t, `{"type":"unavailable","retryable":true}`, string(r.Meta(contract.MetaFailure)))
	}
}

// Whoever asks for a result while Temporal is away waits for it, within the budget.
func TestAResultWaitsForTemporal(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{WaitBudget: 2 * time.Second, Caller: "ada"})
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/call", `"name":"echo","arguments":{"n":1.0}`))
	require.Nil(t, p.read().Error)
	ask := func(id int) {
		p.send(modern(id, "tools/call", fmt.Sprintf(`"name":"get_operation_result","arguments":{"operation_id":%q}`,
			temporal.Operations("tools")[0].GetOperationId())))
	}

	temporal.SetDown(serviceerror.NewUnavailable("away"))
	began := time.Now()
	ask(2)
	a := p.read()
	require.Greater(t, time.Since(began), time.Second)
	require.Contains(t, string(a.Result), `"retryable":true`)

	temporal.SetDown(serviceerror.NewNamespaceNotFound("ns")) // what an overloaded one says, and the SDK does not retry
	ask(3)
	time.AfterFunc(100*time.Millisecond, func() { temporal.SetDown(nil) })
	a = p.read()
	require.Contains(t, string(a.Result), `"structuredContent":{"n":1.0}`)
}

// The client of a call that becomes a task gets its ID, also from a connector
// that has just lost Temporal.
func TestATaskHasItsIDWithoutTemporal(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{TaskAfter: 50 * time.Millisecond, Caller: "ada"})
	temporal.Handle("tools", "brood", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		temporal.SetDown(serviceerror.NewUnavailable("away"))
		<-ctx.Done()
		return nil, ctx.Err()
	})
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/call", `"name":"brood","arguments":{}`))
	a := p.read()
	require.Nil(t, a.Error)
	var task struct{ ResultType, TaskID, Status, CreatedAt string }
	require.NoError(t, json.Unmarshal(a.Result, &task))
	require.Equal(t, "task", task.ResultType)
	require.Equal(t, "working", task.Status)
	require.Equal(t, temporal.Operations("tools")[0].GetOperationId(), task.TaskID)
	require.NotEmpty(t, task.CreatedAt)

	temporal.SetDown(nil)
	p.send(modern(2, "tasks/cancel", fmt.Sprintf(`"taskId":%q`, task.TaskID)))
	require.Nil(t, p.read().Error)
	require.Eventually(t, func() bool {
		p.send(modern(3, "tasks/get", fmt.Sprintf(`"taskId":%q`, task.TaskID)))
		return strings.Contains(string(p.read().Result), `"status":"cancelled"`)
	}, 10*time.Second, time.Millisecond)
	p.send(modern(4, "tasks/update", fmt.Sprintf(`"taskId":%q`, task.TaskID)), modern(5, "tasks/get", `"taskId":"mcp-stdio-stateful-x"`))
	for range 2 {
		a := p.read()
		require.NotNil(t, a.Error)
		require.Equal(t, -32602, a.Error.Code)
	}
}

// A call that has ended is read whatever the wait.
func TestResultWithoutAWait(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{Caller: "ada"})
	ada := operation.Caller{Transport: operation.Stdio, Name: "ada"}
	id, err := server.Operations().Start(t.Context(), operation.Call{
		Endpoint: "tools", Service: "tools", Tool: contract.Tool{Name: "echo", Encoding: contract.EncodingValue}, Caller: ada,
		Params: contract.CallParams{Arguments: json.RawMessage(`{"a":1}`)},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := server.Operations().Describe(t.Context(), id)
		return err == nil && d.Status == operation.Completed
	}, 10*time.Second, time.Millisecond)
	result, ok, err := server.PollTool(t.Context(), contract.ToolGetOperationResult, fmt.Appendf(nil, `{"operation_id":%q,"wait_seconds":0}`, id))
	require.NoError(t, err)
	require.True(t, ok)
	require.JSONEq(t, `{"a":1}`, string(result.Structured()))
	require.False(t, mcpserver.IsRunning(result))

	for arguments, want := range map[string]string{
		`{}`: "operation_id: missing", `{"operation_id":1}`: "operation_id: number, want string",
		`{"operation_id":"nobody"}`:                              `"nobody" is not the ID of a call of this caller`,
		fmt.Sprintf(`{"operation_id":%q,"wait_seconds":-1}`, id): "negative",
	} {
		result, _, err := server.PollTool(t.Context(), contract.ToolGetOperationResult, json.RawMessage(arguments))
		require.NoError(t, err)
		text, _ := result.Text()
		require.True(t, result.IsError())
		require.Contains(t, text, want)
	}
}

// Middleware in front of the server may change a call; what it leaves alone
// keeps its bytes.
func TestMiddlewareChangesArguments(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	server.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && bytes.Contains(call.Params.Arguments, []byte("secret")) {
				call.Params.Arguments = json.RawMessage(`{"password":"***"}`)
			}
			return next(ctx, method, req)
		}
	})
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/call", `"name":"echo","arguments":{"password":"secret"}`))
	require.Contains(t, string(p.read().Result), `"structuredContent":{"password":"***"}`)
	p.send(modern(2, "tools/call", `"name":"echo","arguments":{"n":1e400}`))
	require.Contains(t, string(p.read().Result), `"structuredContent":{"n":1e400}`)
}

func TestHostsAndOrigins(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{
		AllowHosts: []string{"mcp.example.com", "other.example.com:8443"}, AllowOrigins: []string{"https://app.example.com"},
	})
	for _, test := range []struct {
		host, origin string
		allowed      bool
	}{
		{"localhost", "", true}, {"LOCALHOST:8080", "", true}, {"127.0.0.1:80", "", true}, {"127.9.9.9", "", true},
		{"[::1]:80", "", true}, {"[::1]", "", true}, {"mcp.example.com", "", true}, {"MCP.example.com:443", "", true},
		{"other.example.com:8443", "", true}, {"other.example.com", "", false}, {"other.example.com:80", "", false},
		{"example.com", "", false}, {"localhost.example.com", "", false}, {"127.0.0.1.example.com", "", false},
		{"10.0.0.1", "", false}, {"0.0.0.0", "", false}, {"", "", false},
		{"localhost", "http://localhost:3000", true}, {"localhost", "https://127.0.0.1", true}, {"localhost", "http://[::1]:1", true},
		{"localhost", "https://app.example.com", true}, {"localhost", "https://APP.example.com", true},
		{"localhost", "http://app.example.com", false}, {"localhost", "https://app.example.com:444", false},
		{"localhost", "https://app.example.com.evil.com", false}, {"localhost", "null", false},
		{"localhost", "http://evil.com", false}, {"localhost", "http://localhost.evil.com", false},
		{"localhost", "http://localhost@evil.com", false}, {"localhost", "file://localhost", false},
		{"evil.com", "https://app.example.com", false},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader("{"))
		req.Host = test.host
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, req)
		require.Equal(t, !test.allowed, w.Code == http.StatusForbidden, "host %q, origin %q: %d %s", test.host, test.origin, w.Code, w.Body)
		if test.allowed {
			require.Equal(t, test.origin, w.Header().Get("Access-Control-Allow-Origin"))
		}
	}
}

// post sends a call of the revision without sessions.
func post(ctx context.Context, t *testing.T, url, tool string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(modern(1, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{}`, tool))))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return reply{resp.StatusCode, resp.Header, resp.Body}
}

type reply struct {
	status int
	header http.Header
	body   io.Reader
}

// A silent call keeps its stream alive; its answer comes on the same stream.
func TestKeepAlive(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{KeepAliveInterval: 5 * time.Millisecond, DisableTasks: true})
	goOn := make(chan struct{})
	temporal.Handle("tools", "brood", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		<-goOn
		return json.RawMessage(`"done"`), nil
	})
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	resp := post(t.Context(), t, web.URL, "brood")
	require.Equal(t, http.StatusOK, resp.status) // before there is a result
	require.Equal(t, "text/event-stream", resp.header.Get("Content-Type"))
	require.Equal(t, "no", resp.header.Get("X-Accel-Buffering"))
	r := bufio.NewReader(resp.body)
	for range 3 {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, ": keep-alive\n", line)
		_, err = r.ReadString('\n')
		require.NoError(t, err)
	}
	close(goOn)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Contains(t, string(rest), `"text":"done"`)
}

// A closed stream is a cancel; one that the server ends is not.
func TestClosedStreamCancels(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{DisableTasks: true})
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	ctx, cancel := context.WithCancel(t.Context())
	post(ctx, t, web.URL, "brood")
	require.Eventually(t, func() bool { return len(temporal.Operations("tools")) == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	id := temporal.Operations("tools")[0].GetOperationId()
	_, err := server.Operations().Result(t.Context(), id, contract.Tool{}, 0)
	var failure *contract.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeCanceled, failure.Code)

	const poll = "PollNexusOperationExecution"
	polls := temporal.Calls(poll)
	resp := post(t.Context(), t, web.URL, "brood")
	require.Eventually(t, func() bool { return temporal.Calls(poll) > polls }, 10*time.Second, time.Millisecond, "it has started and is waited for")
	server.Drain(0)
	body, err := io.ReadAll(resp.body)
	require.NoError(t, err)
	require.Contains(t, string(body), `"status":"running"`)
	d, err := server.Operations().Describe(t.Context(), temporal.Operations("tools")[1].GetOperationId())
	require.NoError(t, err)
	require.Equal(t, operation.Running, d.Status)
	require.False(t, d.CancelRequested)
}

// Before 2026-07-28 a client that is gone has cancelled nothing. Nobody waits on for
// it all the same, and its place among the calls is free again.
func TestGoneClientsTakeNoPlace(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{MaxCalls: 1, WaitBudget: time.Hour, KeepAliveInterval: time.Hour})
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	legacy := func(ctx context.Context, tool string) (status int) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode
	}
	ctx, cancel := context.WithCancel(t.Context())
	require.Equal(t, http.StatusOK, legacy(ctx, "brood"))
	require.Eventually(t, func() bool { return len(temporal.Operations("tools")) == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, http.StatusServiceUnavailable, legacy(t.Context(), "echo"))
	cancel()
	require.Eventually(t, func() bool { return legacy(t.Context(), "echo") == http.StatusOK }, 10*time.Second, time.Millisecond)
	d, err := server.Operations().Describe(t.Context(), temporal.Operations("tools")[0].GetOperationId())
	require.NoError(t, err)
	require.Equal(t, operation.Running, d.Status)
	require.False(t, d.CancelRequested)
}

// At its limit the connector refuses and starts nothing.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{MaxCalls: 1})
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	p := stdio(t, server, time.Second)
	p.send(initialize)
	p.read()
	p.send(initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brood"}}`)
	require.Eventually(t, func() bool { return len(temporal.Operations("tools")) == 1 }, 10*time.Second, time.Millisecond)
	resp := post(t.Context(), t, web.URL, "echo")
	require.Equal(t, http.StatusServiceUnavailable, resp.status)
	require.Equal(t, "1", resp.header.Get("Retry-After"))
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`)
	a := p.read()
	require.NotNil(t, a.Error)
	require.Contains(t, a.Error.Message, "Nothing was started")
	require.Len(t, temporal.Operations("tools"), 1)
}

// The progress of concurrent calls and the end of the session do not race.
func TestProgressUntilTheResult(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{ProgressInterval: time.Millisecond, WaitBudget: 50 * time.Millisecond})
	p := stdio(t, server, time.Second)
	p.send(initialize)
	p.read()
	p.send(initialized)
	var sent sync.WaitGroup
	sent.Go(func() {
		for i := range 20 {
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"brood","_meta":{"progressToken":%d}}}`, i, i))
		}
	})
	answered := map[string]bool{}
	for len(answered) < 20 {
		line, err := p.lines.ReadBytes('\n')
		require.NoError(t, err)
		var m struct {
			ID     any `json:"id"`
			Params struct {
				Token any `json:"progressToken"`
			} `json:"params"`
		}
		require.NoError(t, json.Unmarshal(line, &m))
		if m.ID != nil {
			answered[fmt.Sprint(m.ID)] = true
		} else if m.Params.Token != nil {
			require.False(t, answered[fmt.Sprint(m.Params.Token)], "progress after the result")
		}
	}
	sent.Wait()
}

// TestToolsOfTheHost: what a tool that the host added itself refuses is its own
// answer, and a tool that nobody has is named with what is known about the catalog.
func TestToolsOfTheHost(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	server.MCP().AddTool(&mcp.Tool{Name: "own", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such room"}
		})
	ours, theirs := mcp.NewInMemoryTransports()
	_, err := server.MCP().Connect(t.Context(), ours, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	for name, want := range map[string]string{"own": "there is no such room", "none": `Unknown tool: "none".`} {
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		rpc, ok := errors.AsType[*jsonrpc.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, want, rpc.Message)
		require.EqualValues(t, jsonrpc.CodeInvalidParams, rpc.Code)
	}
}
