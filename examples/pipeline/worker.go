package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

const taskQueue = "pipeline"

// run starts a Worker and one Workflow on it, and prints what came of it.
func run(calls int, out io.Writer) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	c, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()},
	})
	w.RegisterWorkflow(Pipeline)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	names := make([]string, calls)
	for i := range names[:max(calls-1, 0)] { // the last has no name, which the tool refuses
		names[i] = fmt.Sprintf("guest %d", i+1)
	}
	workflow, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: taskQueue}, Pipeline, names)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the Workflow %s makes %d calls\n", workflow.GetID(), calls)
	var report Report
	if err := workflow.Get(context.Background(), &report); err != nil {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, string(text))
	return err
}
