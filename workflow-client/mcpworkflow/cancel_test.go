package mcpworkflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// slow is a tool that takes a minute, and can be cancelled.
func slow(name string) nexus.RegisterableOperation {
	return temporalnexus.NewWorkflowRunOperation(name, slowWorkflow,
		func(_ context.Context, _ any, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: "slow-" + o.RequestID}, nil
		})
}

func slowWorkflow(ctx workflow.Context, _ any) (string, error) {
	return "slept", workflow.Sleep(ctx, time.Minute)
}

// A cancelled Workflow is a cancelled Workflow: its call is cancelled, and its
// error is no text for a model.
func TestWorkflowCancellation(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "cancel")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("slow", "")), slow("slow")))
		w.RegisterWorkflow(slowWorkflow)
		workflowNamed(w, "cancel", func(ctx workflow.Context, _ any) error {
			r, err := mcpworkflow.New(mcpworkflow.Options{Services: only(p)}).Call(ctx, "slow", nil)
			if err == nil {
				return fmt.Errorf("it got %s", r.JSON())
			}
			return err
		})
	})
	run := p.start(t, "cancel", nil)
	await(t, p, run, enumspb.EVENT_TYPE_NEXUS_OPERATION_STARTED)
	require.NoError(t, p.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	err := run.Get(t.Context(), nil)
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	closed, err := p.client.DescribeWorkflow(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, closed.Status)
	await(t, p, run, enumspb.EVENT_TYPE_NEXUS_OPERATION_CANCELED)
}

// await waits until the history of a run has an event.
func await(t *testing.T, p place, run client.WorkflowRun, typ enumspb.EventType) {
	t.Helper()
	history := p.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if event.GetEventType() == typ {
			return
		}
	}
	require.Fail(t, "no such event", typ.String())
}

// A call that is not waited for counts as pending until it ends: cancelled where
// the service was asked to cancel it, or by its timeout.
func TestCancellationWithoutTheWait(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "nowait")
	hanging := &gate{name: "hang"}
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("hang", ""), toolJSON("echo", "")), hanging, echo("echo")))
		workflowNamed(w, "nowait", func(ctx workflow.Context, how mcpworkflow.Cancellation) (took time.Duration, err error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p), MaxPending: 1})
			scope, cancel := workflow.WithCancel(ctx)
			f := tools.CallAsync(scope, "hang", nil, mcpworkflow.WithTimeout(5*time.Second), mcpworkflow.WithCancellation(how))
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			began := workflow.Now(ctx)
			cancel()
			if _, err := f.Get(ctx); !temporal.IsCanceledError(err) {
				return 0, fmt.Errorf("it ended with %w", err)
			}
			if took := workflow.Now(ctx).Sub(began); took > 0 {
				return 0, fmt.Errorf("it was waited for: %v", took)
			}
			_, err = tools.Call(ctx, "echo", nil)
			return workflow.Now(ctx).Sub(began), err
		})
	})
	for _, how := range []mcpworkflow.Cancellation{mcpworkflow.TryCancel, mcpworkflow.Abandon} {
		_, before := hanging.counts()
		var took time.Duration
		require.NoError(t, p.start(t, "nowait", how).Get(t.Context(), &took))
		require.Greater(t, took, 2*time.Second, "it did not wait for its turn")
		_, after := hanging.counts()
		require.Equal(t, how == mcpworkflow.TryCancel, after > before)
	}
}
