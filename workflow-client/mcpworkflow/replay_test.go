package mcpworkflow_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The histories in testdata are those of Workflows that have run: whatever this
// package becomes, they must replay, or it breaks Workflows that are under way.
// A change that breaks one needs workflow.GetVersion. Record those of new
// Workflows, and only those, with
//
//	TEMPORAL_CLI=… go test ./workflow-client/mcpworkflow -run TestReplay -record
var record = flag.Bool("record", false, "record the histories that testdata lacks, by a Temporal dev server")

const recorded = "recorded" // service, endpoint and task queue of the recorded Workflows

func recordedServices() []mcpworkflow.Service { return []mcpworkflow.Service{{Name: recorded}} }

// recordedWorkflows are what is recorded, by the name of the file.
var recordedWorkflows = map[string]func(ctx workflow.Context, in any) error{
	"calls": func(ctx workflow.Context, _ any) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: recordedServices()})
		list, err := tools.List(ctx)
		if err != nil {
			return err
		}
		for _, e := range list.Entries {
			if _, err := tools.Call(ctx, e.Name, nil, mcpworkflow.WithIdempotencyKey(e.Name)); err != nil {
				return err
			}
		}
		if _, err := tools.Request(ctx, "", "resources/list", nil); err == nil {
			return errors.New("there are resources")
		}
		_, err = tools.Refresh(ctx)
		return err
	},
	"parallel": func(ctx workflow.Context, _ any) error {
		var futures []*mcpworkflow.Future
		for range 2 {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: recordedServices()})
			for i := range 40 {
				futures = append(futures, tools.CallAsync(ctx, "echo", map[string]int{"n": i}))
			}
		}
		own := workflow.NewNexusClient(recorded, recorded).ExecuteOperation(ctx, "echo", 1, workflow.NexusOperationOptions{})
		selector := workflow.NewSelector(ctx)
		for _, f := range futures {
			selector.AddFuture(f.Future(), func(workflow.Future) {})
		}
		for range futures {
			selector.Select(ctx)
		}
		return own.Get(ctx, nil)
	},
	"cancelled": func(ctx workflow.Context, _ any) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: recordedServices(), MaxPending: 2})
		scope, cancel := workflow.WithCancel(ctx)
		futures := []*mcpworkflow.Future{
			tools.CallAsync(scope, "slow", nil, mcpworkflow.WithCancellation(mcpworkflow.TryCancel)),
			tools.CallAsync(scope, "slow", nil),
			tools.CallAsync(scope, "echo", nil), // waits for its turn
		}
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return err
		}
		cancel()
		for _, f := range futures {
			if r, err := f.Get(ctx); err == nil {
				return fmt.Errorf("a call was not cancelled: %s", r.JSON())
			}
		}
		_, err := tools.Call(ctx, "fail", nil)
		return err
	},
	"carried": func(ctx workflow.Context, _ any) error {
		old, err := mcpworkflow.New(mcpworkflow.Options{Services: recordedServices()}).List(ctx)
		if err != nil {
			return err
		}
		for _, d := range []mcpworkflow.Drift{mcpworkflow.DriftUnchecked, mcpworkflow.DriftWarn, mcpworkflow.DriftFail} {
			if _, err := mcpworkflow.New(mcpworkflow.Options{Snapshot: old, Drift: d}).Call(ctx, "echo", nil); err != nil {
				return err
			}
		}
		return nil
	},
	"missing": func(ctx workflow.Context, _ any) error {
		_, err := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "x", Endpoint: "no-such-endpoint"}}}).Call(ctx, "x", nil)
		if f, ok := errors.AsType[*contract.Failure](err); !ok || f.Code != contract.CodeUnavailable {
			return fmt.Errorf("it ended with %w", err)
		}
		return nil
	},
}

func TestReplay(t *testing.T) {
	t.Parallel()
	if *record {
		recordHistories(t)
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), len(recordedWorkflows))
	for _, file := range files {
		for _, with := range []bool{true, false} {
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: interceptors(with)})
			require.NoError(t, err)
			for name, w := range recordedWorkflows {
				replayer.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
			}
			err = replayer.ReplayWorkflowHistoryFromJSONFile(quiet(), file)
			if !with && filepath.Base(file) == "calls.json" {
				require.Error(t, err, "it has headers, and must not replay without the interceptor")
				continue
			}
			require.NoError(t, err, "%s, interceptor: %v", file, with)
		}
	}
}

func interceptors(with bool) []interceptor.WorkerInterceptor {
	if !with {
		return nil
	}
	return options().Interceptors
}

// TestReplayNoticesChanges: another order of calls is found out.
func TestReplayNoticesChanges(t *testing.T) {
	t.Parallel()
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ any) error {
		tools := mcpworkflow.New(mcpworkflow.Options{Services: recordedServices()})
		_, err := tools.Call(ctx, "fail", nil)
		return err
	}, workflow.RegisterOptions{Name: "parallel"})
	require.Error(t, replayer.ReplayWorkflowHistoryFromJSONFile(quiet(), "testdata/parallel.json"))
}

func recordHistories(t *testing.T) {
	t.Helper()
	p := newNamedPlace(t, temporalServer(t), recorded)
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(recorded,
			lists(toolJSON("slow", `,"_meta":{"io.temporal/kind":"workflow","io.temporal/scheduleToCloseTimeoutMs":50000}`), toolJSON("echo", ""), toolJSON("fail", "")),
			echo("echo"), slow("slow"), nexus.NewSyncOperation("fail", nexusFailure)))
		w.RegisterWorkflow(slowWorkflow)
		for name, f := range recordedWorkflows {
			workflowNamed(w, name, f)
		}
	})
	for name := range recordedWorkflows {
		file := filepath.Join("testdata", name+".json")
		if _, err := os.Stat(file); err == nil {
			continue
		}
		run := p.start(t, name, nil)
		require.NoError(t, run.Get(t.Context(), nil), name)
		data, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(historyOf(t, p, run))
		require.NoError(t, err)
		host, err := os.Hostname() // is in the name of the sticky queue
		require.NoError(t, err)
		data = bytes.ReplaceAll(data, []byte(`"`+host+":"), []byte(`"worker:`))
		require.NoError(t, os.WriteFile(file, append(data, '\n'), 0o600))
	}
}

func historyOf(t *testing.T, p place, run client.WorkflowRun) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	events := p.client.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, 1)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, event)
	}
	return h
}
