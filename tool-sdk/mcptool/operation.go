package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporalnexus"
)

// operation is an author's operation, whatever its types.
type operation struct {
	op      nexus.RegisterableOperation
	start   reflect.Value // the bound method Start
	input   reflect.Type
	output  reflect.Type
	kind    contract.Kind // empty where its type does not tell
	starter rawStarter    // nil but for an ActivityOperation itself
}

// rawStarter starts an operation from the arguments as bytes. An author's operation
// that embeds one has its methods, and a Start of its own that comes first.
type rawStarter interface {
	itself() nexus.RegisterableOperation
	startRaw(ctx context.Context, in activityInput, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[converter.RawValue], error)
}

// inspect reads an operation as the registry of the Nexus SDK does.
func inspect(op nexus.RegisterableOperation) (operation, error) {
	if op == nil {
		return operation{}, errors.New("operation: nil")
	}
	typed, ok := op.(interface {
		InputType() reflect.Type
		OutputType() reflect.Type
	})
	start := reflect.ValueOf(op).MethodByName("Start")
	if !ok || !start.IsValid() || start.Type().NumIn() != 3 || start.Type().NumOut() != 2 {
		return operation{}, fmt.Errorf("operation: %T is no nexus.Operation", op)
	}
	o := operation{op: op, start: start, input: typed.InputType(), output: typed.OutputType(), kind: kindOf(op)}
	if starter, ok := op.(rawStarter); ok && starter.itself() == op {
		o.starter = starter
	}
	return o, nil
}

// kindOf tells what runs behind an operation by its type.
func kindOf(op nexus.RegisterableOperation) contract.Kind {
	if _, ok := op.(rawStarter); ok {
		return contract.KindActivity
	}
	t := reflect.TypeOf(op)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	switch t.PkgPath() + "." + name {
	case reflect.TypeFor[nexus.HandlerInfo]().PkgPath() + ".syncOperation":
		return contract.KindSync
	case reflect.TypeFor[temporalnexus.CancelTemporalWorkflowRunOptions]().PkgPath() + ".workflowRunOperation":
		return contract.KindWorkflow
	}
	return ""
}

// toolOperation is what is registered under a tool's name: it stands between the
// wire and the author's operation.
type toolOperation struct {
	nexus.UnimplementedOperation[converter.RawValue, converter.RawValue]

	name       string
	operation  operation
	arguments  *arguments
	encoding   contract.Encoding
	kind       contract.Kind
	repeatable bool
}

// Name implements nexus.Operation.
func (t *toolOperation) Name() string { return t.name }

// Start implements nexus.Operation.
func (t *toolOperation) Start(ctx context.Context, input converter.RawValue, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[converter.RawValue], error) {
	params, args, err := t.read(input)
	if err != nil {
		return nil, handlerError(err, false)
	}
	about := newCall(options.Header, params)
	result, err := t.run(withCall(ctx, about), args, activityInput{Arguments: params.Arguments, Call: about}, options)
	if err != nil {
		return nil, handlerError(err, t.kind != contract.KindSync)
	}
	return t.encode(result)
}

// Cancel implements nexus.Operation.
func (t *toolOperation) Cancel(ctx context.Context, token string, options nexus.CancelOperationOptions) error {
	canceler, ok := t.operation.op.(interface {
		Cancel(ctx context.Context, token string, options nexus.CancelOperationOptions) error
	})
	if !ok {
		return nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotImplemented, "the operation cannot be cancelled")
	}
	return canceler.Cancel(ctx, token, options)
}

// read returns the call's arguments, complete, as bytes and as a value for the
// operation. Its errors are for the model.
func (t *toolOperation) read(input converter.RawValue) (contract.CallParams, reflect.Value, error) {
	none := reflect.Value{}
	raw, err := resultmap.JSON(input)
	if err != nil {
		return contract.CallParams{}, none, err
	}
	if err := t.checkShape(raw); err != nil {
		return contract.CallParams{}, none, toolError(err.Error())
	}
	params, err := contract.DecodeCall(t.encoding, raw)
	if err != nil {
		return contract.CallParams{}, none, toolError(err.Error())
	}
	if faults := t.arguments.check(params.Arguments); len(faults) > 0 {
		return contract.CallParams{}, none, toolError(faults...)
	}
	params.Arguments = t.arguments.complete(params.Arguments)
	args, err := decode(params.Arguments, t.operation.input)
	if err != nil {
		return contract.CallParams{}, none, toolError(err.Error())
	}
	return params, args, nil
}

// checkShape finds plain arguments where the mcp encoding has them in a member.
func (t *toolOperation) checkShape(raw json.RawMessage) error {
	if t.encoding != contract.EncodingMCP || contract.IsNull(raw) {
		return nil
	}
	if o, err := contract.ParseObject(raw); err == nil && !o.Has("arguments") { // or DecodeCall says what is wrong
		for _, key := range o.Keys() {
			switch key {
			case "_meta", "inputResponses", "requestState":
			default:
				return fmt.Errorf(`arguments: missing; this tool takes {"arguments": {…}}, and %q stands beside`, key)
			}
		}
	}
	return nil
}

