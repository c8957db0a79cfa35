package resultmap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
	typeWrapped        = "wrapError"        // fmt.Errorf with one %w
	typePanic          = "PanicError"       // a panic of an activity or a handler

	// What the server gives the operation of a Workflow that it ends itself, in
	// the place of a ServerError.
	typeCallError = "CallError"
)

// silent is the message of a failure that has none.
const silent = "The call failed without saying why."

// FromError classes the error that an operation, an activity or a Workflow call
// ended with. It returns nil for nil, and a [*contract.Failure] that err wraps
// as it is.
//
// It goes by the types of the chain, from the outside in: the first that says
// what happened decides. The failure's cause is err, its message is for the
// caller: what an error of the way to Temporal says of addresses is in the cause
// only.
func FromError(err error) *contract.Failure {
	if err == nil {
		return nil
	}
	f := classify(err)
	if f == nil {
		f = &contract.Failure{Code: contract.CodeFailed, Message: err.Error()}
	}
	var own *contract.Failure
	if errors.As(err, &own) && own == f {
		return f
	}
	if f.Message == "" {
		f.Message = silent
	}
	f.Cause = err
	return f
}

// classify returns nil for an error that says no more than its text.
func classify(err error) *contract.Failure {
	if err == nil {
		return nil
	}
	switch e := err.(type) { //nolint:errorlint // each link of the chain in turn
	case *contract.Failure:
		return e
	case *temporal.CanceledError:
		return fromCanceled(e)
	case *temporal.TerminatedError:
		return &contract.Failure{Code: contract.CodeTerminated, Message: "Somebody terminated the call."}
	case *temporal.TimeoutError:
		return timedOut(e)
	case *temporal.ApplicationError:
		return fromApplicationError(e)
	case *temporal.PanicError:
		return &contract.Failure{Code: contract.CodeFailed, Type: typePanic, Message: "The code behind the tool panicked: " + e.Error()}
	case *nexus.HandlerError:
		return fromHandlerError(e)
	case *nexus.OperationError:
		return fromOperationError(e)
	case *temporal.ServerError:
		return fromServerError(e)
	case *temporal.NexusOperationError:
		if f := classify(e.Cause); f != nil {
			return f
		}
		return &contract.Failure{Code: contract.CodeFailed, Message: text(e.Cause, e.Message)}
	case *temporal.ActivityError, *temporal.ChildWorkflowExecutionError, *temporal.WorkflowExecutionError:
		// Their own text names event IDs and hosts.
		cause := errors.Unwrap(err)
		if f := classify(cause); f != nil {
			return f
		}
		return &contract.Failure{Code: contract.CodeFailed, Message: text(cause, "")}
	}
	if f := fromService(err); f != nil {
		return f
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if f := classify(e); f != nil {
				return f
			}
		}
		return nil
	}
	return classify(errors.Unwrap(err))
}

func text(err error, fallback string) string {
	if err == nil {
		return fallback
	}
	return err.Error()
}

