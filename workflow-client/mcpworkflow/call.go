package mcpworkflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Call calls a tool and waits for its result. Arguments are an object: nil for
// none, a json.RawMessage as it is, any other value as encoding/json writes it.
// See the package comment for how a call ends.
func (c *Client) Call(ctx workflow.Context, name string, arguments any, options ...CallOption) (contract.Result, error) {
	return c.CallAsync(ctx, name, arguments, options...).Get(ctx)
}

// CallAsync is [Client.Call] without the wait. The arguments are read before it
// returns. Calls start in the order in which they are made.
func (c *Client) CallAsync(ctx workflow.Context, name string, arguments any, options ...CallOption) *Future {
	future, settable := workflow.NewFuture(ctx)
	input, err := encode(arguments)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var e ending
		if err == nil {
			e, err = c.call(ctx, name, input, gather(options))
		}
		settable.Set(e, err)
	})
	return &Future{future}
}

// CallAs calls a tool and decodes what it returns: its structured content, or
// where there is none its text, as JSON; into a string the text as it is. Every
// failure is an error: see [As].
func CallAs[T any](ctx workflow.Context, c *Client, name string, arguments any, options ...CallOption) (T, error) {
	return As[T](ctx, c.CallAsync(ctx, name, arguments, options...))
}

// As waits for a call and decodes what it returns, as [CallAs] does. The error is
// that of the call, or a [*contract.Failure]: the tool's own error (with the code
// "McpToolError"), whatever else went wrong, or a value that T cannot hold.
func As[T any](ctx workflow.Context, f *Future) (value T, err error) {
	var e ending
	switch err := f.future.Get(ctx, &e); {
	case err != nil:
		return value, err
	case e.failure != nil:
		return value, e.failure
	case e.result.IsError():
		return value, resultmap.ToolError(e.result)
	case e.result.NeedsInput():
		return value, &contract.Failure{Code: contract.CodeFailed, Message: "The tool asks for input before it goes on; Call and WithInput can give it."}
	}
	if err := e.result.Unmarshal(&value); err != nil {
		var none T
		return none, &contract.Failure{
			Code: contract.CodeFailed, Cause: err, Message: fmt.Sprintf("The result of the call is no %T: %v.", none, err),
		}
	}
	return value, nil
}

// Future is a call under way.
type Future struct{ future workflow.Future }

// Get waits until the call has ended and returns what [Client.Call] does. It does
// not end when ctx is cancelled; the call does when the context is that it was
// made with.
func (f *Future) Get(ctx workflow.Context) (contract.Result, error) {
	var e ending
	if err := f.future.Get(ctx, &e); err != nil {
		return contract.Result{}, err
	}
	if e.failure == nil {
		return e.result, nil
	}
	return e.failure.Result(), nil
}

// ending is what the caller of a tool sees as a result.
type ending struct {
	result  contract.Result
	failure *contract.Failure // nil for a call that completed
}

// IsReady reports whether Get returns at once.
func (f *Future) IsReady() bool { return f.future.IsReady() }

// Future returns the future for a [workflow.Selector]. It is ready when the call
// has ended; how it ended, [Future.Get] tells.
func (f *Future) Future() workflow.Future { return f.future }

// isResult tells the failures that the caller of a tool sees as a result.
func isResult(f *contract.Failure) bool {
	switch f.Code {
	case contract.CodeCanceled, contract.CodeProtocolError, contract.CodeInvalid:
		return false
	default:
		return true
	}
}

