package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflowtest"
	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

func environment(t *testing.T, script ...mcpworkflowtest.Step) (*testsuite.TestWorkflowEnvironment, *mcpworkflowtest.Log) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(Pipeline)
	tools := mcpworkflowtest.NewService("lucky-number", mcpworkflowtest.Tool{
		Name: "lucky_number",
		Run: func(input json.RawMessage) (any, error) {
			var in struct{ Name string }
			err := json.Unmarshal(input, &in)
			return luckyNumber{Name: in.Name, Number: len(in.Name)}, err
		},
	}).Script("lucky_number", script...)
	return env, mcpworkflowtest.Register(env, worker.Options{}, tools)
}

func guests(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("guest %d", i))
	}
	return names
}

func TestHundredCalls(t *testing.T) {
	t.Parallel()
	env, log := environment(t)
	env.ExecuteWorkflow(Pipeline, append(guests(99), "the luckiest of all"))
	var report Report
	require.NoError(t, env.GetWorkflowResult(&report))
	require.Equal(t, Report{Done: 100, Luckiest: "the luckiest of all", Number: 19}, report)
	require.Len(t, log.Calls(), 100)
}

func TestErrorsByClass(t *testing.T) {
	t.Parallel()
	fail := func(code contract.Code) mcpworkflowtest.Step {
		return mcpworkflowtest.Fail(&contract.Failure{Code: code, Message: "no"})
	}
	env, log := environment(t,
		mcpworkflowtest.Fail(resultmap.ToolError(contract.TextResult("You have no luck.", true))),
		fail(contract.CodeOutcomeUnknown), fail(contract.CodeUnavailable), mcpworkflowtest.Hang(), fail(contract.CodeTimedOut),
		mcpworkflowtest.Return(luckyNumber{Name: "guest 5", Number: 7}),
		// The two that timed out, again: one of them for the last time.
		fail(contract.CodeTimedOut),
	)
	env.ExecuteWorkflow(Pipeline, guests(6))
	var report Report
	require.NoError(t, env.GetWorkflowResult(&report))
	require.Equal(t, map[string]string{"guest 0": "You have no luck."}, report.Refused)
	require.Equal(t, []string{"guest 1"}, report.Unknown)
	require.Equal(t, []string{"guest 2"}, report.Failed["unavailable"])
	require.Len(t, report.Failed["timed_out"], 1)
	require.Equal(t, 2, report.Done)
	require.Len(t, log.Calls(), 8)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	env, _ := environment(t, mcpworkflowtest.Hang())
	env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	env.ExecuteWorkflow(Pipeline, guests(1))
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
}