// run runs the author's code; a panic is an error.
func (t *toolOperation) run(ctx context.Context, args reflect.Value, raw activityInput, options nexus.StartOperationOptions) (any, error) {
	if t.operation.starter != nil {
		return t.operation.starter.startRaw(ctx, raw, options)
	}
	if t.kind != contract.KindSync {
		return protect(ctx, func() (any, error) { return t.operation.call(ctx, args, options) })
	}
	return t.runInTime(ctx, args, options)
}

// answerMargin is what a sync tool leaves of the handler's time, so that the
// answer reaches the server.
const answerMargin = 500 * time.Millisecond

// A delivery that waited on its way, for a Worker or in one that was busy, leaves
// less of the time than the eight seconds or so that a sync tool can count on.
const (
	fullTime  = 7 * time.Second
	leastTime = 2 * time.Second
)

// errLate asks for another delivery.
var errLate = Retry(errors.New("the call came too late to be answered in time"))

// runInTime answers for code that does not: Temporal would deliver the call
// again, and the code would run anew each time. A delivery that leaves too little
// time is no fault of the code's: it is asked for again, before the code runs or,
// where the tool may be repeated, after. For the Temporal server that is a failure
// as no answer would be: after six in a row it stops the endpoint for a minute.
func (t *toolOperation) runInTime(ctx context.Context, args reflect.Value, options nexus.StartOperationOptions) (any, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return protect(ctx, func() (any, error) { return t.operation.call(ctx, args, options) })
	}
	limit := time.Until(deadline) - answerMargin
	late := limit < fullTime && mayComeAgain(options.Header)
	if late && limit < leastTime {
		return nil, errLate
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type outcome struct {
		result any
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := protect(inner, func() (any, error) { return t.operation.call(inner, args, options) })
		done <- outcome{result, err}
	}()
	over := time.NewTimer(limit + answerMargin/2) // code that heeds its context ends in time
	defer over.Stop()
	select {
	case out := <-done:
		if out.err == nil || inner.Err() == nil || !errors.Is(out.err, context.DeadlineExceeded) {
			return out.result, out.err
		}
	case <-over.C:
	}
	if late && t.repeatable {
		return nil, errLate
	}
	return nil, t.tooSlow(limit)
}

// mayComeAgain reports whether the operation has the time for another delivery.
func mayComeAgain(header nexus.Header) bool {
	left, err := time.ParseDuration(header.Get(nexus.HeaderOperationTimeout))
	return err != nil || left > 2*fullTime // without a bound there is no header
}

func (t *toolOperation) tooSlow(limit time.Duration) error {
	f := &contract.Failure{
		Code:    contract.CodeOutcomeUnknown,
		Message: fmt.Sprintf("The tool %q did not answer within the %s that a sync operation has; what it does may yet happen.", t.name, limit.Round(time.Second/10)),
	}
	if t.repeatable {
		f.Code = contract.CodeTimedOut
	}
	return f
}

func (o operation) call(ctx context.Context, args reflect.Value, options nexus.StartOperationOptions) (any, error) {
	out := o.start.Call([]reflect.Value{reflect.ValueOf(ctx), args, reflect.ValueOf(options)})
	if err, ok := reflect.TypeAssert[error](out[1]); ok {
		return nil, err
	}
	return out[0].Interface(), nil
}

// protect makes a panic an error, and logs where it came from.
func protect(ctx context.Context, f func() (any, error)) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &panicError{value: v, stack: debug.Stack()}
			logger(ctx).Error("mcptool: the code of a tool panicked", "panic", p.Error(), "stack", string(p.stack))
			result, err = nil, p
		}
	}()
	return f()
}

// encode returns what an operation started or returned as the wire has it.
func (t *toolOperation) encode(result any) (nexus.HandlerStartOperationResult[converter.RawValue], error) {
	if async, ok := result.(*nexus.HandlerStartOperationResultAsync); ok {
		return async, nil
	}
	sync, ok := result.(interface{ ValueAsAny() any })
	if !ok {
		return nil, handlerError(fmt.Errorf("mcptool: operation %q answered with neither value nor token", t.name), false)
	}
	value := sync.ValueAsAny()
	if r, ok := value.(Result); ok && r.err == nil && r.raw.IsError() {
		return nil, handlerError(r.Err(), false)
	}
	data, err := encodeResult(value)
	if err != nil {
		return nil, handlerError(err, false)
	}
	return &nexus.HandlerStartOperationResultSync[converter.RawValue]{Value: resultmap.RawValue(data)}, nil
}