// encode returns arguments as JSON; nil for none.
func encode(arguments any) (json.RawMessage, error) {
	switch a := arguments.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return bytes.Clone(a), nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(arguments); err != nil {
		return nil, invalid("mcpworkflow: arguments: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (c *Client) call(ctx workflow.Context, name string, arguments json.RawMessage, o callOptions) (ending, error) {
	snapshot, err := c.List(ctx)
	if err != nil {
		return ending{}, err
	}
	entry, ok := snapshot.Find(name)
	if !ok {
		return ending{}, unknownTool(name, snapshot)
	}
	params := contract.CallParams{Arguments: arguments, Meta: o.meta, InputResponses: o.responses, RequestState: o.state}
	input, err := params.Encode(entry.Tool.Encoding)
	if err != nil {
		return ending{}, invalid("mcpworkflow: tool %q: %w", name, err)
	}
	o.sentKey = params.RoundKey(entry.Tool.Encoding, o.key)
	var result contract.Result
	output, err := c.execute(ctx, entry.Service, entry.Tool.Name, input, entry.Tool.ScheduleToCloseTimeout, o)
	if err == nil {
		result, err = resultmap.ToResult(entry.Tool, output)
	}
	if f, ok := err.(*contract.Failure); ok && isResult(f) { //nolint:errorlint // as it was made here
		return ending{failure: f}, nil
	}
	return ending{result: result}, err
}

func unknownTool(name string, s *Snapshot) error {
	known := append([]string{fmt.Sprintf("mcpworkflow: there is no tool %.80q among the %d that were listed", name, len(s.Entries))}, s.Warnings()...)
	return invalid("%s", strings.Join(known, "; "))
}

// execute runs one Nexus operation. The error is the cancellation of ctx, or a
// [*contract.Failure].
func (c *Client) execute(ctx workflow.Context, s Service, operation string, input json.RawMessage, timeout time.Duration, o callOptions) (json.RawMessage, error) {
	there := intercepted(ctx)
	if err := o.check(there); err != nil {
		return nil, invalid("mcpworkflow: operation %q of service %q: %w", operation, s.Name, err)
	}
	if len(input) > c.options.MaxArgumentBytes {
		return nil, tooLarge(len(input), c.options.MaxArgumentBytes)
	}
	if o.timeout != nil {
		timeout = *o.timeout
	}
	if err := c.reach(ctx, s); err != nil {
		return nil, err
	}
	run := c.run
	if err := run.acquire(ctx, c.options.MaxPending, len(input)); err != nil {
		return nil, err
	}
	calm, _ := workflow.NewDisconnectedContext(ctx)
	if ctx.Err() != nil {
		run.release(ctx)
		return nil, ctx.Err()
	}
	call := ctx
	if o.cancellation == Abandon {
		call = calm
	}
	if there {
		call = workflow.WithValue(call, headerKey{}, headersOf(ctx, o))
	}
	future := workflow.NewNexusClient(s.Endpoint, s.Name).ExecuteOperation(call, operation, resultmap.RawValue(input), workflow.NexusOperationOptions{
		ScheduleToCloseTimeout: timeout,
		ScheduleToStartTimeout: c.startTimeout(timeout),
		Summary:                o.summary,
	})
	if o.cancellation != WaitCompleted {
		if err := wait(ctx, future); err != nil {
			// It is pending for as long as it runs, whoever waits.
			workflow.Go(calm, func(ctx workflow.Context) {
				_ = future.Get(ctx, nil)
				run.release(ctx)
			})
			return nil, err
		}
	}
	var output converter.RawValue
	err := future.Get(ctx, &output)
	run.release(calm)
	if err == nil {
		return resultmap.JSON(output)
	}
	if ctx.Err() != nil && temporal.IsCanceledError(err) {
		return nil, ctx.Err()
	}
	f := failureOf(err)
	if timedOut(err) && !started(ctx, future) {
		f.Message += fmt.Sprintf(" No handler took it (endpoint %q, service %q, operation %q). "+
			"The likely cause is that no worker polls the endpoint's task queue.", s.Endpoint, s.Name, operation)
	}
	return nil, f
}

// startTimeout is the time that a Worker has to take a call with the timeout.
func (c *Client) startTimeout(timeout time.Duration) time.Duration {
	start := c.options.StartTimeout
	if start < 0 || timeout > 0 && timeout <= start {
		return 0
	}
	return start
}

// timedOut reports whether it was the operation that timed out, rather than what a
// handler did.
func timedOut(err error) bool {
	operation, ok := errors.AsType[*temporal.NexusOperationError](err)
	if !ok {
		return false
	}
	_, ok = operation.Cause.(*temporal.TimeoutError) //nolint:errorlint // the operation itself
	return ok
}

// started reports whether a handler has taken the operation.
func started(ctx workflow.Context, f workflow.NexusOperationFuture) bool {
	execution := f.GetNexusOperationExecution()
	return execution.IsReady() && execution.Get(ctx, nil) == nil
}

// failureOf returns a failure of its own. What was cancelled inside a call that
// failed is its text: the SDK would take a Workflow that ends with it for cancelled.
func failureOf(err error) *contract.Failure {
	f := *resultmap.FromError(err)
	if f.Code != contract.CodeCanceled && temporal.IsCanceledError(&f) {
		f.Cause = errors.New(err.Error())
	}
	return &f
}

func tooLarge(size, limit int) error {
	return &contract.Failure{
		Code: contract.CodePayloadTooLarge,
		Message: fmt.Sprintf("The arguments would take %d bytes; a call may have at most %d. "+
			"Send less, or a reference instead of the data.", size, limit),
	}
}
