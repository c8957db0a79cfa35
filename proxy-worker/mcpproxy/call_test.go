package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

type answer = func(ctx context.Context, c *fakeConn, method string, params contract.Object) (string, *contract.ProtocolError)

func TestAToolIsListedAndCalled(t *testing.T) {
	t.Parallel()

	for name, legacy := range map[string]bool{"modern": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newServer(t, plainTool)
			s.Legacy = legacy
			s.Call = func(_ context.Context, _ *fakeConn, _ string, params contract.Object) (string, *contract.ProtocolError) {
				return `{"content":[],"structuredContent":` + string(params.Get("arguments")) + `,"x":1e400}`, nil
			}
			c := serve(t, s.upstream(), mcpproxy.Options{})
			m := c.manifest()
			require.Len(t, m.Tools, 1)
			require.Equal(t, contract.EncodingMCP, m.Tools[0].Encoding)
			require.Equal(t, contract.KindActivity, m.Tools[0].Kind)
			require.Equal(t, time.Hour, m.Tools[0].ScheduleToCloseTimeout)
			require.Equal(t, "Be <kind>.", m.Instructions)
			require.JSONEq(t, `{"name":"fake","version":"1"}`, string(m.ServerInfo))
			const arguments = `{"n":1.0,"big":9007199254740993,"s":"\ud800<b>","n":-0}`
			require.Equal(t, `{"content":[],"structuredContent":`+arguments+`,"x":1e400}`, c.ok("echo", `{"arguments":`+arguments+`}`))
		})
	}
}

// TestAManifestHasRoom: what a server says of itself, and what is wrong with its tools,
// goes with each page, which has to fit a payload.
func TestAManifestHasRoom(t *testing.T) {
	t.Parallel()

	tools := []string{plainTool}
	for i := range 3_000 {
		tools = append(tools, fmt.Sprintf(`{"name":"%d","inputSchema":{"type":"object","properties":{%q:{"x-mcp-header":1}}}}`, i, strings.Repeat("ü", 1_000)))
	}
	s := newServer(t, tools...)
	s.Instructions = strings.Repeat("\x01", 20_000) // which JSON has in six bytes
	m := serve(t, s.upstream(), mcpproxy.Options{}).manifest()
	require.Len(t, m.Tools, 1)
	require.Empty(t, m.Instructions)
	meta, err := contract.ParseObject(m.Meta)
	require.NoError(t, err)
	var warnings []string
	require.NoError(t, json.Unmarshal(meta.Get(contract.MetaWarnings), &warnings))
	require.Len(t, warnings, 101)
	require.Contains(t, strings.Join(warnings, "\n"), "instructions: left out, since it takes 120002 bytes")
	require.Equal(t, "and 2901 more warnings", warnings[100])
}

func TestTheServiceKeepsTheContract(t *testing.T) {
	t.Parallel()

	var tools []string
	for i := range 5 { // more than one page, there and here
		tools = append(tools, fmt.Sprintf(`{"name":"tool.%d","description":%q,"inputSchema":{"type":"object"},"_meta":{%q:"x"}}`,
			i, strings.Repeat("x", contract.ManifestPageBytes/2), contract.MetaKind))
	}
	s := newServer(t, tools...)
	s.pages = 2
	s.Capabilities = `{"tools":{},"resources":{"subscribe":true},"logging":{}}`
	s.Call = func(_ context.Context, _ *fakeConn, method string, _ contract.Object) (string, *contract.ProtocolError) {
		switch method {
		case "resources/list":
			return `{"resources":[]}`, nil
		case "resources/templates/list":
			return `{"resourceTemplates":[]}`, nil
		}
		return "", &contract.ProtocolError{Code: -32601, Message: "Method not found"}
	}
	c := serve(t, s.upstream(), mcpproxy.Options{})
	contracttest.Service(t, contracttest.NexusCall(temporal(t), c.endpoint, c.service, callTimeout))
	require.JSONEq(t, `{"resources":{}}`, string(c.manifest().Capabilities))
}

