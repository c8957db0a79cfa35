package mcptool_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

type nameInput struct {
	Name string `json:"name" jsonschema:"who"`
}

type greeting struct {
	Text string `json:"text"`
}

func greet(_ context.Context, in nameInput) (greeting, error) {
	return greeting{"Hello, " + in.Name + "!"}, nil
}

// report is a Workflow whose behaviour its input names.
func report(ctx workflow.Context, in nameInput) (greeting, error) {
	switch in.Name {
	case "forever":
		return greeting{}, workflow.Await(ctx, func() bool { return false })
	case "toolerror":
		return greeting{}, mcptool.ToolError("no such name")
	case "huge":
		return mcptool.CheckResult(greeting{strings.Repeat("x", contract.PayloadLimit)})
	case "error":
		return greeting{}, sdktemporal.NewApplicationError("it broke", "Broken", "a detail")
	}
	return greeting{"Report on " + in.Name}, workflow.Sleep(ctx, time.Millisecond)
}

// box is a Workflow that collects what signals and updates bring.
func box(ctx workflow.Context) error {
	var text string
	err := workflow.SetUpdateHandler(ctx, "add", func(ctx workflow.Context, in nameInput) (greeting, error) {
		text += in.Name
		return greeting{text}, workflow.Sleep(ctx, time.Millisecond)
	})
	if err != nil {
		return err
	}
	for {
		var in nameInput
		workflow.GetSignalChannel(ctx, "add").Receive(ctx, &in)
		text += in.Name
	}
}

func reportOperation(name string) nexus.Operation[nameInput, greeting] {
	return temporalnexus.NewWorkflowRunOperation(name, report,
		func(_ context.Context, _ nameInput, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: mcptool.WorkflowID(name, o.RequestID)}, nil
		})
}

func signalOperation(workflowID string) nexus.Operation[nameInput, nexus.NoValue] {
	return temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[nameInput, nexus.NoValue]{
		Name: "signal",
		Start: func(ctx context.Context, nc temporalnexus.NexusClient, in nameInput, _ temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[nexus.NoValue], error) {
			err := nc.GetWorkflowClient().SignalWorkflow(ctx, workflowID, "", "add", in)
			return temporalnexus.NewSyncResult[nexus.NoValue](nil), err
		},
	})
}

func updateOperation(workflowID string) nexus.Operation[nameInput, greeting] {
	return temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[nameInput, greeting]{
		Name: "update",
		Start: func(ctx context.Context, nc temporalnexus.NexusClient, in nameInput, _ temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[greeting], error) {
			return temporalnexus.StartUpdateWorkflow[greeting](ctx, nc, client.UpdateWorkflowOptions{
				WorkflowID: workflowID, UpdateName: "add", Args: []any{in}, WaitForStage: client.WorkflowUpdateStageAccepted,
			})
		},
	})
}

