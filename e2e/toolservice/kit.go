package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

type kit struct{ service, manifest, effects string }

func run(k kit, address string) error {
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, k.service, worker.Options{MaxHeartbeatThrottleInterval: 200 * time.Millisecond})
	service := nexus.NewService(k.service)
	if err := service.Register(append(k.syncTools(), k.longTools()...)...); err != nil {
		return err
	}
	w.RegisterNexusService(service)
	w.RegisterWorkflowWithOptions(k.slow, workflow.RegisterOptions{Name: "slow"})
	w.RegisterWorkflowWithOptions(k.stubborn, workflow.RegisterOptions{Name: "stubborn"})
	w.RegisterActivityWithOptions(k.act, activity.RegisterOptions{Name: "act"})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Fprintln(os.Stdout, "ready")
	<-worker.InterruptCh()
	return nil
}

// raw is JSON as it is.
func raw(data []byte) converter.RawValue {
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: data,
	})
}

// sync is a synchronous operation on bytes.
func sync(name string, f func(input []byte, o nexus.StartOperationOptions) ([]byte, error)) nexus.RegisterableOperation {
	return nexus.NewSyncOperation(name, func(_ context.Context, in converter.RawValue, o nexus.StartOperationOptions) (converter.RawValue, error) {
		out, err := f(in.Payload().GetData(), o)
		if err != nil {
			return converter.RawValue{}, err
		}
		return raw(out), nil
	})
}

// member returns one member of an object as it is written.
func member(object []byte, name string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "no object: %v", err)
	}
	return members[name], nil
}

func (k kit) syncTools() []nexus.RegisterableOperation {
	value := func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) { return member(in, "value") }
	return []nexus.RegisterableOperation{
		sync("list_tools", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) { return k.listTools(in) }),
		sync("echo", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) { return in, nil }),
		sync("pick", value),
		sync("pick_any", value),
		sync("headers", func(_ []byte, o nexus.StartOperationOptions) ([]byte, error) { return json.Marshal(o.Header) }),
		sync("content", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) {
			args, err := member(in, "arguments")
			if err != nil {
				return nil, err
			}
			return member(args, "result")
		}),
		sync("input", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) {
			return []byte(`{"content":[],"structuredContent":` + string(in) + `}`), nil
		}),
		sync("big", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) {
			var args struct{ Bytes int }
			if err := json.Unmarshal(in, &args); err != nil {
				return nil, err
			}
			return []byte(`"` + strings.Repeat("x", args.Bytes) + `"`), nil
		}),
		sync("note", func(in []byte, _ nexus.StartOperationOptions) ([]byte, error) { return in, k.effect(in) }),
		sync("fail", fail),
	}
}

// effect appends the "line" of the arguments to the file of effects.
func (k kit) effect(args []byte) error {
	var a struct{ Line string }
	if err := json.Unmarshal(args, &a); err != nil || a.Line == "" {
		return err
	}
	return k.append(a.Line)
}

func (k kit) append(line string) error {
	f, err := os.OpenFile(k.effects, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(line + "\n")
	return err
}

// failure is an operation that failed with an application error of a type.
func failure(state nexus.OperationState, message, typ string, details any) error {
	var list []any
	if details != nil {
		list = []any{details}
	}
	return &nexus.OperationError{State: state, Message: message, Cause: temporal.NewApplicationErrorWithOptions(
		message, typ, temporal.ApplicationErrorOptions{NonRetryable: true, Details: list})}
}

// fail fails as {"as": …} says.
func fail(in []byte, _ nexus.StartOperationOptions) ([]byte, error) {
	var args struct {
		As      string
		Details json.RawMessage
	}
	if err := json.Unmarshal(in, &args); err != nil {
		return nil, err
	}
	var details any
	if args.Details != nil {
		details = raw(args.Details)
	}
	failed := nexus.OperationStateFailed
	switch args.As {
	case "tool":
		return nil, failure(failed, "the tool says no", "McpToolError", details)
	case "protocol":
		return nil, failure(failed, "the upstream says no", "McpProtocolError", details)
	case "unknown":
		return nil, failure(failed, "The connection broke after the call was sent.", "McpOutcomeUnknown", nil)
	case "size":
		return nil, failure(failed, "The result would take 3000000 bytes.", "McpPayloadTooLarge", nil)
	case "canceled":
		return nil, failure(nexus.OperationStateCanceled, "the service cancelled it", "canceled", nil)
	case "error":
		return nil, &nexus.OperationError{State: failed, Message: "it does not <work>"}
	}
	return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "nothing fails as %q", args.As)
}

