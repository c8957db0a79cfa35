package contracttest_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// checkLimits proves contract.PayloadLimit and contract.PayloadOverhead against
// the server: what CheckSize lets pass, passes.
func checkLimits(t *testing.T, c client.Client) {
	t.Helper()

	fill := func(n int) json.RawMessage {
		return json.RawMessage(`{"x":"` + strings.Repeat("x", n-8) + `"}`)
	}
	const most = contract.PayloadLimit - contract.PayloadOverhead
	const mostOfFailure = contract.PayloadLimit/4*3 - 128<<10 - 64 // the frame of a text result
	service := nexus.NewService("limits")
	operation := func(name string, run func(int) (json.RawMessage, error)) {
		service.MustRegister(nexus.NewSyncOperation(name, func(_ context.Context, in converter.RawValue, _ nexus.StartOperationOptions) (converter.RawValue, error) {
			output, err := run(len(in.Payload().GetData()))
			return resultmap.RawValue(output), err
		}))
	}
	operation("take", func(n int) (json.RawMessage, error) { return json.RawMessage(strconv.Itoa(n)), nil })
	operation("give", func(int) (json.RawMessage, error) { return fill(most), nil })
	errorResult := contract.TextResult(strings.Repeat("\x01", mostOfFailure/6)+strings.Repeat("x", mostOfFailure%6), true)
	operation("fail", func(int) (json.RawMessage, error) {
		return nil, resultmap.OperationError(resultmap.ToolError(errorResult))
	})
	activities := map[string]func(context.Context) (converter.RawValue, error){}
	workflows := map[string]func(workflow.Context) (converter.RawValue, error){}
	background := func(name, what string, options temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]) {
		options.Name = name + what
		operation, err := temporalnexus.NewTemporalOperation(options)
		require.NoError(t, err)
		service.MustRegister(operation)
	}
	for what, run := range map[string]func() (converter.RawValue, error){
		"give": func() (converter.RawValue, error) { return resultmap.RawValue(fill(most)), nil },
		"fail": func() (converter.RawValue, error) {
			return converter.RawValue{}, resultmap.ApplicationError(resultmap.ToolError(errorResult))
		},
	} {
		activities[what] = func(context.Context) (converter.RawValue, error) { return run() }
		workflows[what] = func(workflow.Context) (converter.RawValue, error) { return run() }
		background("activity_", what, temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
			Start: func(ctx context.Context, nc temporalnexus.NexusClient, _ converter.RawValue, o temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
				return temporalnexus.StartUntypedActivity[converter.RawValue](ctx, nc, client.StartActivityOptions{
					ID: o.RequestID, ScheduleToCloseTimeout: 20 * time.Second,
				}, what)
			},
		})
		background("workflow_", what, temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
			Start: func(ctx context.Context, nc temporalnexus.NexusClient, _ converter.RawValue, o temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
				return temporalnexus.StartUntypedWorkflow[converter.RawValue](ctx, nc, client.StartWorkflowOptions{ID: o.RequestID}, what)
			},
		})
	}
	endpoint := serve(t, c, service, func(w worker.Worker) {
		for what := range activities {
			w.RegisterActivityWithOptions(activities[what], activity.RegisterOptions{Name: what})
			w.RegisterWorkflowWithOptions(workflows[what], workflow.RegisterOptions{Name: what})
		}
	})
	call := contracttest.NexusCall(c, endpoint, "limits", 20*time.Second)

	input := fill(most)
	require.NoError(t, contract.CheckSize("arguments", input))
	output, err := call(t.Context(), "take", input)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(most), string(output))

	for _, kind := range []string{"", "activity_", "workflow_"} {
		output, err = call(t.Context(), kind+"give", json.RawMessage("null"))
		require.NoError(t, err, kind)
		require.Len(t, output, most, kind)

		_, err = call(t.Context(), kind+"fail", json.RawMessage("null"))
		f := resultmap.FromError(err)
		require.Equal(t, contract.CodeToolError, f.Code, "%s %.200s", kind, f.Message)
		require.Len(t, f.Details, len(errorResult.JSON()), kind)
	}
}