func TestEveryKindOfOperation(t *testing.T) {
	t.Parallel()

	c := temporal(t)
	endpoint := newEndpoint(t)
	boxID := "box-" + endpoint
	s := mcptool.NewService("kinds", mcptool.ServiceOptions{Instructions: "Be <kind>.", ServerInfo: mcptool.Implementation{Version: "1.2.3"}})
	mcptool.Add(s, sync("greet", greet), readOnly("Greet & <smile>."))
	mcptool.Add(s, reportOperation("report"), mcptool.Tool{Description: "Write a report.", ScheduleToCloseTimeout: time.Minute})
	mcptool.Add(s, mcptool.NewActivityOperation("act", greet, mcptool.ActivityOptions{}), mcptool.Tool{Description: "Greet."})
	mcptool.Add(s, signalOperation(boxID), mcptool.Tool{Description: "Send a signal."})
	mcptool.Add(s, updateOperation(boxID), mcptool.Tool{Description: "Send an update.", Kind: contract.KindUpdate})
	s.AddOperation(nexus.NewSyncOperation("plain", func(_ context.Context, in string, _ nexus.StartOperationOptions) (string, error) {
		return in, nil
	}))
	w := worker.New(c, endpoint, worker.Options{})
	w.RegisterWorkflow(report)
	w.RegisterWorkflow(box)
	require.NoError(t, s.Register(w))
	require.Empty(t, s.Warnings())
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: boxID, TaskQueue: endpoint}, box)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.TerminateWorkflow(context.WithoutCancel(t.Context()), boxID, "", "the test is over") })
	calls := caller{t: t, endpoint: endpoint, service: "kinds"}

	require.Equal(t, `{"text":"Hello, <b>!"}`, calls.ok("greet", `{"name":"<b>"}`))
	require.JSONEq(t, `{"text":"Report on x"}`, calls.ok("report", `{"name":"x"}`))
	require.Equal(t, `{"text":"Hello, <b>!"}`, calls.ok("act", `{"name":"<b>"}`))
	require.Equal(t, `null`, calls.ok("signal", `{"name":"a"}`))
	require.JSONEq(t, `{"text":"ab"}`, calls.ok("update", `{"name":"b"}`))
	require.Equal(t, `"x"`, calls.ok("plain", `"x"`))

	for _, tool := range []string{"greet", "report", "act", "signal", "update"} {
		require.Equal(t, "arguments.name: required: missing", calls.answers(tool, `{}`), tool)
		require.Equal(t, "arguments.name: required: missing", calls.answers(tool, `null`), tool)
		require.Contains(t, calls.answers(tool, `[]`), "arguments: an array, want an object", tool)
	}

	m := calls.manifest()
	require.Equal(t, contract.Version, m.Version)
	require.Equal(t, "Be <kind>.", m.Instructions)
	require.JSONEq(t, `{"name":"kinds","version":"1.2.3"}`, string(m.ServerInfo))
	kinds := map[string]contract.Kind{}
	for _, tool := range m.Tools {
		kinds[tool.Name] = tool.Kind
		require.Equal(t, contract.EncodingValue, tool.Encoding)
	}
	require.Equal(t, map[string]contract.Kind{
		"greet": contract.KindSync, "report": contract.KindWorkflow, "act": contract.KindActivity,
		"signal": "", "update": contract.KindUpdate,
	}, kinds)
	require.Equal(t, `{"name":"greet","description":"Greet & <smile>.",`+
		`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"who"}},"required":["name"],"additionalProperties":false},`+
		`"outputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false},`+
		`"annotations":{"readOnlyHint":true},"_meta":{"io.temporal/kind":"sync"}}`, string(m.Tools[0].Raw))
	require.Equal(t, time.Minute, m.Tools[1].ScheduleToCloseTimeout)
}

func TestTypedCallersWork(t *testing.T) {
	t.Parallel()

	op := sync("greet", greet)
	s := mcptool.NewService("typed")
	mcptool.Add(s, op, readOnly("Greet."))
	c := serve(t, s, "typed")
	nc, err := temporal(t).NewNexusClient(client.NexusClientOptions{Endpoint: c.endpoint, Service: c.service})
	require.NoError(t, err)
	handle, err := nc.ExecuteOperation(t.Context(), op, nameInput{"you"}, client.StartNexusOperationOptions{
		ID: "typed-" + c.endpoint, ScheduleToCloseTimeout: callTimeout,
	})
	require.NoError(t, err)
	var out greeting
	require.NoError(t, handle.Get(t.Context(), &out))
	require.Equal(t, greeting{"Hello, you!"}, out)
}

func TestFailuresOfAWorkflow(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("reports")
	mcptool.Add(s, reportOperation("report"), mcptool.Tool{Description: "Write a report."})
	c := serve(t, s, "reports", func(w worker.Worker) { w.RegisterWorkflow(report) })

	require.Equal(t, "no such name", c.answers("report", `{"name":"toolerror"}`))
	f := c.fails("report", `{"name":"huge"}`)
	require.Equal(t, contract.CodePayloadTooLarge, f.Code)
	require.Contains(t, f.Message, "The result would take 2097163 bytes")
	f = c.fails("report", `{"name":"error"}`)
	require.Equal(t, contract.CodeFailed, f.Code)
	require.Equal(t, "it broke", f.Message)
	require.Equal(t, "Broken", f.Type)
}

func TestAWorkflowReturnsAResult(t *testing.T) {
	t.Parallel()

	draw := func(_ workflow.Context, in nameInput) (mcptool.Result, error) {
		if in.Name == "error" {
			return mcptool.Result{}, mcptool.Text("cannot draw").WithStructured(1).Err()
		}
		return mcptool.CheckResult(mcptool.Text("<" + in.Name + ">").WithStructured(json.RawMessage("9007199254740993")))
	}
	s := mcptool.NewService("draw")
	mcptool.Add(s, temporalnexus.NewWorkflowRunOperation("draw", draw,
		func(_ context.Context, _ nameInput, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: mcptool.WorkflowID("draw", o.RequestID)}, nil
		}), mcptool.Tool{Description: "Draw."})
	c := serve(t, s, "draw", func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(draw, workflow.RegisterOptions{})
	})
	require.JSONEq(t, `{"content":[{"type":"text","text":"<x>"}],"structuredContent":9007199254740993}`, c.ok("draw", `{"arguments":{"name":"x"}}`))
	f := c.fails("draw", `{"arguments":{"name":"error"}}`)
	require.Equal(t, `{"content":[{"type":"text","text":"cannot draw"}],"structuredContent":1,"isError":true}`, string(f.Result().JSON()))
}