// fromService classes what the Temporal service answered, or that it did not.
func fromService(err error) *contract.Failure {
	switch err { //nolint:errorlint // as in classify
	case context.Canceled:
		return &contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}
	case context.DeadlineExceeded:
		return &contract.Failure{Code: contract.CodeTimedOut, Message: "The call timed out.", Retryable: true}
	}
	switch err.(type) { //nolint:errorlint // as in classify
	case *serviceerror.NamespaceNotFound:
		return unavailable("Temporal does not know the namespace: "+err.Error(), false)
	case *serviceerror.NotFound:
		return unavailable("Temporal does not have it: "+err.Error(), false)
	case *serviceerror.Unimplemented, *serviceerror.ClientVersionNotSupported, *serviceerror.ServerVersionNotSupported:
		return unavailable("The Temporal server cannot do it: "+err.Error(), false)
	case *serviceerror.PermissionDenied:
		return unavailable("The Temporal server does not permit it.", false)
	case *serviceerror.ResourceExhausted:
		return unavailable("Temporal is over a limit: "+err.Error(), true)
	case *serviceerror.Unavailable, *serviceerror.DeadlineExceeded, *serviceerror.Canceled, *serviceerror.Internal,
		*serviceerror.Aborted, *serviceerror.DataLoss, *serviceerror.NamespaceNotActive, *serviceerror.NamespaceUnavailable:
		return unavailable("Temporal does not answer.", true)
	case *serviceerror.InvalidArgument, *serviceerror.FailedPrecondition, *serviceerror.AlreadyExists,
		*serviceerror.NexusOperationExecutionAlreadyStarted, *serviceerror.WorkflowExecutionAlreadyStarted,
		*serviceerror.ActivityExecutionAlreadyStarted, *serviceerror.CancellationAlreadyRequested,
		*serviceerror.NamespaceInvalidState:
		return &contract.Failure{Code: contract.CodeInvalid, Message: "The Temporal server refused the call: " + err.Error()}
	}
	if serviceerror.ToStatus(err).Code().String() == "Unauthenticated" { // has no type of its own
		return unavailable("The Temporal server does not know who asks: check the credentials.", false)
	}
	return nil
}

func unavailable(message string, retryable bool) *contract.Failure {
	return &contract.Failure{Code: contract.CodeUnavailable, Message: message, Retryable: retryable}
}

// bodyTooLarge is what the server says of a service's answer that it cannot keep.
// The failure has no type or code for it.
const bodyTooLarge = "http: response body too large"

func fromServerError(e *temporal.ServerError) *contract.Failure {
	if e.Message() == bodyTooLarge {
		return resultTooLarge()
	}
	return &contract.Failure{Code: contract.CodeFailed, Type: "ServerError", Message: "The Temporal server ended the call: " + e.Message()}
}

func resultTooLarge() *contract.Failure {
	return &contract.Failure{
		Code: contract.CodePayloadTooLarge,
		Message: fmt.Sprintf("The result is over the payload limit of Temporal: one payload holds at most %d bytes. "+
			"Ask for less, or for a part at a time.", contract.PayloadLimit-contract.PayloadOverhead),
	}
}

func fromCanceled(e *temporal.CanceledError) *contract.Failure {
	if f := classify(errors.Unwrap(e)); f != nil && f.Code == contract.CodeCanceled {
		return f
	}
	f := &contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}
	if reason := e.Error(); reason != "" && reason != "canceled" {
		f.Message = "The call was canceled: " + reason
	}
	return f
}

func timedOut(e *temporal.TimeoutError) *contract.Failure {
	f := &contract.Failure{Code: contract.CodeTimedOut, Message: "The call timed out.", Retryable: true}
	f.Type = map[enumspb.TimeoutType]string{
		enumspb.TIMEOUT_TYPE_START_TO_CLOSE:    "start-to-close",
		enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START: "schedule-to-start",
		enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "schedule-to-close",
		enumspb.TIMEOUT_TYPE_HEARTBEAT:         "heartbeat",
	}[e.TimeoutType()]
	if f.Type != "" {
		f.Message = "The call timed out: its " + f.Type + " timeout ran out."
	}
	return f
}

func fromApplicationError(e *temporal.ApplicationError) *contract.Failure {
	f := &contract.Failure{Code: contract.CodeFailed, Type: e.Type(), Message: e.Message(), Retryable: !e.NonRetryable()}
	cause := errors.Unwrap(e)
	switch {
	case isCode(e.Type()):
		f.Code, f.Type = contract.Code(e.Type()), ""
		if wireType(f.Code) {
			f.Retryable = false
			f.Details = details(e)
		}
	case e.Type() == typeCallError && e.Message() == bodyTooLarge:
		return resultTooLarge()
	case e.Type() == typePayloadSize:
		f.Code, f.Type, f.Retryable = contract.CodePayloadTooLarge, "", false
		f.Message = "The result is over the payload limit of Temporal: " + e.Message()
	case e.Type() == typeOperationError || e.Type() == typeWrapped:
		// A wrapper, whose type says nothing: the error inside says what happened.
		f.Type = ""
		inner := classify(cause)
		if inner == nil {
			break
		}
		if e.Type() == typeOperationError {
			return operationFailed(e.Message(), cause, *inner)
		}
		wrapped := *inner
		wrapped.Message = prefixed(e.Message(), cause, inner.Message)
		return &wrapped
	}
	if f.Message == "" && cause != nil {
		f.Message = FromError(cause).Message
	}
	return f
}

