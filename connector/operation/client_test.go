package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	service = "tools"
	tool    = "echo"
)

// connect returns a client of a Temporal in memory with a service that echoes.
func connect(t *testing.T) (*operation.Client, *temporaltest.Frontend) {
	t.Helper()
	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Handle(service, tool, func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil })
	return dialOperations(t, temporal), temporal
}

func dialOperations(t *testing.T, temporal *temporaltest.Frontend, options ...grpc.DialOption) *operation.Client {
	t.Helper()
	return dialWith(t, temporal, client.Options{ConnectionOptions: client.ConnectionOptions{DialOptions: options}})
}

func dialWith(t *testing.T, temporal *temporaltest.Frontend, options client.Options) *operation.Client {
	t.Helper()
	options.HostPort, options.Logger = temporal.Address(), quiet{}
	options.Interceptors = []interceptor.ClientInterceptor{operation.Interceptor()}
	temporalClient, err := client.NewLazyClient(options)
	require.NoError(t, err)
	t.Cleanup(temporalClient.Close)
	c, err := operation.New(temporalClient, operation.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return c
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func call(arguments string) operation.Call {
	return operation.Call{
		Endpoint: "e", Service: service, Tool: contract.Tool{Name: tool, Encoding: contract.EncodingValue},
		Params: contract.CallParams{Arguments: json.RawMessage(arguments)},
		Caller: operation.Caller{Transport: operation.Stdio, Name: "ada"},
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()

	c, _ := connect(t)
	for name, test := range map[string]struct {
		caller operation.Caller
		want   string
	}{
		"stdio":           {operation.Caller{Transport: operation.Stdio, Name: "ada"}, `^mcp-stdio-stateful-[0-9a-f]{8}-[0-9a-f]{32}$`},
		"http":            {operation.Caller{Transport: operation.HTTP, Name: "ada"}, `^mcp-http-stateless-[0-9a-f]{8}-[0-9a-f]{32}$`},
		"anonymous":       {operation.Caller{Transport: operation.HTTP}, `^mcp-http-stateless-[0-9a-f]{32}$`},
		"the zero Caller": {operation.Caller{}, `^mcp-stdio-stateful-[0-9a-f]{32}$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			one := call(`{}`)
			one.Caller = test.caller
			id, err := c.Start(t.Context(), one)
			require.NoError(t, err)
			require.Regexp(t, test.want, id)
			require.True(t, test.caller.Owns(id))
			require.False(t, operation.Caller{Name: "eve"}.Owns(id))
			require.Equal(t, test.caller.Name == "", operation.Caller{}.Owns(id))
			again, err := c.Start(t.Context(), one)
			require.NoError(t, err)
			require.NotEqual(t, id, again)
		})
	}
}

// TestPollNamesTheRun: who started a call asks Temporal for its run, which costs the
// server less than to look for the ID's latest one.
func TestPollNamesTheRun(t *testing.T) {
	t.Parallel()

	_, temporal := connect(t)
	var runs []string
	c := dialOperations(t, temporal, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if poll, ok := req.(*workflowservice.PollNexusOperationExecutionRequest); ok {
				runs = append(runs, poll.GetRunId())
			}
			return invoke(ctx, method, req, reply, conn, options...)
		}))
	one := call(`{"n":1}`)
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	for range 2 { // the second time it is an ID like any other
		result, err := c.Result(t.Context(), id, one.Tool, time.Minute)
		require.NoError(t, err)
		require.JSONEq(t, `{"n":1}`, string(result.Structured()))
	}
	require.Equal(t, []string{"run", ""}, runs)
}

// A run that is gone says nothing of its ID: another process may have started the call
// anew.
func TestRunIsGone(t *testing.T) {
	t.Parallel()

	_, temporal := connect(t)
	c := dialOperations(t, temporal, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if poll, ok := req.(*workflowservice.PollNexusOperationExecutionRequest); ok && poll.GetRunId() != "" {
				return status.Error(codes.NotFound, "no such run")
			}
			return invoke(ctx, method, req, reply, conn, options...)
		}))
	one := call(`{"n":1}`)
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	result, err := c.Result(t.Context(), id, one.Tool, time.Minute)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(result.Structured()))
}

func TestOwnsNothingElse(t *testing.T) {
	t.Parallel()

	ada := operation.Caller{Transport: operation.HTTP, Name: "ada"}
	require.Len(t, ada.Owner(), 8)
	require.Len(t, ada.Header(), 16)
	require.Empty(t, operation.Caller{}.Owner())
	require.Empty(t, operation.Caller{}.Header())
	bits := strings.Repeat("0", 32)
	require.True(t, ada.Owns("mcp-http-stateless-"+ada.Owner()+"-"+bits))
	require.True(t, ada.Owns("mcp-stdio-stateful-"+ada.Owner()+"-"+bits))
	for _, id := range []string{
		"", "mcp-", bits, "mcp-discovery-" + bits, "mcp-http-stateless-" + bits,
		"mcp-http-stateless-" + ada.Owner() + "-" + bits + "0",
		"mcp-http-stateless-" + ada.Owner() + "-" + bits + "\n",
		"xmcp-http-stateless-" + ada.Owner() + "-" + bits,
		"mcp-http-stateless-" + strings.ToUpper(ada.Owner()) + "-" + strings.Repeat("A", 32),
		"mcp-ftp-stateless-" + ada.Owner() + "-" + bits,
	} {
		require.False(t, ada.Owns(id), "%q", id)
	}
}

// Each part of what a key names is kept apart from the next.
func TestDerivedIDs(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	derive := func(caller, service, tool, key string) string {
		one := call(`{}`)
		one.Caller.Name, one.Service, one.Tool.Name, one.IdempotencyKey = caller, service, tool, key
		id, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		return id
	}
	seen := map[string]string{}
	for _, parts := range [][4]string{
		{"ada", "s", "t", "k"}, {"eve", "s", "t", "k"}, {"ada", "st", "t", "k"}, {"ada", "s", "tk", "k"},
		{"ada", "s", "t", "kk"}, {"ada", "s", "tt", "k"}, {"adas", "s", "t", "k"}, {"ad", "as", "t", "k"},
		{"ada", "s", "t\x00", "k"}, {"ada", "s", "t", "k "},
	} {
		id := derive(parts[0], parts[1], parts[2], parts[3])
		require.NotContains(t, seen, id, "%q", parts)
		seen[id] = parts[0]
		require.Equal(t, id, derive(parts[0], parts[1], parts[2], parts[3]))
	}
	require.Len(t, temporal.Operations("s"), 8)
}

func TestIdempotency(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	first := call(`{"to":"Ada","n":1.0}`)
	first.IdempotencyKey = "k"
	id, err := c.Start(t.Context(), first)
	require.NoError(t, err)
	_, err = c.Result(t.Context(), id, first.Tool, time.Minute)
	require.NoError(t, err)

	same := first
	same.Params.Arguments = json.RawMessage(` { "n" : 1.0, "to" : "\u0041da" } `)
	again, err := c.Start(t.Context(), same)
	require.NoError(t, err)
	require.Equal(t, id, again)

	other := first
	other.Params.Arguments = json.RawMessage(`{"to":"Ada","n":1}`)
	_, err = c.Start(t.Context(), other)
	var failure *contract.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeInvalid, failure.Code)
	require.Contains(t, failure.Message, `"k" was used for a call of "echo" with other arguments`)

	elsewhere := first // a service of the same name, with other data behind it
	elsewhere.Endpoint = "production"
	_, err = c.Start(t.Context(), elsewhere)
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeInvalid, failure.Code)
	require.Contains(t, failure.Message, `"k" was used for a call of "echo" at another endpoint`)
	require.Len(t, temporal.Operations(service), 1)
	require.Equal(t, "k", temporal.Operations(service)[0].GetNexusHeader()[contract.HeaderIdempotencyKey])
}

// A call that goes on with what its tool has asked for is none that was made before:
// under the same key it would get the request for input again, for ever.
func TestIdempotencyOfRounds(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	round := func(answers, state string) operation.Call {
		one := call(`{}`)
		one.Tool.Encoding, one.IdempotencyKey = contract.EncodingMCP, "k"
		one.Params.InputResponses, one.Params.RequestState = json.RawMessage(answers), json.RawMessage(state)
		return one
	}
	seen := map[string]bool{}
	for n, one := range []operation.Call{
		round("", ""), round(`{"who":{"n":1.0}}`, ""), round(`{"who":{"n":1.0}}`, `"two"`), round(`{"who":{"n":1.0}}`, `""`), round("", `"three"`),
	} {
		id, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		operations := temporal.Operations(service)
		require.Len(t, operations, n+1, "each round runs")
		key := operations[n].GetNexusHeader()[contract.HeaderIdempotencyKey]
		require.Equal(t, n == 0, key == "k")
		require.Regexp(t, `^k(/[0-9a-f]{32})?$`, key)
		require.False(t, seen[key], "what keeps answers by the key would answer with the round before")
		require.False(t, seen[id])
		seen[id] = true
		again, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		require.Equal(t, id, again, "and runs once")
	}
	id, err := c.Start(t.Context(), round(`null`, `null`))
	require.NoError(t, err)
	require.True(t, seen[id])
	for _, null := range []operation.Call{round(`{"who":{"n":1.0}}`, `null`), round(`null`, `"three"`)} {
		id, err := c.Start(t.Context(), null)
		require.NoError(t, err)
		require.True(t, seen[id])
	}
	_, err = c.Start(t.Context(), round(`{"who":{"n":1}}`, `"two"`))
	require.ErrorContains(t, err, "with other arguments or answers")
	require.Len(t, temporal.Operations(service), len(seen))

	// A tool of the value encoding gets none of it, and so nothing of it counts.
	plain := round(`{"who":1}`, `"two"`)
	plain.Tool.Encoding, plain.IdempotencyKey = contract.EncodingValue, "value"
	id, err = c.Start(t.Context(), plain)
	require.NoError(t, err)
	plain.Params.RequestState = nil
	again, err := c.Start(t.Context(), plain)
	require.NoError(t, err)
	require.Equal(t, id, again)
}

// What reading a result takes is kept beside the operation, whatever the
// arguments look like.
func TestNotes(t *testing.T) {
	t.Parallel()

	c, _ := connect(t)
	long := `{"a":"` + strings.Repeat("ä\u2028", 300) + `"}`
	schema := json.RawMessage(`{"type":"object"}`)
	for _, arguments := range []string{
		`{}`, ` {"a":1} `, `{"a":"[mcp schema] x"}`, `{"[mcp] ":"] "}`, "\n\t{\"a\":\"] [\"}", long,
		`{"a":"` + strings.Repeat("\\u0000", 100) + `"}`, `{"a":"` + strings.Repeat("<&>", 100) + `"}`,
	} {
		for i, want := range []contract.Tool{
			{Name: tool, Encoding: contract.EncodingValue},
			{Name: tool, Encoding: contract.EncodingMCP},
			{Name: tool, Encoding: contract.EncodingValue, OutputSchema: schema},
			{Name: tool, Encoding: contract.EncodingMCP, OutputSchema: schema},
		} {
			for _, key := range []string{"", "mcp"} {
				one := call(arguments)
				one.Tool = want
				if key != "" {
					one.IdempotencyKey = fmt.Sprintf("%s %d %d", key, i, len(arguments))
				}
				id, err := c.Start(t.Context(), one)
				require.NoError(t, err)
				d, err := c.Describe(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, want.Name, d.Tool.Name)
				require.Equal(t, want.Encoding, d.Tool.Encoding)
				require.Equal(t, want.OutputSchema != nil, d.Tool.OutputSchema != nil)
				require.True(t, utf8.ValidString(d.Arguments))
				if short, cut := strings.CutSuffix(d.Arguments, "…"); cut {
					require.Truef(t, strings.HasPrefix(arguments, short), "%q", d.Arguments)
					require.Less(t, len(d.Arguments), 200)
				} else {
					require.Equal(t, arguments, d.Arguments)
				}
				encoded, err := json.Marshal(d.Arguments)
				require.NoError(t, err)
				require.Less(t, len(encoded), 300)
				_, err = c.Start(t.Context(), one)
				require.NoError(t, err)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	big := strings.Repeat("b", contract.MaxHeaderBytes)
	ada := operation.Caller{Name: "ada"}.Header()
	for i, test := range []struct {
		trace  operation.TraceContext
		caller string
		want   map[string]string
	}{
		{operation.TraceContext{Traceparent: parent, Tracestate: "a=1", Baggage: "k=v"}, "ada", map[string]string{
			contract.HeaderTraceparent: parent, contract.HeaderTracestate: "a=1", contract.HeaderBaggage: "k=v", contract.HeaderCaller: ada,
		}},
		{operation.TraceContext{}, "", map[string]string{}},
		// No call fails for its trace.
		{operation.TraceContext{Traceparent: parent, Tracestate: "a\n", Baggage: big}, "ada", map[string]string{
			contract.HeaderTraceparent: parent, contract.HeaderCaller: ada,
		}},
		{operation.TraceContext{Traceparent: "\xff", Tracestate: "ä", Baggage: "\x00"}, "", map[string]string{contract.HeaderTracestate: "ä"}},
		{operation.TraceContext{Baggage: big[:contract.MaxHeaderBytes-len(contract.HeaderBaggage)]}, "", map[string]string{
			contract.HeaderBaggage: big[:contract.MaxHeaderBytes-len(contract.HeaderBaggage)],
		}},
	} {
		one := call(`{}`)
		one.Caller.Name, one.Trace = test.caller, test.trace
		_, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		starts := temporal.Operations(service)
		got := starts[len(starts)-1].GetNexusHeader()
		require.Len(t, got, len(test.want), "case %d", i)
		for k, v := range test.want {
			require.Equal(t, v, got[k])
		}
	}

	for _, key := range []string{strings.Repeat("k", 1025), "a\nb", "a\x00", "\xff"} {
		one := call(`{}`)
		one.IdempotencyKey = key
		id, err := c.Start(t.Context(), one)
		var failure *contract.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, contract.CodeInvalid, failure.Code)
		require.Empty(t, id)
	}
	require.Len(t, temporal.Operations(service), 5)
}

func TestNothingStartsForWhatIsWrong(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	for arguments, code := range map[string]contract.Code{
		`[]`: contract.CodeInvalid, `{`: contract.CodeInvalid, `null`: contract.CodeInvalid,
		`{"a":"` + strings.Repeat("a", contract.PayloadLimit) + `"}`: contract.CodePayloadTooLarge,
	} {
		_, err := c.Start(t.Context(), call(arguments))
		var failure *contract.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, code, failure.Code)
	}
	nowhere := call(`{}`)
	nowhere.Endpoint = ""
	_, err := c.Start(t.Context(), nowhere)
	require.Error(t, err)
	require.Empty(t, temporal.Operations(service))
}

// Each failure of the start has its own words and remedy.
func TestStartFailures(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	for _, test := range []struct {
		err  error
		want string
	}{
		{serviceerror.NewNotFound("endpoint not registered"), `There is no Nexus endpoint "e" in Temporal (service "tools"). There can be none: an endpoint's name has 2 to 200 letters`},
		{serviceerror.NewUnimplemented("off"), "nexusoperation.enableStandalone=true"},
		{serviceerror.NewPermissionDenied("no", ""), "does not permit it"},
		{serviceerror.NewNamespaceNotFound("ns"), "Temporal does not know the namespace: Namespace ns is not found."},
	} {
		temporal.SetDown(test.err)
		_, err := c.Start(t.Context(), call(`{}`))
		var failure *contract.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, contract.CodeUnavailable, failure.Code)
		require.Contains(t, failure.Message, test.want)
	}
}

// A timeout that a handler reports says nothing of missing workers.
func TestAHandlerThatTimedOut(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	temporal.Handle(service, tool, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, resultmap.ApplicationError(&contract.Failure{Code: contract.CodeTimedOut, Message: "The tool was too slow."})
	})
	id, err := c.Start(t.Context(), call(`{}`))
	require.NoError(t, err)
	_, err = c.Result(t.Context(), id, call(`{}`).Tool, 0)
	var failure *contract.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeTimedOut, failure.Code)
	require.Equal(t, "The tool was too slow.", failure.Message)
}

// A start that ends without an answer may have been recorded: its ID comes back.
func TestAStartWithoutAnAnswer(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	temporal.SetDown(serviceerror.NewUnavailable("away"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	id, err := c.Start(ctx, call(`{}`))
	var failure *contract.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeUnavailable, failure.Code)
	require.True(t, failure.Retryable)
	require.True(t, operation.Caller{Name: "ada"}.Owns(id))
	require.Equal(t, `Temporal does not answer (endpoint "e", service "tools"). The call may have been recorded all the same: its operation is `+id+".", failure.Message)
}

// An overloaded server says now and then that it knows no such namespace.
func TestANamespaceThatWasThereIsWaitedFor(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	temporal.Handle(service, tool, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"n":1.0}`), nil
	})
	id, err := c.Start(t.Context(), call(`{}`))
	require.NoError(t, err)
	temporal.SetDown(serviceerror.NewNamespaceNotFound("ns"))
	_, err = c.Result(t.Context(), id, call(`{}`).Tool, 200*time.Millisecond)
	require.ErrorIs(t, err, operation.ErrRunning)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = c.Start(ctx, call(`{}`))
	require.Error(t, err)
	require.Error(t, ctx.Err(), "it was asked once")
	temporal.SetDown(nil)
	r, err := c.Result(t.Context(), id, call(`{}`).Tool, 0)
	require.NoError(t, err)
	require.Equal(t, `{"n":1.0}`, string(r.Structured()))
}

func TestList(t *testing.T) {
	t.Parallel()

	c, _ := connect(t)
	var ids []string
	for i := range 25 {
		one := call(fmt.Sprintf(`{"i":%d}`, i))
		if i%2 == 1 {
			one.Caller.Transport = operation.HTTP
		}
		id, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		_, err = c.Result(t.Context(), id, one.Tool, time.Minute)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	eve := call(`{}`)
	eve.Caller.Name = "eve"
	_, err := c.Start(t.Context(), eve)
	require.NoError(t, err)

	calls, err := c.List(t.Context(), operation.Caller{Name: "ada"}, operation.Filter{})
	require.NoError(t, err)
	require.Len(t, calls, 20)
	for i, d := range calls {
		require.Equal(t, ids[24-i], d.ID)
		require.JSONEq(t, fmt.Sprintf(`{"i":%d}`, 24-i), d.Arguments)
		require.Equal(t, operation.Completed, d.Status)
		require.False(t, d.Closed.IsZero())
	}
	calls, err = c.List(t.Context(), operation.Caller{Name: "ada"}, operation.Filter{Limit: 3})
	require.NoError(t, err)
	require.Len(t, calls, 3)

	// What reads resources, or completes words, is no call.
	for range 25 {
		read := call(`{}`)
		read.Tool.Name = contract.MethodOperation("resources/read")
		_, err := c.Start(t.Context(), read)
		require.NoError(t, err)
	}
	calls, err = c.List(t.Context(), operation.Caller{Name: "ada"}, operation.Filter{Limit: 3})
	require.NoError(t, err)
	require.Len(t, calls, 3)
	require.Equal(t, ids[24], calls[0].ID)
	calls, err = c.List(t.Context(), operation.Caller{Name: "ada"}, operation.Filter{Endpoint: "another"})
	require.NoError(t, err)
	require.Empty(t, calls)
	calls, err = c.List(t.Context(), operation.Caller{}, operation.Filter{})
	require.NoError(t, err)
	require.Empty(t, calls, "nobody can tell one anonymous caller from another")
}

// Reads are not counted among the calls that are looked through: a caller who reads
// much still finds its calls.
func TestListPastReads(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	id, err := c.Start(t.Context(), call(`{}`))
	require.NoError(t, err)
	temporal.Handle(service, contract.MethodOperation("resources/read"), func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil })
	read := call(`{}`)
	read.Tool.Name = contract.MethodOperation("resources/read")
	for range 2000 {
		_, err := c.Start(t.Context(), read)
		require.NoError(t, err)
	}
	calls, err := dialOperations(t, temporal).List(t.Context(), operation.Caller{Name: "ada"}, operation.Filter{})
	require.NoError(t, err)
	require.Len(t, calls, 1)
	require.Equal(t, id, calls[0].ID)
}

// A call can be listed as soon as it has started: by this process at once, though
// visibility lags.
func TestListBeforeVisibility(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	temporal.Handle(service, "brood", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	start := func(caller, tool string) string {
		one := call(`{"i":1}`)
		one.Caller.Name, one.Tool.Name = caller, tool
		id, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		return id
	}
	seen := start("ada", tool)
	_, err := c.Result(t.Context(), seen, call(`{}`).Tool, time.Minute)
	require.NoError(t, err)
	temporal.StopVisibility()
	broods := start("ada", "brood")
	start("eve", tool)
	for _, test := range []struct {
		filter operation.Filter
		want   []string
	}{
		{operation.Filter{}, []string{broods, seen}},
		{operation.Filter{Limit: 1}, []string{broods}},
		{operation.Filter{Status: operation.Completed}, []string{seen}},
		{operation.Filter{Service: service, Tool: "brood", Status: operation.Running}, []string{broods}},
		{operation.Filter{Service: "other"}, nil},
	} {
		calls, err := c.List(t.Context(), operation.Caller{Name: "ada"}, test.filter)
		require.NoError(t, err)
		var ids []string
		for _, d := range calls {
			ids = append(ids, d.ID)
			require.Equal(t, `{"i":1}`, d.Arguments)
		}
		require.Equal(t, test.want, ids)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	temporal.Handle(service, "brood", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	one := call(`{}`)
	one.Tool.Name = "brood"
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	require.NoError(t, c.Cancel(t.Context(), id, "why not"))
	_, err = c.Result(t.Context(), id, one.Tool, time.Minute)
	var failure *contract.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeCanceled, failure.Code)
	d, err := c.Describe(t.Context(), id)
	require.NoError(t, err)
	require.True(t, d.CancelRequested)
	require.Equal(t, operation.Canceled, d.Status)

	err = c.Cancel(t.Context(), "nobody", "")
	require.ErrorAs(t, err, &failure)
	require.Equal(t, contract.CodeInvalid, failure.Code)
}

func TestListToolsWithoutAWorker(t *testing.T) {
	t.Parallel()

	c, temporal := connect(t)
	_, err := c.ListTools(t.Context(), "e", "nobody", "", 3*time.Second)
	require.ErrorIs(t, err, operation.ErrNoAnswer)
	require.ErrorContains(t, err, "Temporal does not tell.")
	require.Equal(t, 1, temporal.Calls("StartNexusOperationExecution"))

	for _, test := range []struct {
		polled time.Time
		want   string
	}{
		{time.Time{}, "The likely cause is that no worker polls the endpoint's task queue: Temporal knows of none."},
		{time.Now().Add(-4 * time.Minute), `The likely cause is that no worker polls the endpoint's task queue: the last one did 4m\d+s ago.`},
		{time.Now(), `within 500ms. A worker polled the endpoint's task queue \d+s ago: it has stopped since, is busy, `},
	} {
		temporal.SetLastPoll(test.polled)
		_, err = c.ListTools(t.Context(), "e", "nobody", "", 500*time.Millisecond)
		require.ErrorIs(t, err, operation.ErrNoAnswer)
		require.Regexp(t, test.want, err.Error())
	}

	temporal.Handle("broken", contract.OperationListTools, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("no")
	})
	_, err = c.ListTools(t.Context(), "e", "broken", "", time.Minute)
	require.Error(t, err)
	require.NotErrorIs(t, err, operation.ErrNoAnswer)
}
