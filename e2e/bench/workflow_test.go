package bench_test

import (
	"context"
	"slices"
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
func runWorkflow(b *testing.B, temporal *harness.Temporal, f func(ctx workflow.Context) error) int64 {
	b.Helper()
	c := temporal.Client(b)
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

// BenchmarkWorkflowCall is one call at a time from a Workflow, which is a round: the
// raw operation and the Workflow client take turns.
func BenchmarkWorkflowCall(b *testing.B) {
	temporal := server(b)
	service := toolService(b, temporal)
	raw, client := &side{name: "raw"}, &side{name: "client"}
	calls := brief(workflowCalls, 10)
	for b.Loop() {
		var r, c round
		timed := func(r *round, warm bool, call func() error) error {
			began := time.Now()
			err := call()
			if took := time.Since(began); warm {
				r.took += took
				r.calls = append(r.calls, took)
			}
			return err
		}
		runWorkflow(b, temporal, func(ctx workflow.Context) error {
			tools := toolsOf(service, byDefault)
			if _, err := tools.List(ctx); err != nil {
				return err
			}
			for i := range calls {
				warm := i >= 5
				if err := timed(&r, warm, func() error { return rawOperation(ctx, service.Name, 0) }); err != nil {
					return err
				}
				if err := timed(&c, warm, func() error {
					_, err := tools.Call(ctx, "echo", arguments)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		})
		slices.Sort(r.calls)
		slices.Sort(c.calls)
		raw.rounds, client.rounds = append(raw.rounds, r), append(client.rounds, c)
	}
	raw.report(b)
	client.report(b)
	relate(b, "ratio", byLatency, client, raw)
}

// callsOf is a Workflow that lists the tools and makes calls, one after the other.
func callsOf(service *harness.Service, calls int, call func(ctx workflow.Context, tools *mcpworkflow.Client) error) func(ctx workflow.Context) error {
	return func(ctx workflow.Context) error {
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
	}
}

func rawEcho(service *harness.Service) func(workflow.Context, *mcpworkflow.Client) error {
	return func(ctx workflow.Context, _ *mcpworkflow.Client) error { return rawOperation(ctx, service.Name, 0) }
}

func echoByClient(ctx workflow.Context, tools *mcpworkflow.Client) error {
	_, err := tools.Call(ctx, "echo", arguments)
	return err
}

// BenchmarkWorkflowHistory is what a call takes of the history, the list of the
// tools not counted.
func BenchmarkWorkflowHistory(b *testing.B) {
	temporal := server(b)
	service := toolService(b, temporal)
	calls := brief(workflowCalls, 1)
	var empty, direct, through int64
	for b.Loop() {
		empty += runWorkflow(b, temporal, callsOf(service, 0, nil))
		direct += runWorkflow(b, temporal, callsOf(service, calls, rawEcho(service)))
		through += runWorkflow(b, temporal, callsOf(service, calls, echoByClient))
	}
	all := float64(b.N * calls)
	b.ReportMetric(float64(direct-empty)/all, "raw-B/call")
	b.ReportMetric(float64(through-empty)/all, "client-B/call")
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
	calls := brief(200, 40)
	temporal := server(b)
	service := toolService(b, temporal)
	var direct, through []float64 // calls per second, a round each
	round := func(all func(ctx workflow.Context, tools *mcpworkflow.Client) error) (speed float64) {
		runWorkflow(b, temporal, func(ctx workflow.Context) error {
			tools := toolsOf(service, clientTimeout)
			if _, err := tools.List(ctx); err != nil {
				return err
			}
			began := time.Now()
			defer func() { speed = float64(calls) / time.Since(began).Seconds() }()
			return all(ctx, tools)
		})
		return speed
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
	var ratios []float64
	for b.Loop() {
		var r, c float64
		if len(ratios)%2 == 0 {
			r, c = round(raw), round(client)
		} else {
			c, r = round(client), round(raw)
		}
		direct, through, ratios = append(direct, r), append(through, c), append(ratios, c/r)
	}
	slices.Sort(direct)
	slices.Sort(through)
	b.ReportMetric(middle(direct), "raw-calls/s")
	b.ReportMetric(middle(through), "client-calls/s")
	reportRatios(b, "ratio", ratios)
}