func TestAnswersOfTheUpstreamReachTheCaller(t *testing.T) {
	t.Parallel()

	var next string
	var failure *contract.ProtocolError
	var mu sync.Mutex
	s := newServer(t, plainTool)
	s.Call = func(context.Context, *fakeConn, string, contract.Object) (string, *contract.ProtocolError) {
		mu.Lock()
		defer mu.Unlock()
		return next, failure
	}
	c := serve(t, s.upstream(), mcpproxy.Options{})
	set := func(result string, err *contract.ProtocolError) {
		mu.Lock()
		defer mu.Unlock()
		next, failure = result, err
	}

	t.Run("a tool error is the whole result", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		result := `{"content":[{"type":"text","text":"no <b>"}],"isError":true,"structuredContent":{"n":1.0},"later":1}`
		set(result, nil)
		f := c.fails("echo", `{}`)
		require.Equal(t, contract.CodeToolError, f.Code)
		require.Equal(t, result, string(f.Details))
	})
	t.Run("a JSON-RPC error keeps its data", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		set("", &contract.ProtocolError{Code: -32042, Message: "URL needed", Data: json.RawMessage(`{"url":1.0}`)})
		f := c.fails("echo", `{}`)
		require.Equal(t, contract.CodeProtocolError, f.Code)
		require.Equal(t, `{"code":-32042,"message":"URL needed","data":{"url":1.0}}`, string(f.Protocol().JSON()))
	})
	t.Run("a request for input passes", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		result := `{"resultType":"input_required","inputRequests":{"a":{}},"requestState":"s"}`
		set(result, nil)
		require.Equal(t, result, c.ok("echo", `{}`))
	})
	t.Run("a result over the limit is named and not asked for again", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		before := s.count("tools/call")
		set(`{"content":[{"type":"text","text":"`+strings.Repeat("x", contract.PayloadLimit)+`"}]}`, nil)
		f := c.fails("echo", `{}`)
		require.Equal(t, contract.CodePayloadTooLarge, f.Code)
		require.Contains(t, f.Message, "2097")
		require.Equal(t, before+1, s.count("tools/call"))
	})
	t.Run("what is no result is said", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		set(`{"content":"text"}`, nil)
		require.Contains(t, c.fails("echo", `{}`).Message, "its answer is none of a tool: result: content")
	})
}

func TestWhatIsNoCallIsRefusedWithoutTheUpstream(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool, `{"name":"hidden","inputSchema":{"type":"object"}}`)
	c := serve(t, s.upstream(), mcpproxy.Options{Reject: []*regexp.Regexp{regexp.MustCompile("hid|hidden"), regexp.MustCompile(`\Qno.tool`)}})
	require.Len(t, c.manifest().Tools, 1)
	lists := s.count("tools/list")
	for _, name := range []string{"hidden", "no-such", "no such tool", "ünknown"} {
		f := c.fails(name, `{}`)
		require.Equal(t, contract.CodeProtocolError, f.Code, name)
		require.EqualValues(t, -32602, f.Protocol().Code)
		require.Equal(t, "Unknown tool: "+name, f.Protocol().Message)
	}
	for _, input := range []string{`[]`, `{"arguments":7}`, `"x"`} {
		f := c.fails("echo", input)
		require.Equal(t, contract.CodeProtocolError, f.Code, input)
		require.EqualValues(t, -32602, f.Protocol().Code)
	}
	require.Equal(t, lists, s.count("tools/list"))
	require.Zero(t, s.count("tools/call"))

	t.Run("the operation behind all tools cannot be called itself", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		for _, operation := range []string{"mcp:tools.call", "mcp:calls.describe", "mcp:nothing"} {
			f := c.with("durable-mcp-proxy-tool", "echo").fails(operation, `{}`)
			require.Equal(t, contract.CodeUnavailable, f.Code, "%s: %v", operation, f)
		}
		require.Zero(t, s.count("tools/call"))
	})
	t.Run("a header of the caller does not choose the tool", func(t *testing.T) { //nolint:paralleltest // the parts share a server
		c.with("durable-mcp-proxy-tool", "hidden").ok("echo", `{}`)
		require.Contains(t, s.calls()[0], `"name":"echo"`)
	})
}

func TestArgumentsOfAnySize(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	c := serve(t, s.upstream(), mcpproxy.Options{})
	input := func(size int) string {
		const frame = `{"arguments":{"s":""}}`
		return `{"arguments":{"s":"` + strings.Repeat("x", size-len(frame)) + `"}}`
	}
	const most = contract.PayloadLimit - contract.PayloadOverhead // what an operation can be started with
	c.ok("echo", input(most-100))
	for _, size := range []int{most - 50, most} { // no room for what goes with them
		f := c.fails("echo", input(size))
		require.Equal(t, contract.CodePayloadTooLarge, f.Code, "%d: %v", size, f)
		require.Contains(t, f.Message, "The arguments would take")
	}
	require.Equal(t, 1, s.count("tools/call"))
}