// operationFailed returns the failure of an operation whose error has a message
// and a cause. The message is what the service chose to say.
func operationFailed(message string, cause error, inner contract.Failure) *contract.Failure {
	inner.Retryable = false
	if strings.HasSuffix(message, cause.Error()) {
		inner.Message = prefixed(message, cause, inner.Message)
	} else if message != "" && inner.Code == contract.CodeFailed {
		inner.Message = message
	}
	return &inner
}

// prefixed returns the inner message with what a wrapper's message says before
// the text of its cause. That text itself may name types, event IDs and hosts.
func prefixed(outer string, cause error, inner string) string {
	prefix, _ := strings.CutSuffix(outer, cause.Error())
	if len(prefix) == len(outer) {
		return inner
	}
	return prefix + inner
}

func details(e *temporal.ApplicationError) (data json.RawMessage) {
	if !e.HasDetails() {
		return nil
	}
	// The SDK panics where an error that did not travel has details of another
	// type than the variable's.
	defer func() {
		if recover() != nil {
			data = nil
		}
	}()
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
	inner := classify(e.Cause)
	message := e.Message
	switch {
	case inner != nil && wireType(inner.Code):
		return inner
	case inner != nil && (message == "" || e.Type == nexus.HandlerErrorTypeInternal || e.Type == ""):
		message = inner.Message // the SDK's own text for an error of the code behind
	case inner != nil:
		if !strings.HasSuffix(message, e.Cause.Error()) {
			message += ": " + e.Cause.Error()
		}
		message = prefixed(message, e.Cause, inner.Message)
	case message == "":
		message = text(e.Cause, "it answered "+string(e.Type)+".")
	}
	switch e.Type {
	case nexus.HandlerErrorTypeNotFound, nexus.HandlerErrorTypeNotImplemented,
		nexus.HandlerErrorTypeUnauthenticated, nexus.HandlerErrorTypeUnauthorized,
		nexus.HandlerErrorTypeUnavailable, nexus.HandlerErrorTypeUpstreamTimeout,
		nexus.HandlerErrorTypeRequestTimeout, nexus.HandlerErrorTypeResourceExhausted:
		return unavailable("The service did not take the call: "+message, e.Retryable())
	case nexus.HandlerErrorTypeBadRequest, nexus.HandlerErrorTypeConflict:
		return &contract.Failure{Code: contract.CodeFailed, Type: string(e.Type), Message: message, Retryable: e.Retryable()}
	default:
		f := &contract.Failure{Code: contract.CodeFailed, Type: string(e.Type)}
		if inner != nil {
			*f = *inner
		}
		f.Message, f.Retryable = message, e.Retryable()
		return f
	}
}

func fromOperationError(e *nexus.OperationError) *contract.Failure {
	if e.State == nexus.OperationStateCanceled {
		f := &contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}
		if inner := classify(e.Cause); inner != nil && inner.Code == contract.CodeCanceled {
			return inner
		}
		if e.Message != "" {
			f.Message = "The call was canceled: " + e.Message
		}
		return f
	}
	inner := classify(e.Cause)
	if inner == nil {
		message := e.Message
		if message == "" {
			message = text(e.Cause, "")
		}
		return &contract.Failure{Code: contract.CodeFailed, Message: message}
	}
	return operationFailed(e.Message, e.Cause, *inner)
}