// longTools run behind the operation.
func (k kit) longTools() []nexus.RegisterableOperation {
	run := func(name string, workflow func(workflow.Context, converter.RawValue) (converter.RawValue, error)) nexus.RegisterableOperation {
		return temporalnexus.NewWorkflowRunOperation(name, workflow,
			func(_ context.Context, _ converter.RawValue, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
				return client.StartWorkflowOptions{ID: name + "-" + o.RequestID}, nil
			})
	}
	return []nexus.RegisterableOperation{
		run("slow", k.slow), run("slow_any", k.slow), run("brief", k.slow), run("report", k.slow),
		run("stubborn", k.stubborn),
		temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
			Name: "act",
			Start: func(ctx context.Context, nc temporalnexus.NexusClient, in converter.RawValue, o temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
				return temporalnexus.StartActivity(ctx, nc, client.StartActivityOptions{
					ID: "act-" + o.RequestID, TaskQueue: k.service, StartToCloseTimeout: time.Minute,
					RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
				}, k.act, in)
			},
		}),
	}
}

// slow has its effect, waits on a durable timer, and returns "value". With "fail"
// it fails in the end.
func (k kit) slow(ctx workflow.Context, in converter.RawValue) (converter.RawValue, error) {
	var args struct {
		Seconds float64
		Line    string
		Value   json.RawMessage
		Fail    string
		Details json.RawMessage
	}
	if err := json.Unmarshal(in.Payload().GetData(), &args); err != nil {
		return converter.RawValue{}, temporal.NewNonRetryableApplicationError(err.Error(), "arguments", err)
	}
	effect := func(ctx workflow.Context, line string) error {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: time.Minute})
		return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return k.append(line) }).Get(ctx, nil)
	}
	if args.Line != "" {
		if err := effect(ctx, args.Line); err != nil {
			return converter.RawValue{}, err
		}
	}
	if err := workflow.Sleep(ctx, time.Duration(args.Seconds*float64(time.Second))); err != nil {
		if args.Line != "" {
			calm, _ := workflow.NewDisconnectedContext(ctx)
			_ = effect(calm, "cancelled "+args.Line)
		}
		return converter.RawValue{}, err
	}
	switch {
	case args.Fail == "tool":
		return converter.RawValue{}, temporal.NewApplicationErrorWithOptions("no", "McpToolError",
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{raw(args.Details)}})
	case args.Fail != "":
		return converter.RawValue{}, temporal.NewNonRetryableApplicationError(args.Fail, "Broken", nil)
	case args.Value == nil:
		return raw([]byte("null")), nil
	}
	return raw(args.Value), nil
}

// stubborn is slow and ignores a cancellation.
func (k kit) stubborn(ctx workflow.Context, in converter.RawValue) (converter.RawValue, error) {
	calm, _ := workflow.NewDisconnectedContext(ctx)
	return k.slow(calm, in)
}

// act is the activity behind the tool of that name.
func (k kit) act(_ context.Context, in converter.RawValue) (converter.RawValue, error) {
	args := in.Payload().GetData()
	if err := k.effect(args); err != nil {
		return converter.RawValue{}, err
	}
	value, err := member(args, "value")
	if err != nil || value == nil {
		return raw([]byte("null")), err
	}
	return raw(value), nil
}
