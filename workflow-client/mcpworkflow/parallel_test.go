package mcpworkflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func only(p place) []mcpworkflow.Service { return []mcpworkflow.Service{{Name: p.name}} }

// Two hundred calls at once, over two clients, end with their results: no more
// than thirty operations are ever pending, or the server would fail the Workflow
// task for ever. They start in the order in which they were made.
func TestManyParallelCalls(t *testing.T) {
	t.Parallel()
	const calls = 200
	p := newPlace(t, "parallel")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("echo", "")), echo("echo")))
		workflowNamed(w, "many", func(ctx workflow.Context, _ any) (string, error) {
			clients := []*mcpworkflow.Client{
				mcpworkflow.New(mcpworkflow.Options{Services: only(p)}), mcpworkflow.New(mcpworkflow.Options{Services: only(p)}),
			}
			for _, c := range clients {
				if _, err := c.List(ctx); err != nil {
					return "", err
				}
			}
			var futures []*mcpworkflow.Future
			for i := range calls {
				futures = append(futures, clients[i%2].CallAsync(ctx, "echo", map[string]int{"n": i}))
			}
			// The Workflow's own operation is one of the thirty.
			own := workflow.NewNexusClient(p.name, p.name).ExecuteOperation(ctx, "echo", "own", workflow.NexusOperationOptions{})
			for i, f := range futures {
				v, err := mcpworkflow.As[map[string]int](ctx, f)
				if err != nil || v["n"] != i {
					return "", fmt.Errorf("call %d: %v, %w", i, v, err)
				}
			}
			return "done", own.Get(ctx, nil)
		})
	})
	run := p.start(t, "many", nil)
	var got string
	err := run.Get(t.Context(), &got)
	if err != nil {
		events := historyOf(t, p, run).GetEvents()
		t.Logf("%d events, the last of them: %v", len(events), events[max(len(events)-8, 0):])
	}
	require.NoError(t, err)
	require.Equal(t, "done", got)

	pending, most, next := 0, 0, 0
	history := p.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, 1)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		require.Nil(t, event.GetWorkflowTaskFailedEventAttributes(), "%v", event)
		if a := event.GetNexusOperationScheduledEventAttributes(); a != nil {
			pending++
			most = max(most, pending)
			if data := string(a.GetInput().GetData()); strings.HasPrefix(data, `{"n"`) {
				require.Equal(t, fmt.Sprintf(`{"n":%d}`, next), data)
				next++
			}
		}
		if event.GetNexusOperationCompletedEventAttributes() != nil {
			pending--
		}
	}
	require.Equal(t, calls, next)
	require.LessOrEqual(t, most, 30)
	require.Greater(t, most, 25, "they did not run at once")
}

// Big inputs do not go out with one Workflow task, which the server would refuse.
func TestParallelCallsWithBigArguments(t *testing.T) {
	t.Parallel()
	const calls, size = 5, contract.PayloadLimit - contract.PayloadOverhead // exactly what fits
	p := newPlace(t, "big")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("length", "")), tool("length", func(_ context.Context, in json.RawMessage, _ nexus.StartOperationOptions) (json.RawMessage, error) {
			return json.Marshal(len(in))
		})))
		workflowNamed(w, "big", func(ctx workflow.Context, _ any) (n int, err error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p)})
			var futures []*mcpworkflow.Future
			for range calls {
				futures = append(futures, tools.CallAsync(ctx, "length", map[string]string{"x": strings.Repeat("x", size-8)}))
			}
			for _, f := range futures {
				length, err := mcpworkflow.As[int](ctx, f)
				if err != nil {
					return 0, err
				}
				n += length
			}
			return n, nil
		})
	})
	var n int
	require.NoError(t, p.start(t, "big", nil).Get(t.Context(), &n))
	require.Equal(t, calls*size, n)
}

// gate is a tool that never ends by itself.
type gate struct {
	nexus.UnimplementedOperation[any, any]
	name string

	mu        sync.Mutex
	started   int
	cancelled int
}

func (g *gate) Name() string { return g.name }

func (g *gate) Start(context.Context, any, nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[any], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started++
	return &nexus.HandlerStartOperationResultAsync{OperationToken: "gate"}, nil
}

func (g *gate) Cancel(context.Context, string, nexus.CancelOperationOptions) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cancelled++
	return nil
}

func (g *gate) counts() (started, cancelled int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.started, g.cancelled
}

