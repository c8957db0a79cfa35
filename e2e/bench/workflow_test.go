package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The Workflows look at the real clock, and keep what they saw in memory: they are
// never replayed.

const workflowCalls = 50

// runWorkflow runs a Workflow once on a Worker of its own, and returns its history's
// size in bytes.
func runWorkflow(b *testing.B, f func(ctx workflow.Context) error) int64 {
	b.Helper()
	c := harness.Shared(b).Client(b)
	queue := harness.Unique("bench")
	w := worker.New(c, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()}})
	w.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: "bench"})
	require.NoError(b, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "bench")
	require.NoError(b, err)
	require.NoError(b, run.Get(context.Background(), nil))
	info, err := c.DescribeWorkflow(context.Background(), run.GetID(), run.GetRunID())
	require.NoError(b, err)
	return info.RawResponse.GetWorkflowExecutionInfo().GetHistorySizeBytes()
}

// rawOperation is the operation as the Temporal SDK runs it from a Workflow.
func rawOperation(ctx workflow.Context, service string, startTimeout time.Duration) error {
	var output converter.RawValue
	options := workflow.NexusOperationOptions{ScheduleToStartTimeout: startTimeout}
	return workflow.NewNexusClient(service, service).
		ExecuteOperation(ctx, "echo", resultmap.RawValue(arguments), options).Get(ctx, &output)
}

func toolsOf(service *harness.Service, startTimeout time.Duration) *mcpworkflow.Client {
	return mcpworkflow.New(mcpworkflow.Options{
		Services: []mcpworkflow.Service{{Name: service.Name}}, StartTimeout: startTimeout,
	})
}

const (
	byDefault = 0 // the Workflow client's start timeout of a minute
	unbounded = -1
)

// BenchmarkWorkflowCall is one call at a time from a Workflow: the median through
// the Workflow client and the median of the raw operation.
func BenchmarkWorkflowCall(b *testing.B) {
	service := harness.SharedService(b)
	var direct, through []time.Duration
	for b.Loop() {
		runWorkflow(b, func(ctx workflow.Context) error {
			tools := toolsOf(service, byDefault)
			if _, err := tools.List(ctx); err != nil {
				return err
			}
			for i := range workflowCalls {
				began := time.Now()
				if err := rawOperation(ctx, service.Name, 0); err != nil {
					return err
				}
				between := time.Now()
				if _, err := tools.Call(ctx, "echo", arguments); err != nil {
					return err
				}
				if i >= 5 { // warm
					direct = append(direct, between.Sub(began))
					through = append(through, time.Since(between))
				}
			}
			return nil
		})
	}
	b.ReportMetric(milliseconds(median(direct)), "raw-p50-ms")
	b.ReportMetric(milliseconds(median(through)), "client-p50-ms")
	b.ReportMetric(float64(median(through))/float64(median(direct)), "ratio")
}

// BenchmarkWorkflowHistory is what a call takes of the history, the list of the
// tools not counted.
func BenchmarkWorkflowHistory(b *testing.B) {
	service := harness.SharedService(b)
	bytes := func(calls int, call func(ctx workflow.Context, tools *mcpworkflow.Client) error) int64 {
		return runWorkflow(b, func(ctx workflow.Context) error {
			tools := toolsOf(service, byDefault)
			if _, err := tools.List(ctx); err != nil {
				return err
			}
			for range calls {
				if err := call(ctx, tools); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var empty, direct, through int64
	for b.Loop() {
		empty += bytes(0, nil)
		direct += bytes(workflowCalls, func(ctx workflow.Context, _ *mcpworkflow.Client) error { return rawOperation(ctx, service.Name, 0) })
		through += bytes(workflowCalls, func(ctx workflow.Context, tools *mcpworkflow.Client) error {
			_, err := tools.Call(ctx, "echo", arguments)
			return err
		})
	}
	calls := float64(b.N) * workflowCalls
	b.ReportMetric(float64(direct-empty)/calls, "raw-B/call")
	b.ReportMetric(float64(through-empty)/calls, "client-B/call")
	b.ReportMetric(float64(through-empty)/float64(direct-empty), "ratio")
	b.ReportMetric(float64(empty)/float64(b.N), "list-B")
}

// BenchmarkWorkflowParallelCalls is 200 calls at once: through the Workflow client,
// which lets 30 of them be pending, and by a loop over a semaphore of 30. The
// server keeps a timer for each timeout, which costs it more than anything that the
// client does; so both have the same start timeout, or none.
func BenchmarkWorkflowParallelCalls(b *testing.B) {
	b.Run("bounded", func(b *testing.B) { parallelCalls(b, byDefault, time.Minute) })
	b.Run("unbounded", func(b *testing.B) { parallelCalls(b, unbounded, 0) })
}

func parallelCalls(b *testing.B, clientTimeout, rawTimeout time.Duration) {
	b.Helper()
	const calls = 200
	service := harness.SharedService(b)
	var direct, through, rounds time.Duration
	round := func(all func(ctx workflow.Context, tools *mcpworkflow.Client) error) (took time.Duration) {
		runWorkflow(b, func(ctx workflow.Context) error {
			tools := toolsOf(service, clientTimeout)
			if _, err := tools.List(ctx); err != nil {
				return err
			}
			began := time.Now()
			defer func() { took = time.Since(began) }()
			return all(ctx, tools)
		})
		return took
	}
	raw := func(ctx workflow.Context, _ *mcpworkflow.Client) error {
		slots, group := workflow.NewSemaphore(ctx, 30), workflow.NewWaitGroup(ctx)
		var failed error
		for range calls {
			if err := slots.Acquire(ctx, 1); err != nil {
				return err
			}
			group.Add(1)
			workflow.Go(ctx, func(ctx workflow.Context) {
				defer group.Done()
				defer slots.Release(1)
				if err := rawOperation(ctx, service.Name, rawTimeout); err != nil {
					failed = err
				}
			})
		}
		group.Wait(ctx)
		return failed
	}
	client := func(ctx workflow.Context, tools *mcpworkflow.Client) error {
		futures := make([]*mcpworkflow.Future, calls)
		for i := range futures {
			futures[i] = tools.CallAsync(ctx, "echo", arguments)
		}
		for _, f := range futures {
			if _, err := f.Get(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	round(raw)
	for b.Loop() {
		if rounds++; rounds%2 == 0 {
			direct += round(raw)
			through += round(client)
		} else {
			through += round(client)
			direct += round(raw)
		}
	}
	b.ReportMetric(calls*float64(rounds)/direct.Seconds(), "raw-calls/s")
	b.ReportMetric(calls*float64(rounds)/through.Seconds(), "client-calls/s")
	b.ReportMetric(direct.Seconds()/through.Seconds(), "ratio")
}