func TestCancelReachesTheWorkflow(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("reports")
	mcptool.Add(s, reportOperation("report"), mcptool.Tool{Description: "Write a report."})
	c := serve(t, s, "reports", func(w worker.Worker) { w.RegisterWorkflow(report) })
	handle := c.start("report", `{"name":"forever"}`, callTimeout)
	cancelWhenStarted(t, handle)
	_, err := c.wait(handle)
	require.Equal(t, contract.CodeCanceled, resultmap.FromError(err).Code, "%v", err)
}

// cancelWhenStarted cancels an operation that has a token.
func cancelWhenStarted(t *testing.T, handle client.NexusOperationHandle) {
	t.Helper()
	require.Eventually(t, func() bool {
		d, err := handle.Describe(t.Context(), client.DescribeNexusOperationOptions{})
		return err == nil && d.OperationToken != ""
	}, 10*time.Second, 20*time.Millisecond)
	require.NoError(t, handle.Cancel(t.Context(), client.CancelNexusOperationOptions{}))
}

// lossy is an operation whose first answer does not arrive: Temporal delivers its
// start again. It shows too that operations of an author's own type work.
type lossy[I, O any] struct {
	nexus.UnimplementedOperation[I, O]

	inner  nexus.Operation[I, O]
	starts atomic.Int64
}

func (l *lossy[I, O]) Name() string { return l.inner.Name() }

func (l *lossy[I, O]) Start(ctx context.Context, in I, o nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[O], error) {
	n := l.starts.Add(1)
	result, err := l.inner.Start(ctx, in, o)
	if n == 1 && err == nil {
		return nil, mcptool.Retry(errBoom)
	}
	return result, err
}

func (l *lossy[I, O]) Cancel(ctx context.Context, token string, o nexus.CancelOperationOptions) error {
	return l.inner.Cancel(ctx, token, o)
}

func TestARedeliveredStartAttachesToTheWorkflow(t *testing.T) {
	t.Parallel()

	op := &lossy[nameInput, greeting]{inner: reportOperation("report")}
	s := mcptool.NewService("reports")
	mcptool.Add(s, op, mcptool.Tool{Description: "Write a report.", Kind: contract.KindWorkflow})
	c := serve(t, s, "reports", func(w worker.Worker) { w.RegisterWorkflow(report) })
	handle := c.start("report", `{"name":"forever"}`, callTimeout)
	require.Eventually(t, func() bool { return op.starts.Load() == 2 }, 10*time.Second, 20*time.Millisecond)
	cancelWhenStarted(t, handle)
	_, err := c.wait(handle)
	require.Equal(t, contract.CodeCanceled, resultmap.FromError(err).Code, "%v", err)
	require.EqualValues(t, 2, op.starts.Load())
	require.Eventually(t, func() bool { // one Workflow, though it was started twice
		n, err := temporal(t).CountWorkflow(t.Context(), countWorkflows(c.endpoint))
		return err == nil && n.GetCount() == 1
	}, 10*time.Second, 50*time.Millisecond)
}

func TestARedeliveredStartFindsTheWorkflowThatClosed(t *testing.T) {
	t.Parallel()

	op := newTwice(reportOperation("report"))
	s := mcptool.NewService("reports")
	mcptool.Add(s, op, mcptool.Tool{Description: "Write a report.", Kind: contract.KindWorkflow})
	c := serve(t, s, "reports", func(w worker.Worker) { w.RegisterWorkflow(report) })
	op.between = func(ctx context.Context) error {
		return until(ctx, func() bool {
			query := countWorkflows(c.endpoint)
			query.Query += " AND ExecutionStatus='Completed'"
			n, err := temporal(t).CountWorkflow(t.Context(), query)
			return err == nil && n.GetCount() == 1
		})
	}
	require.JSONEq(t, `{"text":"Report on x"}`, c.ok("report", `{"name":"x"}`))
	require.NoError(t, <-op.second)
	n, err := temporal(t).CountWorkflow(t.Context(), countWorkflows(c.endpoint))
	require.NoError(t, err)
	require.EqualValues(t, 1, n.GetCount())
}
