package mcpworkflowtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflowtest"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// restock is a Workflow under test: it orders what is missing, and says so if the
// order's outcome is unknown.
func restock(ctx workflow.Context, item string) (string, error) {
	tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "inventory"}}})
	left, err := mcpworkflow.CallAs[int](ctx, tools, "count", map[string]string{"item": item})
	if err != nil {
		return "", err
	}
	_, err = mcpworkflow.CallAs[any](ctx, tools, "order", map[string]any{"item": item, "n": 10 - left}, mcpworkflow.WithTimeout(time.Hour))
	var f *contract.Failure
	switch {
	case errors.As(err, &f) && f.Code == contract.CodeOutcomeUnknown:
		return "ask the shop", nil
	case errors.As(err, &f) && f.Code == contract.CodeTimedOut:
		return "no answer", nil
	case err != nil:
		return "", err
	}
	return "ordered", nil
}

func newEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(restock)
	return env
}

func inventory() *mcpworkflowtest.Service {
	return mcpworkflowtest.NewService("inventory",
		mcpworkflowtest.Tool{Name: "count", Run: func(json.RawMessage) (any, error) { return 7, nil }},
		mcpworkflowtest.Tool{Name: "order"},
	)
}

// A fake is a list of tools with Go functions; the log has the calls in order.
func ExampleRegister() {
	env := newEnvironment()
	log := mcpworkflowtest.Register(env, worker.Options{}, inventory())
	env.ExecuteWorkflow(restock, "bolt")

	var got string
	fmt.Println(env.GetWorkflowResult(&got), got)
	for _, c := range log.Calls() {
		fmt.Println(c.Name, string(c.Input))
	}
	// Output:
	// <nil> ordered
	// count {"item":"bolt"}
	// order {"item":"bolt","n":3}
}

// A script makes calls fail; time skips, so an hour's timeout takes none.
func ExampleService_Script() {
	for _, step := range []mcpworkflowtest.Step{
		mcpworkflowtest.Return(nil),
		mcpworkflowtest.Fail(&contract.Failure{Code: contract.CodeOutcomeUnknown, Message: "The connection broke."}),
		mcpworkflowtest.Hang(),
	} {
		env := newEnvironment()
		mcpworkflowtest.Register(env, worker.Options{}, inventory().Script("order", step))
		env.ExecuteWorkflow(restock, "bolt")
		var got string
		fmt.Println(env.GetWorkflowResult(&got), got)
	}
	// Output:
	// <nil> ordered
	// <nil> ask the shop
	// <nil> no answer
}
