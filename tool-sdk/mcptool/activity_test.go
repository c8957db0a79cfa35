package mcptool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

func TestAnActivityToolRunsAtMostOnce(t *testing.T) {
	t.Parallel()

	config := newChildConfig(t, "block")
	_, err := crash(t, "once", config, config.File)
	require.Error(t, err)
	f := resultmap.FromError(err)
	require.Equal(t, contract.CodeOutcomeUnknown, f.Code, "%v", err)
	require.Equal(t, 1, lines(config.File), "the effect happened once")
}

func TestAnActivityToolThatNeverStartedRuns(t *testing.T) {
	t.Parallel()

	config := newChildConfig(t, "before")
	output, err := crash(t, "once", config, config.File+".before")
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"after "}`, output)
	require.Equal(t, 1, lines(config.File))
}

func TestARepeatableActivityToolGoesOn(t *testing.T) {
	t.Parallel()

	config := newChildConfig(t, "block")
	output, err := crash(t, "again", config, config.File)
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"after halfway"}`, output)
	require.Equal(t, 2, lines(config.File))
}

// heartbeats counts the heartbeat details of the activity of a task queue.
func heartbeats(t *testing.T, queue string) int {
	t.Helper()
	list, err := temporal(t).ListActivities(t.Context(), client.ListActivitiesOptions{Query: fmt.Sprintf("TaskQueue='%s'", queue)})
	require.NoError(t, err)
	for info, err := range list.Results {
		require.NoError(t, err)
		d, err := temporal(t).GetActivityHandle(client.GetActivityHandleOptions{ActivityID: info.ActivityID, RunID: info.ActivityRunID}).
			Describe(t.Context(), client.DescribeActivityOptions{IncludeHeartbeatDetails: true})
		if err != nil {
			return 0
		}
		var note, progress string
		if d.HasHeartbeatDetails() && d.GetHeartbeatDetails(&note, &progress) == nil && progress != "" {
			return 1
		}
	}
	return 0
}

// worker stops: the SDK gives a stopping Worker's activities no time by default.
func TestAWorkerThatStopsLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()

	var runs atomic.Int64
	s := mcptool.NewService("stop")
	block := func(ctx context.Context, _ nexus.NoValue) (nexus.NoValue, error) {
		runs.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	mcptool.Add(s, mcptool.NewActivityOperation("block", block, mcptool.ActivityOptions{HeartbeatTimeout: 2 * time.Second}), mcptool.Tool{Description: "Block."})
	c := caller{t: t, endpoint: newEndpoint(t), service: "stop"}
	first := worker.New(temporal(t), c.endpoint, worker.Options{})
	require.NoError(t, s.Register(first))
	require.NoError(t, first.Start())
	handle := c.start("block", `{}`, callTimeout)
	require.Eventually(t, func() bool { return runs.Load() == 1 }, 10*time.Second, 10*time.Millisecond)
	first.Stop()
	second := worker.New(temporal(t), c.endpoint, worker.Options{})
	require.NoError(t, s.Register(second))
	require.NoError(t, second.Start())
	t.Cleanup(second.Stop)
	_, err := c.wait(handle)
	require.Equal(t, contract.CodeOutcomeUnknown, resultmap.FromError(err).Code, "%v", err)
	require.EqualValues(t, 1, runs.Load())
}

func TestAWorkerLivesWithTheShortestHeartbeatTimeout(t *testing.T) {
	t.Parallel()

	const timeout = time.Second
	f := func(ctx context.Context, _ nexus.NoValue) (string, error) {
		started := time.Now()
		return "alive", until(ctx, func() bool { return time.Since(started) > 3*timeout })
	}
	s := mcptool.NewService("alive")
	mcptool.Add(s, mcptool.NewActivityOperation("work", f, mcptool.ActivityOptions{HeartbeatTimeout: timeout}), mcptool.Tool{Description: "Work."})
	c := serve(t, s, "alive")
	require.Equal(t, `"alive"`, c.ok("work", `{}`))
}

