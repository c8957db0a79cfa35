package resultmap

import (
	"encoding/json"
	"errors"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/nexus-rpc/sdk-go/nexus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// Type names that the Go SDK gives to application errors.
const (
	typeOperationError = "OperationError"   // a Nexus operation that failed
	typePayloadSize    = "payloadSizeError" // a payload over the limit, TMPRL1103
)

// ApplicationError returns the error that an activity or a Workflow ends with
// for the failure. It is never retried unless the failure says so.
func ApplicationError(f *contract.Failure) error {
	typ := f.Type
	if typ == "" || wireType(f.Code) {
		typ = string(f.Code)
	}
	options := temporal.ApplicationErrorOptions{NonRetryable: !f.Retryable}
	if len(f.Details) > 0 {
		options.Details = []any{RawValue(f.Details)}
	}
	return temporal.NewApplicationErrorWithOptions(f.Message, typ, options)
}

// wireType tells the codes whose name is a type on the wire.
func wireType(c contract.Code) bool {
	switch c {
	case contract.CodeToolError, contract.CodeProtocolError, contract.CodeOutcomeUnknown, contract.CodePayloadTooLarge:
		return true
	default:
		return false
	}
}

// OperationError returns the error that a Nexus handler ends the operation with
// for the failure: failed or canceled, at the first attempt.
func OperationError(f *contract.Failure) error {
	state := nexus.OperationStateFailed
	if f.Code == contract.CodeCanceled {
		state = nexus.OperationStateCanceled
	}
	final := *f
	final.Retryable = false
	return &nexus.OperationError{State: state, Message: f.Message, Cause: ApplicationError(&final)}
}

// ToolError returns the failure that says: the tool answered, and its answer is
// this error result.
func ToolError(r contract.Result) *contract.Failure {
	message, ok := r.Text()
	if !ok || message == "" {
		message = "The tool reported an error."
	}
	return &contract.Failure{Code: contract.CodeToolError, Message: message, Details: r.JSON()}
}

// ProtocolError returns the failure for a JSON-RPC error of an upstream.
func ProtocolError(e *contract.ProtocolError) *contract.Failure {
	return &contract.Failure{Code: contract.CodeProtocolError, Message: e.Message, Details: e.JSON()}
}

// ToResult returns the MCP result of an operation that completed.
func ToResult(tool contract.Tool, output json.RawMessage) (contract.Result, error) {
	if tool.Encoding != contract.EncodingMCP {
		return contract.ValueResult(output, tool.OutputSchema != nil)
	}
	r, err := contract.DecodeResult(output)
	if err != nil {
		return contract.Result{}, &contract.Failure{
			Code: contract.CodeFailed, Cause: err,
			Message: "The service answered with something that is no MCP result: " + err.Error(),
		}
	}
	return r, nil
}

// FromError classes the error that an operation, an activity or a Workflow call
// ended with. It returns nil for nil, and a [*contract.Failure] in err as it is.
func FromError(err error) *contract.Failure {
	if err == nil {
		return nil
	}
	var failure *contract.Failure
	if errors.As(err, &failure) {
		return failure
	}
	return classify(err)
}

// classify goes through the chain from the outside and stops at the first error
// that says what happened.
func classify(err error) *contract.Failure {
	switch e := err.(type) { //nolint:errorlint // each link of the chain in turn
	case *temporal.CanceledError:
		return &contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled.", Cause: err}
	case *temporal.TerminatedError:
		return &contract.Failure{Code: contract.CodeTerminated, Message: "Somebody terminated the call.", Cause: err}
	case *temporal.TimeoutError:
		return timedOut(e)
	case *temporal.ApplicationError:
		return fromApplicationError(e)
	case *nexus.HandlerError:
		return fromHandlerError(e)
	case *nexus.OperationError:
		return fromOperationError(e)
	case *temporal.ServerError:
		return &contract.Failure{
			Code: contract.CodeFailed, Type: "ServerError", Cause: err,
			Message: "The Temporal server ended the call: " + e.Error(),
		}
	case *serviceerror.NotFound, *serviceerror.NamespaceNotFound:
		return unavailable(err, "Temporal does not have it: "+err.Error(), false)
	case *serviceerror.Unimplemented:
		return unavailable(err, "The Temporal server cannot do it: "+err.Error(), false)
	case *serviceerror.PermissionDenied:
		return unavailable(err, "The Temporal server refused: "+err.Error(), false)
	case *serviceerror.Unavailable, *serviceerror.DeadlineExceeded, *serviceerror.ResourceExhausted:
		return unavailable(err, "Temporal does not answer: "+err.Error(), true)
	case *serviceerror.InvalidArgument:
		return &contract.Failure{Code: contract.CodeInvalid, Message: "The Temporal server refused the call: " + err.Error(), Cause: err}
	}
	if cause := errors.Unwrap(err); cause != nil {
		if f := classify(cause); f.Code != contract.CodeFailed || f.Type != "" {
			return f
		}
	}
	return &contract.Failure{Code: contract.CodeFailed, Message: err.Error(), Cause: err}
}

func unavailable(err error, message string, retryable bool) *contract.Failure {
	return &contract.Failure{Code: contract.CodeUnavailable, Message: message, Retryable: retryable, Cause: err}
}

func timedOut(e *temporal.TimeoutError) *contract.Failure {
	which := map[enumspb.TimeoutType]string{
		enumspb.TIMEOUT_TYPE_START_TO_CLOSE:    "start-to-close",
		enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START: "schedule-to-start",
		enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "schedule-to-close",
		enumspb.TIMEOUT_TYPE_HEARTBEAT:         "heartbeat",
	}[e.TimeoutType()]
	message := "The call timed out."
	if which != "" {
		message = "The call timed out: its " + which + " timeout ran out."
	}
	return &contract.Failure{Code: contract.CodeTimedOut, Type: which, Message: message, Retryable: true, Cause: e}
}

func fromApplicationError(e *temporal.ApplicationError) *contract.Failure {
	f := &contract.Failure{Code: contract.CodeFailed, Type: e.Type(), Message: e.Message(), Retryable: !e.NonRetryable(), Cause: e}
	switch code := contract.Code(e.Type()); {
	case wireType(code):
		f.Code, f.Retryable = code, false
		f.Details = details(e)
	case e.Type() == typePayloadSize:
		f.Code, f.Retryable = contract.CodePayloadTooLarge, false
		f.Message = "The result is over the payload limit of Temporal: " + e.Message()
	case e.Type() == typeOperationError && errors.Unwrap(e) != nil:
		// The failed state of the operation around the error that says why.
		if inner := classify(errors.Unwrap(e)); inner.Message != "" {
			inner.Retryable = false
			return inner
		}
	case e.Type() == string(contract.CodeCanceled):
		f.Code = contract.CodeCanceled
	}
	if f.Message == "" {
		f.Message = deepest(e)
	}
	return f
}

func details(e *temporal.ApplicationError) json.RawMessage {
	if !e.HasDetails() {
		return nil
	}
	var value converter.RawValue
	if e.Details(&value) != nil {
		return nil
	}
	data, err := JSON(value)
	if err != nil {
		return nil
	}
	return data
}

func fromHandlerError(e *nexus.HandlerError) *contract.Failure {
	switch e.Type {
	case nexus.HandlerErrorTypeNotFound, nexus.HandlerErrorTypeNotImplemented,
		nexus.HandlerErrorTypeUnauthenticated, nexus.HandlerErrorTypeUnauthorized,
		nexus.HandlerErrorTypeUnavailable, nexus.HandlerErrorTypeUpstreamTimeout,
		nexus.HandlerErrorTypeRequestTimeout, nexus.HandlerErrorTypeResourceExhausted:
		return unavailable(e, "The service did not take the call: "+deepest(e), e.Retryable())
	default:
		if e.Cause != nil {
			if inner := classify(e.Cause); inner.Code != contract.CodeFailed || inner.Type != "" {
				inner.Retryable = false
				return inner
			}
		}
		return &contract.Failure{Code: contract.CodeFailed, Type: string(e.Type), Message: deepest(e), Retryable: e.Retryable(), Cause: e}
	}
}

func fromOperationError(e *nexus.OperationError) *contract.Failure {
	if e.State == nexus.OperationStateCanceled {
		return &contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled.", Cause: e}
	}
	if e.Cause != nil {
		return classify(e.Cause)
	}
	return &contract.Failure{Code: contract.CodeFailed, Message: e.Message, Cause: e}
}

// deepest returns the message that is nearest to the fault: a wrapper's own may
// say no more than "handler error (BAD_REQUEST)".
func deepest(err error) string {
	for {
		cause := errors.Unwrap(err)
		if cause == nil {
			break
		}
		err = cause
	}
	switch e := err.(type) { //nolint:errorlint // the last link
	case *temporal.ApplicationError:
		return e.Message()
	case *nexus.HandlerError:
		if e.Message != "" {
			return e.Message
		}
	}
	return err.Error()
}
