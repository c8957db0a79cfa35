package mcpworkflowtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflowtest"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// run runs a Workflow with fakes.
func run(t *testing.T, f func(workflow.Context, *mcpworkflow.Client) error, services ...*mcpworkflowtest.Service) *mcpworkflowtest.Log {
	t.Helper()
	env := newEnvironment()
	log := mcpworkflowtest.Register(env, worker.Options{}, services...)
	w := func(ctx workflow.Context) error {
		return f(ctx, mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "fake"}}}))
	}
	env.RegisterWorkflow(w)
	env.ExecuteWorkflow(w)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	return log
}

// Every class of failure reaches the Workflow as that of a real service does.
func TestFailuresOfEachClass(t *testing.T) {
	t.Parallel()
	for _, code := range contract.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			failure := &contract.Failure{Code: code, Message: "It is <so>."}
			switch code {
			case contract.CodeToolError:
				failure = resultmap.ToolError(contract.TextResult("It is <so>.", true))
			case contract.CodeProtocolError:
				failure = resultmap.ProtocolError(&contract.ProtocolError{Code: -32602, Message: "It is <so>."})
			default:
			}
			fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "act"}).
				Script("act", mcpworkflowtest.Fail(failure), mcpworkflowtest.Fail(failure))
			run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
				_, err := mcpworkflow.CallAs[any](ctx, tools, "act", nil)
				var f *contract.Failure
				if !errors.As(err, &f) || f.Code != code || f.Message != "It is <so>." {
					return fmt.Errorf("it ended with %w", err)
				}
				r, err := tools.Call(ctx, "act", nil)
				switch code {
				case contract.CodeCanceled, contract.CodeInvalid, contract.CodeProtocolError:
					if !errors.As(err, &f) || f.Code != code || (code == contract.CodeCanceled) != temporal.IsCanceledError(err) {
						return fmt.Errorf("it ended with %w", err)
					}
					return nil
				default:
				}
				if err != nil || !r.IsError() {
					return fmt.Errorf("%s %w", r.JSON(), err)
				}
				return nil
			}, fake)
		})
	}
}

// A call that failed over something cancelled has failed: a Workflow that ends with
// its error is not cancelled.
func TestFailuresWithACancellationInside(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "act", Run: func(json.RawMessage) (any, error) {
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "%w",
			temporal.NewNonRetryableApplicationError("The import broke.", "Broken", temporal.NewCanceledError()))
	}})
	run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		_, err := mcpworkflow.CallAs[any](ctx, tools, "act", nil)
		f, ok := errors.AsType[*contract.Failure](err)
		if !ok || f.Code != contract.CodeFailed || temporal.IsCanceledError(err) || f.Cause == nil {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	}, fake)
}

// Parallel calls are logged, and meet their script, in the order in which the
// Workflow made them.
func TestParallelCallsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const calls = 100
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "a"}, mcpworkflowtest.Tool{Name: "b"})
	var names []string
	for i := range calls {
		name := string(rune('a' + i%2))
		names = append(names, name)
		fake.Script(name, mcpworkflowtest.Return(i))
	}
	log := run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		var futures []*mcpworkflow.Future
		for i, name := range names {
			futures = append(futures, tools.CallAsync(ctx, name, map[string]int{"i": i}, mcpworkflow.WithSummary("call "+strconv.Itoa(i))))
		}
		for i, f := range futures {
			if got, err := mcpworkflow.As[int](ctx, f); err != nil || got != i {
				return fmt.Errorf("call %d: %d %w", i, got, err)
			}
		}
		return nil
	}, fake)
	require.Equal(t, names, log.Names())
	for i, c := range log.Calls() {
		require.JSONEq(t, fmt.Sprintf(`{"i":%d}`, i), string(c.Input))
		require.Equal(t, "call "+strconv.Itoa(i), c.Summary)
		require.Equal(t, "fake", c.Service)
	}
}

// A script goes on from where the Workflow is.
func TestScriptInTheMiddle(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "act", Run: func(json.RawMessage) (any, error) { return "run", nil }})
	fake.Script("act", mcpworkflowtest.Return("first"))
	var got []string
	run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		for i := range 5 {
			if i == 3 {
				fake.Script("act", mcpworkflowtest.Return("fourth"))
			}
			text, err := mcpworkflow.CallAs[string](ctx, tools, "act", nil)
			if err != nil {
				return err
			}
			got = append(got, text)
		}
		return nil
	}, fake)
	require.Equal(t, []string{"first", "run", "run", "fourth", "run"}, got)
}

// The options may be those of the Worker, interceptor and all.
func TestOwnOperationsCountOnce(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "hang"}, mcpworkflowtest.Tool{Name: "act"}).
		Script("hang", mcpworkflowtest.Hang())
	env := newEnvironment()
	mcpworkflowtest.Register(env, worker.Options{Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()}}, fake)
	w := func(ctx workflow.Context) (time.Duration, error) {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "fake"}}, MaxPending: 2})
		began := workflow.Now(ctx)
		workflow.NewNexusClient("fake", "fake").ExecuteOperation(ctx, "hang", nil, workflow.NexusOperationOptions{ScheduleToCloseTimeout: time.Hour})
		_, err := tools.Call(ctx, "act", nil)
		return workflow.Now(ctx).Sub(began), err
	}
	env.RegisterWorkflow(w)
	env.ExecuteWorkflow(w)
	var took time.Duration
	require.NoError(t, env.GetWorkflowResult(&took))
	require.Less(t, took, time.Minute, "it waited for the operation")
}