// guarded asks before it starts the activity that it embeds.
type guarded[I, O any] struct {
	*mcptool.ActivityOperation[I, O]

	allows func(ctx context.Context, in I) error
}

func (g guarded[I, O]) Start(ctx context.Context, in I, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[O], error) {
	if err := g.allows(ctx, in); err != nil {
		return nil, err
	}
	return g.ActivityOperation.Start(ctx, in, options)
}

func TestAnOperationThatEmbedsAnActivity(t *testing.T) {
	t.Parallel()

	act := mcptool.NewActivityOperation("act", func(ctx context.Context, in nameInput) (mcptool.Result, error) {
		return mcptool.Text(in.Name + " " + string(mcptool.CallMeta(ctx)) + " " + mcptool.IdempotencyKey(ctx)), nil
	}, mcptool.ActivityOptions{})
	s := mcptool.NewService("guarded")
	mcptool.Add(s, guarded[nameInput, mcptool.Result]{act, func(_ context.Context, in nameInput) error {
		if in.Name == "Eve" {
			return mcptool.ToolError("not for Eve")
		}
		return nil
	}}, mcptool.Tool{Description: "Act."})
	c := serve(t, s, "guarded")
	require.Equal(t, "not for Eve", c.answers("act", `{"arguments":{"name":"Eve"}}`))
	require.JSONEq(t, `{"content":[{"type":"text","text":"Ada {\"a\":1.0} "}]}`, c.ok("act", `{"arguments":{"name":"Ada"},"_meta":{"a":1.0}}`))
	require.Equal(t, contract.KindActivity, c.manifest().Tools[0].Kind)
}

type modeInput struct {
	Mode string `json:"mode"`
}

func TestFailuresOfAnActivity(t *testing.T) {
	t.Parallel()

	var runs, retries atomic.Int64
	f := func(_ context.Context, in modeInput) (any, error) {
		runs.Add(1)
		switch in.Mode {
		case "error":
			return nil, fmt.Errorf("outer: %w", errBoom)
		case "panic":
			panic("a bug")
		case "toolerror":
			return nil, fmt.Errorf("wrapped: %w", mcptool.ToolError("try another key"))
		case "application":
			return nil, sdktemporal.NewApplicationError("it broke", "Broken", "a detail", 9007199254740993)
		case "huge":
			return strings.Repeat("x", contract.PayloadLimit), nil
		case "unencodable":
			return func() {}, nil
		case "retry":
			if retries.Add(1) < 3 {
				return nil, mcptool.Retry(errBoom)
			}
		case "operationerror":
			return nil, nexus.NewOperationFailedErrorf("it failed")
		}
		return in.Mode, nil
	}
	s := mcptool.NewService("failures")
	mcptool.Add(s, mcptool.NewActivityOperation("once", f, mcptool.ActivityOptions{}), mcptool.Tool{Description: "Fail.", OutputSchema: []byte("null")})
	c := serve(t, s, "failures")

	require.Equal(t, "try another key", c.answers("once", `{"mode":"toolerror"}`))
	fail := c.fails("once", `{"mode":"error"}`)
	require.Equal(t, contract.CodeFailed, fail.Code)
	require.Equal(t, "outer: boom", fail.Message)
	require.False(t, fail.Retryable)
	require.Contains(t, c.fails("once", `{"mode":"panic"}`).Message, "a bug")
	require.Contains(t, c.fails("once", `{"mode":"operationerror"}`).Message, "it failed")
	require.Contains(t, c.fails("once", `{"mode":"unencodable"}`).Message, "cannot be JSON")

	fail = c.fails("once", `{"mode":"application"}`)
	require.Equal(t, "it broke", fail.Message)
	require.Equal(t, "Broken", fail.Type)
	var application *sdktemporal.ApplicationError
	require.ErrorAs(t, fail.Cause, &application)
	require.True(t, application.NonRetryable())
	var detail string
	var exact int64
	require.NoError(t, application.Details(&detail, &exact))
	require.Equal(t, "a detail", detail)
	require.EqualValues(t, 9007199254740993, exact)

	fail = c.fails("once", `{"mode":"huge"}`)
	require.Equal(t, contract.CodePayloadTooLarge, fail.Code)
	require.Contains(t, fail.Message, "The result would take 2097154 bytes")
	require.EqualValues(t, 7, runs.Load(), "none of them ran twice")
	fail = c.fails("once", `{"mode":"`+strings.Repeat("x", contract.PayloadLimit-contract.PayloadOverhead-len(`{"mode":""}`))+`"}`)
	require.Equal(t, contract.CodePayloadTooLarge, fail.Code, "the activity is started with more than its arguments: %s", fail.Message)
	require.EqualValues(t, 7, runs.Load())

	require.Equal(t, `"retry"`, c.ok("once", `{"mode":"retry"}`))
	require.EqualValues(t, 3, retries.Load())
}

