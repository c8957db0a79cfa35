// A Workflow that calls a tool, of somebody who has the module workflow-client alone.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflowtest"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func count(ctx workflow.Context) (int, error) {
	tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "inventory"}}})
	return mcpworkflow.CallAs[int](ctx, tools, "count", map[string]string{"item": "bolt"})
}

func main() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(count)
	mcpworkflowtest.Register(env, worker.Options{}, mcpworkflowtest.NewService("inventory",
		mcpworkflowtest.Tool{Name: "count", Run: func(json.RawMessage) (any, error) { return 7, nil }}))
	env.ExecuteWorkflow(count)
	var n int
	if err := env.GetWorkflowResult(&n); err != nil {
		log.Fatal(err)
	}
	fmt.Println("counted", n)
}