func TestWhatACallTakesAlong(t *testing.T) {
	t.Parallel()

	s := newServer(t, `{"name":"user/update","inputSchema":{"type":"object"}}`)
	c := serve(t, s.upstream(), mcpproxy.Options{Prefix: "p_"})
	tool := c.manifest().Tools[0]
	require.Equal(t, "p_user_update", tool.Name)
	require.Equal(t, "user/update", tool.UpstreamName)

	traced := c.with(contract.HeaderTraceparent, "00-aa-bb-01").with(contract.HeaderTracestate, "from=header").with(contract.HeaderIdempotencyKey, "key-1")
	traced.ok(tool.Name, `{"arguments":{"a":1.0},"_meta":{"tracestate":"own","x":1.0,"progressToken":7},"inputResponses":{"q":{"r":1.0}},"requestState":"st"}`)
	c.ok(tool.Name, `{}`)

	calls := s.calls()
	first, err := contract.ParseObject(json.RawMessage(calls[0]))
	require.NoError(t, err)
	require.Equal(t, `"user/update"`, string(first.Get("name")))
	require.Equal(t, `{"a":1.0}`, string(first.Get("arguments")))
	require.Equal(t, `{"q":{"r":1.0}}`, string(first.Get("inputResponses")))
	require.Equal(t, `"st"`, string(first.Get("requestState")))
	meta, err := contract.ParseObject(first.Get("_meta"))
	require.NoError(t, err)
	require.Equal(t, `"own"`, string(meta.Get("tracestate")))
	require.Equal(t, `"00-aa-bb-01"`, string(meta.Get("traceparent")))
	require.Equal(t, `1.0`, string(meta.Get("x")))
	require.Equal(t, `"key-1"`, string(meta.Get(contract.MetaIdempotencyKey)))
	require.False(t, meta.Has("progressToken"))
	require.Contains(t, calls[1], `"`+contract.MetaIdempotencyKey+`":"p_user_update-`)
}

func TestMethodsBesideTools(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	s.Capabilities = `{"tools":{},"prompts":{}}`
	s.Call = func(_ context.Context, _ *fakeConn, method string, params contract.Object) (string, *contract.ProtocolError) {
		if method == "prompts/get" {
			return `{"messages":[],"name":` + string(params.Get("name")) + `,"big":1e400}`, nil
		}
		return "", &contract.ProtocolError{Code: -32603, Message: "no"}
	}
	c := serve(t, s.upstream(), mcpproxy.Options{})
	require.Equal(t, `{"messages":[],"name":"a","big":1e400}`, c.ok(contract.MethodOperation("prompts/get"), `{"name":"a"}`))
	f := c.fails(contract.MethodOperation("prompts/list"), `null`)
	require.Equal(t, contract.CodeProtocolError, f.Code)
	require.EqualValues(t, -32603, f.Protocol().Code)
	for _, method := range []string{"resources/read", "completion/complete"} {
		f := c.fails(contract.MethodOperation(method), `{}`)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		require.False(t, f.Retryable)
	}
	require.Zero(t, s.count("resources/read"))
}

func TestACancelReachesTheUpstreamAndKeepsTheSession(t *testing.T) {
	t.Parallel()

	for name, legacy := range map[string]bool{"modern": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newServer(t, plainTool)
			s.Legacy = legacy
			s.Call = func(ctx context.Context, _ *fakeConn, _ string, params contract.Object) (string, *contract.ProtocolError) {
				if strings.Contains(string(params.Get("arguments")), "wait") {
					<-ctx.Done()
				}
				return `{"content":[]}`, nil
			}
			c := serve(t, s.upstream(), mcpproxy.Options{Session: mcpproxy.SessionShared})
			handle := c.start("echo", `{"arguments":{"wait":1}}`, callTimeout)
			require.Eventually(t, func() bool { return s.count("tools/call") == 1 }, 20*time.Second, 10*time.Millisecond)
			begin := time.Now()
			require.NoError(t, handle.Cancel(t.Context(), client.CancelNexusOperationOptions{}))
			_, err := c.wait(handle)
			require.Equal(t, contract.CodeCanceled, resultmap.FromError(err).Code, "%v", err)
			require.Less(t, time.Since(begin), 5*time.Second)
			require.Eventually(t, func() bool { return s.count("cancelled") == 1 }, 5*time.Second, 10*time.Millisecond)
			c.ok("echo", `{}`)
			require.Equal(t, 1, s.connections())
		})
	}
}