// A call that waits for its turn can be cancelled, and leaves its place to the
// next.
func TestWaitingCallIsCancellable(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "turn")
	hanging := &gate{name: "hang"}
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("hang", ""), toolJSON("echo", "")), hanging, echo("echo")))
		workflowNamed(w, "turn", func(ctx workflow.Context, _ any) ([]string, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p), MaxPending: 2})
			if _, err := tools.List(ctx); err != nil {
				return nil, err
			}
			var seen []string
			first := tools.CallAsync(ctx, "hang", nil, mcpworkflow.WithTimeout(4*time.Second))
			_ = tools.CallAsync(ctx, "hang", nil, mcpworkflow.WithTimeout(100*time.Second))
			scope, cancel := workflow.WithCancel(ctx)
			waiting := tools.CallAsync(scope, "echo", nil)
			last := tools.CallAsync(ctx, "echo", map[string]int{"n": 1})
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return nil, err
			}
			if waiting.IsReady() || last.IsReady() {
				return nil, fmt.Errorf("a call did not wait for its turn")
			}
			cancel()
			_, err := waiting.Get(ctx)
			seen = append(seen, fmt.Sprint(temporal.IsCanceledError(err)))
			r, err := last.Get(ctx)
			if err != nil || !first.IsReady() {
				return nil, fmt.Errorf("the last call did not wait for the first: %w", err)
			}
			return append(seen, string(r.Structured())), nil
		})
	})
	var seen []string
	require.NoError(t, p.start(t, "turn", nil).Get(t.Context(), &seen))
	require.Equal(t, []string{"true", `{"n":1}`}, seen)
}

// What cannot succeed ends with an error that says what to do.
func TestClearErrors(t *testing.T) {
	t.Parallel()
	p, idle := newPlace(t, "errors"), newPlace(t, "idle")
	type attempt struct {
		Services []mcpworkflow.Service
		Tool     string
		Args     json.RawMessage
		Bytes    int // of arguments, in the place of Args
	}
	type ending struct {
		Code, Message string
		Result        string
	}
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("echo", ""), toolJSON("gone", "")), echo("echo")))
		workflowNamed(w, "attempt", func(ctx workflow.Context, a attempt) (ending, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: a.Services, DiscoveryTimeout: 4 * time.Second})
			if a.Bytes > 0 {
				a.Args = json.RawMessage(`{"x":"` + strings.Repeat("x", a.Bytes-8) + `"}`)
			}
			r, err := tools.Call(ctx, a.Tool, a.Args)
			if f, ok := err.(*contract.Failure); ok { //nolint:errorlint // the very error
				return ending{Code: string(f.Code), Message: f.Message}, nil
			}
			return ending{Result: string(r.JSON())}, err
		})
	})
	here, none := only(p), json.RawMessage("{}")
	for name, c := range map[string]struct {
		attempt attempt
		code    contract.Code
		words   []string
	}{
		"no such tool":   {attempt{here, "nope", none, 0}, contract.CodeInvalid, []string{`there is no tool "nope" among the 2`}},
		"no object":      {attempt{here, "echo", json.RawMessage(`[1]`), 0}, contract.CodeInvalid, []string{"arguments: an array, want an object"}},
		"no operation":   {attempt{here, "gone", none, 0}, "", []string{`operation \"gone\" not found`, `"type":"unavailable"`}},
		"too large":      {attempt{here, "echo", none, 2<<20 - 63}, "", []string{"McpPayloadTooLarge", "2097089"}},
		"no services":    {attempt{nil, "echo", none, 0}, contract.CodeInvalid, []string{"Options.Services: there is none"}},
		"no worker":      {attempt{only(idle), "echo", none, 0}, contract.CodeUnavailable, []string{idle.name, "no worker polls"}},
		"no service":     {attempt{[]mcpworkflow.Service{{Name: "other", Endpoint: p.name}}, "echo", none, 0}, contract.CodeUnavailable, []string{"other", "not found"}},
		"wrong endpoint": {attempt{[]mcpworkflow.Service{{Name: p.name, Endpoint: "no-such-endpoint"}}, "echo", none, 0}, contract.CodeUnavailable, []string{"no-such-endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got ending
			require.NoError(t, p.start(t, "attempt", c.attempt).Get(t.Context(), &got))
			require.Equal(t, string(c.code), got.Code, "%+v", got)
			for _, word := range c.words {
				require.Contains(t, got.Message+got.Result, word)
			}
		})
	}
}

// A Worker that goes away after the list does not hold a call for ever.
func TestWorkerGoneAfterTheList(t *testing.T) {
	t.Parallel()
	p, away := newPlace(t, "caller"), newPlace(t, "gone")
	w := worker.New(away.client, away.name, worker.Options{})
	w.RegisterNexusService(service(away.name, lists(toolJSON("echo", "")), echo("echo")))
	require.NoError(t, w.Start())
	p.serve(t, options(), func(w worker.Worker) {
		workflowNamed(w, "gone", func(ctx workflow.Context, _ any) (string, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(away), StartTimeout: 3 * time.Second})
			if _, err := tools.List(ctx); err != nil {
				return "", err
			}
			workflow.GetSignalChannel(ctx, "stopped").Receive(ctx, nil)
			r, err := tools.Call(ctx, "echo", nil)
			return string(r.JSON()), err
		})
	})
	run := p.start(t, "gone", nil)
	await(t, p, run, enumspb.EVENT_TYPE_NEXUS_OPERATION_COMPLETED)
	w.Stop()
	require.NoError(t, p.client.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), "stopped", nil))
	var got string
	require.NoError(t, run.Get(t.Context(), &got))
	for _, want := range []string{`"isError":true`, `"type":"timed_out"`, "schedule-to-start", "No handler took it", away.name, "no worker polls"} {
		require.Contains(t, got, want)
	}
}
