package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The tools of the tool service, by what runs behind them.
const (
	toolSync     = "sync_tool"
	toolWorkflow = "workflow_tool"
	toolActivity = "activity_tool"
)

// heartbeat is after how long a silent Worker counts as dead, for the tools of the
// service and for those behind the proxy.
const heartbeat = 4 * time.Second

// work is the arguments of a tool: it writes its key into the journal, takes its
// time, and returns the value.
type work struct {
	Key    string          `json:"key"`
	Millis int             `json:"millis"`
	Value  json.RawMessage `json:"value"`
}

func (w work) time() time.Duration { return time.Duration(w.Millis) * time.Millisecond }

// journal is the file of the executions: a line for each, written by one write
// before the work, so that it is there whatever becomes of the writer.
type journal string

func (j journal) write(key string) error {
	f, err := os.OpenFile(string(j), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(key + "\n")
	return err
}

// serveTools is a Worker of the tool SDK until a signal. Where is ADDRESS,NAME of
// the service and its task queue,JOURNAL.
func serveTools(where string) error {
	parts := strings.SplitN(where, ",", 3)
	address, name, ledger := parts[0], parts[1], journal(parts[2])
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(log)})
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, name, worker.Options{
		StickyScheduleToStartTimeout: 2 * time.Second, // for the Workflows of one that died
		WorkerStopTimeout:            5 * time.Second, // activities under way may end
	})
	service := mcptool.NewService(name, mcptool.ServiceOptions{Logger: log})
	addTools(service, ledger)
	if err := service.Register(w); err != nil {
		return err
	}
	w.RegisterWorkflowWithOptions(ledger.workflow, workflow.RegisterOptions{Name: toolWorkflow})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Fprintln(os.Stdout, "ready")
	<-worker.InterruptCh()
	return nil
}

func addTools(s *mcptool.Service, ledger journal) {
	run := func(ctx context.Context, in work) (json.RawMessage, error) {
		if err := ledger.write(in.Key); err != nil {
			return nil, err
		}
		select {
		case <-time.After(in.time()):
			return in.Value, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	mcptool.Add(s, nexus.NewSyncOperation(toolSync, func(ctx context.Context, in work, _ nexus.StartOperationOptions) (json.RawMessage, error) {
		return run(ctx, in)
	}), mcptool.Tool{
		Description: "Works in the handler of the operation.",
		Annotations: mcptool.Annotations{IdempotentHint: true}, // Temporal delivers it again when its Worker dies
	})
	mcptool.Add(s, mcptool.NewActivityOperation(toolActivity, run, mcptool.ActivityOptions{HeartbeatTimeout: heartbeat}),
		mcptool.Tool{Description: "Works in an activity, at most once."})
	mcptool.Add(s, temporalnexus.NewWorkflowRunOperation(toolWorkflow, ledger.workflow,
		func(_ context.Context, _ work, options nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: mcptool.WorkflowID(toolWorkflow, options.RequestID)}, nil
		}), mcptool.Tool{Description: "Works in a Workflow."})
}

// workflow writes the key, sleeps on a durable timer, and returns the value.
func (j journal) workflow(ctx workflow.Context, in work) (json.RawMessage, error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: time.Minute})
	if err := workflow.ExecuteLocalActivity(local, func(context.Context) error { return j.write(in.Key) }).Get(ctx, nil); err != nil {
		return nil, err
	}
	return in.Value, workflow.Sleep(ctx, in.time())
}