func TestACancelledCallCancelsItsActivityAtOnce(t *testing.T) {
	t.Parallel()

	started, ended := make(chan time.Time, 1), make(chan time.Time, 1)
	f := func(ctx context.Context, _ nexus.NoValue) (nexus.NoValue, error) {
		started <- time.Now()
		<-ctx.Done()
		ended <- time.Now()
		return nil, ctx.Err()
	}
	s := mcptool.NewService("cancel")
	mcptool.Add(s, mcptool.NewActivityOperation("block", f, mcptool.ActivityOptions{HeartbeatTimeout: time.Minute}), mcptool.Tool{Description: "Block."})
	c := serve(t, s, "cancel")
	handle := c.start("block", `{}`, callTimeout)
	<-started
	cancelled := time.Now()
	cancelWhenStarted(t, handle)
	require.Less(t, (<-ended).Sub(cancelled), 3*time.Second)
	_, err := c.wait(handle)
	require.Equal(t, contract.CodeCanceled, resultmap.FromError(err).Code, "%v", err)
}

func TestAnActivityIsBoundedByItsCall(t *testing.T) {
	t.Parallel()

	left := make(chan time.Duration, 1)
	f := func(ctx context.Context, _ nexus.NoValue) (nexus.NoValue, error) {
		left <- time.Until(activity.GetInfo(ctx).Deadline)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := mcptool.NewService("bound")
	mcptool.Add(s, mcptool.NewActivityOperation("block", f, mcptool.ActivityOptions{}), mcptool.Tool{Description: "Block."})
	c := serve(t, s, "bound")
	_, err := c.wait(c.start("block", `{}`, contract.MinScheduleToClose))
	require.Equal(t, contract.CodeTimedOut, resultmap.FromError(err).Code, "%v", err)
	require.LessOrEqual(t, <-left, contract.MinScheduleToClose)
}

func TestARedeliveredStartAttachesToTheActivity(t *testing.T) {
	t.Parallel()

	for _, state := range []string{"running", "closed", "failed"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()

			var runs atomic.Int64
			again := make(chan struct{})
			f := func(ctx context.Context, in nameInput) (greeting, error) {
				runs.Add(1)
				switch state {
				case "running":
					<-again
				case "failed":
					return greeting{}, mcptool.ToolError("no")
				}
				return greet(ctx, in)
			}
			op := newTwice(mcptool.NewActivityOperation("act", f, mcptool.ActivityOptions{}))
			s := mcptool.NewService("again")
			mcptool.Add(s, op, mcptool.Tool{Description: "Greet.", Kind: contract.KindActivity})
			c := serve(t, s, "again", func(w worker.Worker) { registerActivity(t, w, "again", op.inner) })
			op.between = func(ctx context.Context) error {
				return until(ctx, func() bool { return state == "running" || activitiesClosed(t, c.endpoint) })
			}
			op.after = func() {
				if state == "running" {
					close(again)
				}
			}
			if state == "failed" {
				require.Equal(t, "no", c.answers("act", `{"name":"x"}`))
			} else {
				require.JSONEq(t, `{"text":"Hello, x!"}`, c.ok("act", `{"name":"x"}`))
			}
			if err := <-op.second; err != nil {
				require.Equal(t, contract.CodeToolError, resultmap.FromError(err).Code, "%v", err)
			}
			require.EqualValues(t, 1, runs.Load())
		})
	}
}

