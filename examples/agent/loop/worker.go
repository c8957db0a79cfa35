package loop

import (
	"fmt"
	"io"

	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

// TaskQueue is that of the Worker.
const TaskQueue = "agent"

// NewWorker returns a Worker that runs the Workflow and asks the model.
func NewWorker(c client.Client, taskQueue string, model Model) worker.Worker {
	w := worker.New(c, taskQueue, worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()},
	})
	w.RegisterWorkflow(Agent)
	w.RegisterActivity(&Activities{Model: model})
	return w
}

// work runs a Worker until SIGINT or SIGTERM.
func work(c client.Client, model Model, out io.Writer) error {
	w := NewWorker(c, TaskQueue, model)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Fprintln(out, "agent is ready; Ctrl-C stops it")
	<-worker.InterruptCh()
	return nil
}