// A call that hangs can be cancelled, and so can one that waits behind it.
func TestHangingCallIsCancelled(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "act", Timeout: time.Hour}).Script("act", mcpworkflowtest.Hang())
	log := run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		scope, cancel := workflow.WithCancel(ctx)
		f := tools.CallAsync(scope, "act", nil)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		if f.IsReady() {
			return errors.New("it has ended")
		}
		cancel()
		if _, err := f.Get(ctx); !temporal.IsCanceledError(err) {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	}, fake)
	require.Equal(t, time.Hour, log.Calls()[0].Timeout)
}

// Methods beside the tools answer, or are not there.
func TestMethods(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake").Handle("resources/read", func(params json.RawMessage) (any, error) {
		return json.RawMessage(`{"contents":[` + string(params) + `]}`), nil
	})
	log := run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		got, err := tools.Request(ctx, "", "resources/read", map[string]string{"uri": "file:///<a>"})
		if err != nil || string(got) != `{"contents":[{"uri":"file:///<a>"}]}` {
			return fmt.Errorf("%s %w", got, err)
		}
		_, err = tools.Request(ctx, "fake", "prompts/list", nil)
		var f *contract.Failure
		if !errors.As(err, &f) || f.Code != contract.CodeUnavailable {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	}, fake)
	require.Equal(t, []string{contract.MethodOperation("resources/read"), contract.MethodOperation("prompts/list")}, log.Names())
}

// The headers of a call are in the log, as the service would get them.
func TestHeaders(t *testing.T) {
	t.Parallel()
	log := run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		_, err := tools.Call(ctx, "act", json.RawMessage(`{"n":1.0}`), mcpworkflow.WithIdempotencyKey("k 1"),
			mcpworkflow.WithHeader("Traceparent", "00-1"), mcpworkflow.WithMeta(json.RawMessage(`{"a":1.0}`)))
		return err
	}, mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{
		Name: "act", Encoding: contract.EncodingMCP, Run: func(json.RawMessage) (any, error) { return contract.TextResult("yes", false), nil },
	}))
	call := log.Calls()[0]
	require.Equal(t, `{"arguments":{"n":1.0},"_meta":{"a":1.0}}`, string(call.Input))
	require.Equal(t, "k 1", call.Header[contract.HeaderIdempotencyKey])
	require.Equal(t, "00-1", call.Header[contract.HeaderTraceparent])
	require.Regexp(t, `^[0-9a-f]{16}$`, call.Header[contract.HeaderCaller])
	require.Len(t, slices.DeleteFunc(slices.Collect(keys(call.Header)), func(k string) bool { return k == "mcpworkflowtest-number" }), 3)
}

// A tool that asks for input gets it with the next call.
func TestInput(t *testing.T) {
	t.Parallel()
	const asks = `{"resultType":"input_required","inputRequests":{"name":{}},"requestState":"s 1"}`
	log := run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		if _, err := mcpworkflow.CallAs[any](ctx, tools, "act", nil); err == nil {
			return errors.New("an answer without the input")
		}
		r, err := tools.Call(ctx, "act", nil)
		if err != nil || !r.NeedsInput() {
			return fmt.Errorf("%s %w", r.JSON(), err)
		}
		got, err := mcpworkflow.CallAs[string](ctx, tools, "act", nil, mcpworkflow.WithInput(json.RawMessage(`{"name":{"n":1.0}}`), json.RawMessage(`"s 1"`)))
		if err != nil || got != "yes" {
			return fmt.Errorf("%q %w", got, err)
		}
		return nil
	}, mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "act", Encoding: contract.EncodingMCP}).Script("act",
		mcpworkflowtest.Return(json.RawMessage(asks)), mcpworkflowtest.Return(json.RawMessage(asks)), mcpworkflowtest.Return(contract.TextResult("yes", false))))
	require.Equal(t, `{"arguments":{},"inputResponses":{"name":{"n":1.0}},"requestState":"s 1"}`, string(log.Calls()[2].Input))
}

func keys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestBadFakesPanic(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "a b"}) })
	require.Panics(t, func() {
		mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "a"}, mcpworkflowtest.Tool{Name: "a"})
	})
	answer := func(json.RawMessage) (any, error) { return json.RawMessage(`{}`), nil }
	fake := mcpworkflowtest.NewService("fake").Handle("prompts/get", answer)
	mcpworkflowtest.Register(newEnvironment(), worker.Options{}, fake)
	require.PanicsWithValue(t, `mcpworkflowtest: service "fake": Handle("prompts/list") after Register`, func() { fake.Handle("prompts/list", answer) })
}

// A service may be set up by several goroutines.
func TestSetUpAtOnce(t *testing.T) {
	t.Parallel()
	fake := mcpworkflowtest.NewService("fake", mcpworkflowtest.Tool{Name: "a"})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			fake.Handle("x/"+string(rune('a'+i)), func(json.RawMessage) (any, error) { return i, nil })
			fake.Script("a", mcpworkflowtest.Return(i))
		})
	}
	wg.Wait()
	run(t, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		for i := range 10 {
			got, err := tools.Request(ctx, "fake", "x/"+string(rune('a'+i)), nil)
			if err != nil || string(got) != strconv.Itoa(i) {
				return fmt.Errorf("%s %w", got, err)
			}
		}
		return nil
	}, fake)
}