// twice starts its operation two times for one request.
type twice[I, O any] struct {
	nexus.UnimplementedOperation[I, O]

	inner   nexus.Operation[I, O]
	between func(ctx context.Context) error // may not fail the test: it is not the test's goroutine
	after   func()
	second  chan error // of the second start; the call may end before it
}

func newTwice[I, O any](inner nexus.Operation[I, O]) *twice[I, O] {
	return &twice[I, O]{inner: inner, after: func() {}, second: make(chan error, 10)}
}

func (o *twice[I, O]) Name() string { return o.inner.Name() }

func (o *twice[I, O]) Start(ctx context.Context, in I, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[O], error) {
	if first, err := o.inner.Start(ctx, in, options); err != nil {
		return first, err
	}
	if err := o.between(ctx); err != nil {
		o.second <- err
		return nil, err
	}
	second, err := o.inner.Start(ctx, in, options)
	o.after()
	o.second <- err
	return second, err
}

// until returns when a condition holds, or ctx's error.
func until(ctx context.Context, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// registerActivity registers the activity of an operation that another one wraps.
func registerActivity(t *testing.T, w worker.Worker, service string, op nexus.RegisterableOperation) {
	t.Helper()
	inner := mcptool.NewService(service)
	inner.AddOperation(op)
	require.NoError(t, inner.Register(activitiesOnly{w}))
}

type activitiesOnly struct{ worker.Worker }

func (activitiesOnly) RegisterNexusService(*nexus.Service) {}

func activitiesClosed(t *testing.T, queue string) bool {
	t.Helper()
	count, err := temporal(t).CountActivities(t.Context(), client.CountActivitiesOptions{
		Query: fmt.Sprintf("TaskQueue='%s' AND ExecutionStatus!='Running'", queue),
	})
	return err == nil && count.Count == 1
}

func TestProgressOutlivesARetry(t *testing.T) {
	t.Parallel()

	var attempts atomic.Int64
	f := func(ctx context.Context, _ nexus.NoValue) (string, error) {
		if attempts.Add(1) == 1 {
			if activity.HasHeartbeatDetails(ctx) {
				return "", errors.New("there were details before the first attempt")
			}
			activity.RecordHeartbeat(ctx, "a third")
			return "", mcptool.Retry(errBoom)
		}
		var done string
		err := activity.GetHeartbeatDetails(ctx, &done)
		return done, err
	}
	s := mcptool.NewService("progress")
	mcptool.Add(s, mcptool.NewActivityOperation("go_on", f, mcptool.ActivityOptions{
		Repeatable: true, RetryPolicy: &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond},
	}), mcptool.Tool{Description: "Go on."})
	c := serve(t, s, "progress")
	require.Equal(t, `"a third"`, c.ok("go_on", `{}`))
}

func TestAServerWithoutCallbacksIsNamed(t *testing.T) {
	t.Parallel()
	temporal(t) // or skip

	plain, err := startServer("nexusoperation.enableStandalone=true")
	require.NoError(t, err)
	t.Cleanup(func() { plain.Client().Close(); _ = plain.Stop() })
	s := mcptool.NewService("plain")
	mcptool.Add(s, mcptool.NewActivityOperation("act", greet, mcptool.ActivityOptions{}), mcptool.Tool{Description: "Greet."})
	c := serveOn(t, plain, s, "plain")
	f := c.fails("act", `{"name":"x"}`)
	require.Equal(t, contract.CodeUnavailable, f.Code, "%v", f.Cause)
	require.Contains(t, f.Message, "activity.enableCallbacks=true")
}
