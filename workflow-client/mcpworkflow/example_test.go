package mcpworkflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// inventory is a tool service, for the examples in the process of the Workflow.
func inventory() *nexus.Service {
	return service("inventory",
		lists(toolJSON("count", ""), toolJSON("order", "")),
		tool("count", func(context.Context, json.RawMessage, nexus.StartOperationOptions) (json.RawMessage, error) {
			return json.RawMessage(`{"item":"bolt","left":7}`), nil
		}),
		tool("order", func(context.Context, json.RawMessage, nexus.StartOperationOptions) (json.RawMessage, error) {
			return nil, nexus.NewOperationFailedErrorf("The shop is closed.")
		}),
	)
}

// runExample runs a Workflow with the inventory service.
func runExample(w func(workflow.Context) error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quietLog(slog.LevelError))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()}})
	env.RegisterNexusService(inventory())
	env.RegisterWorkflow(w)
	env.ExecuteWorkflow(w)
	if err := env.GetWorkflowError(); err != nil {
		fmt.Println("error:", err)
	}
}

// A Workflow lists the tools of its services, and calls one.
func ExampleClient_Call() {
	runExample(func(ctx workflow.Context) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "inventory", Prefix: "inv"}}})
		list, err := tools.List(ctx)
		if err != nil {
			return err
		}
		for _, e := range list.Entries {
			fmt.Println(e.Name, "-", e.Tool.Description)
		}
		res, err := tools.Call(ctx, "inv_count", map[string]any{"item": "bolt"})
		if err != nil {
			return err
		}
		fmt.Println(string(res.Structured()))
		return nil
	})
	// Output:
	// inv_count - Does count.
	// inv_order - Does order.
	// {"item":"bolt","left":7}
}

// A result decodes into a Go value; every failure is an error then.
func ExampleCallAs() {
	runExample(func(ctx workflow.Context) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "inventory"}}})
		type stock struct {
			Item string
			Left int
		}
		v, err := mcpworkflow.CallAs[stock](ctx, tools, "count", nil)
		if err != nil {
			return err
		}
		fmt.Println(v.Left, v.Item)

		_, err = mcpworkflow.CallAs[stock](ctx, tools, "order", map[string]int{"n": v.Left})
		var f *contract.Failure
		switch {
		case temporal.IsCanceledError(err):
			return err
		case errors.As(err, &f):
			fmt.Println(f.Code, "-", f.Message)
		}
		return nil
	})
	// Output:
	// 7 bolt
	// failed - The shop is closed.
}

// Calls run side by side; a Selector takes whichever ends first.
func ExampleClient_CallAsync() {
	runExample(func(ctx workflow.Context) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "inventory"}}})
		selector := workflow.NewSelector(ctx)
		done := 0
		for range 3 {
			call := tools.CallAsync(ctx, "count", nil)
			selector.AddFuture(call.Future(), func(workflow.Future) {
				if res, err := call.Get(ctx); err == nil && !res.IsError() {
					done++
				}
			})
		}
		for range 3 {
			selector.Select(ctx)
		}
		fmt.Println(done, "counted")
		return nil
	})
	// Output: 3 counted
}

// The Worker that runs the Workflows has the interceptor.
func ExampleInterceptor() {
	run := func(c client.Client) error {
		w := worker.New(c, "agents", worker.Options{
			Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()},
		})
		return w.Run(worker.InterruptCh())
	}
	_ = run
	fmt.Println("calls say which Workflow makes them")
	// Output: calls say which Workflow makes them
}

// A list goes on to the next run, which does not have to ask again.
func ExampleSnapshot() {
	agent := func(ctx workflow.Context, tools *mcpworkflow.Snapshot) error {
		c := mcpworkflow.New(mcpworkflow.Options{
			Services: []mcpworkflow.Service{{Name: "inventory"}},
			Snapshot: tools, // nil in the first run
		})
		list, err := c.List(ctx)
		if err != nil {
			return err
		}
		return workflow.NewContinueAsNewError(ctx, "agent", list)
	}
	_ = agent
	fmt.Println("listed once")
	// Output: listed once
}