func TestWorkflowsCallToo(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	s.Call = func(ctx context.Context, _ *fakeConn, _ string, params contract.Object) (string, *contract.ProtocolError) {
		if strings.Contains(string(params.Get("arguments")), "wait") {
			<-ctx.Done()
		}
		return `{"content":[],"n":1.0}`, nil
	}
	c := serve(t, s.upstream(), mcpproxy.Options{})
	queue := newEndpoint(t)
	w := worker.New(temporal(t), queue, worker.Options{})
	call := func(ctx workflow.Context, input string) (string, error) {
		nc := workflow.NewNexusClient(c.endpoint, c.service)
		var out converter.RawValue
		err := nc.ExecuteOperation(ctx, "echo", resultmap.RawValue(json.RawMessage(input)),
			workflow.NexusOperationOptions{ScheduleToCloseTimeout: callTimeout}).Get(ctx, &out)
		if err != nil {
			return "", err
		}
		data, err := resultmap.JSON(out)
		return string(data), err
	}
	w.RegisterWorkflowWithOptions(call, workflow.RegisterOptions{Name: "call"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	run, err := temporal(t).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "call", `{}`)
	require.NoError(t, err)
	var result string
	require.NoError(t, run.Get(t.Context(), &result))
	require.Equal(t, `{"content":[],"n":1.0}`, result)

	run, err = temporal(t).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "call", `{"arguments":{"wait":1}}`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.count("tools/call") == 2 }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, temporal(t).CancelWorkflow(t.Context(), run.GetID(), ""))
	require.Equal(t, contract.CodeCanceled, resultmap.FromError(run.Get(t.Context(), nil)).Code)
	require.Eventually(t, func() bool { return s.count("cancelled") == 1 }, 5*time.Second, 10*time.Millisecond)
}

// twice has Temporal deliver the start of a tool's call a second time.
type twice struct {
	interceptor.WorkerInterceptorBase
	between func(ctx context.Context) error
	ended   chan error // of between, which the test may not fail: the call can end before it
	mu      sync.Mutex
	starts  int
}

func (i *twice) InterceptNexusOperation(_ context.Context, next interceptor.NexusOperationInboundInterceptor) interceptor.NexusOperationInboundInterceptor {
	in := &twiceInbound{twice: i}
	in.Next = next
	return in
}

type twiceInbound struct {
	interceptor.NexusOperationInboundInterceptorBase
	twice *twice
}

func (i *twiceInbound) StartOperation(ctx context.Context, in interceptor.NexusStartOperationInput) (nexus.HandlerStartOperationResult[any], error) {
	result, err := i.Next.StartOperation(ctx, in)
	i.twice.mu.Lock()
	i.twice.starts++
	first := i.twice.starts == 1
	i.twice.mu.Unlock()
	if !first {
		return result, err
	}
	i.twice.ended <- i.twice.between(ctx)
	return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeUnavailable, "the answer is lost")
}

func TestAStartThatIsDeliveredAgainRunsOnce(t *testing.T) {
	t.Parallel()

	for _, state := range []string{"running", "closed", "failed"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()

			release := make(chan struct{})
			s := newServer(t, plainTool)
			s.Call = func(context.Context, *fakeConn, string, contract.Object) (string, *contract.ProtocolError) {
				switch state {
				case "running":
					<-release
				case "failed":
					return `{"content":[],"isError":true,"n":1.0}`, nil
				}
				return `{"content":[],"n":1.0}`, nil
			}
			p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{})
			endpoint := newEndpoint(t)
			again := &twice{ended: make(chan error, 1)}
			again.between = func(ctx context.Context) error {
				for state != "running" && closedActivities(t, endpoint) != 1 {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(10 * time.Millisecond):
					}
				}
				return nil
			}
			w := worker.New(dial(t, p), endpoint, worker.Options{Interceptors: []interceptor.WorkerInterceptor{again}})
			require.NoError(t, w.Start())
			t.Cleanup(w.Stop)
			c := caller{t: t, endpoint: endpoint, service: "fake"}
			handle := c.start("echo", `{}`, callTimeout)
			if state == "running" {
				require.Eventually(t, func() bool {
					again.mu.Lock()
					defer again.mu.Unlock()
					return again.starts == 2
				}, 20*time.Second, 10*time.Millisecond)
				close(release)
			}
			result, err := c.wait(handle)
			require.NoError(t, <-again.ended)
			if state == "failed" {
				f := resultmap.FromError(err)
				require.Equal(t, contract.CodeToolError, f.Code)
				require.Equal(t, `{"content":[],"isError":true,"n":1.0}`, string(f.Details))
			} else {
				require.NoError(t, err)
				require.Equal(t, `{"content":[],"n":1.0}`, result)
			}
			require.Equal(t, 1, s.count("tools/call"))
		})
	}
}

// closedActivities counts the activities of a task queue that have ended.
func closedActivities(t *testing.T, queue string) int {
	t.Helper()
	n, err := temporal(t).CountActivities(t.Context(), client.CountActivitiesOptions{
		Query: fmt.Sprintf("TaskQueue='%s' AND ExecutionStatus != 'Running'", queue),
	})
	if err != nil {
		return 0
	}
	return int(n.Count)
}
