package mcptool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// ToolError returns an error that is an answer for the model: the tool's result
// is the message, with isError set, and the call is not repeated. It works from
// an operation's handler, from an activity and from a Workflow; a Workflow must
// return it as it is, since Temporal hides what a Workflow wraps with %w.
// [Result.Err] does the same with more than a text.
func ToolError(message string) error { return Text(message).Err() }

// Retry asks for another attempt of a call that failed with err, bounded by the
// tool's ScheduleToCloseTimeout: without one, for ever. It is for errors after
// which the tool's work may be done again: from the handler of an operation, and
// from an activity of [NewActivityOperation]. It returns nil for nil.
//
// From a handler, use it sparingly: the Temporal server stops an endpoint for a
// minute after a few retries in a row.
func Retry(err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err}
}

type retryError struct{ err error }

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

func shouldRetry(err error) bool {
	var retry *retryError
	return errors.As(err, &retry)
}

// panicError is the panic of an author's code.
type panicError struct {
	value any
	stack []byte // for logs
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// toolError is a failure that tells the model what is wrong with its arguments.
func toolError(lines ...string) *contract.Failure {
	return resultmap.ToolError(contract.TextResult(strings.Join(lines, "\n"), true))
}

// handlerError returns what a Nexus handler answers for an error of the author's
// code. Starts says that the code starts something that a repeated start would
// attach to.
func handlerError(err error, starts bool) error {
	if shouldRetry(err) {
		return retryable(nexus.HandlerErrorTypeUnavailable, err)
	}
	var handler *nexus.HandlerError
	var operation *nexus.OperationError
	if errors.As(err, &handler) || errors.As(err, &operation) {
		return err
	}
	if typ, ok := transient(err); ok && starts {
		return retryable(typ, err)
	}
	if errors.As(err, new(*temporal.CanceledError)) {
		return resultmap.OperationError(&contract.Failure{Code: contract.CodeCanceled, Message: err.Error()})
	}
	cause := final(err)
	return &nexus.OperationError{State: nexus.OperationStateFailed, Message: cause.Message(), Cause: cause}
}

func retryable(typ nexus.HandlerErrorType, err error) error {
	return &nexus.HandlerError{
		Type: typ, Message: sayable(err.Error()), // a cause would say the same again
		RetryBehavior: nexus.HandlerErrorRetryBehaviorRetryable,
	}
}

// transient tells that Temporal did not answer from that it refused.
func transient(err error) (nexus.HandlerErrorType, bool) {
	if errors.As(err, new(*serviceerror.ResourceExhausted)) {
		return nexus.HandlerErrorTypeResourceExhausted, true
	}
	f := resultmap.FromError(err)
	unanswered := f.Code == contract.CodeUnavailable && f.Retryable || errors.Is(err, context.DeadlineExceeded)
	return nexus.HandlerErrorTypeUnavailable, unanswered
}

// final returns what an error of the author's code ends a call with: an error
// that nothing repeats. Its message is the author's own, for the caller to read.
func final(err error) *temporal.ApplicationError {
	var (
		failure     *contract.Failure
		application *temporal.ApplicationError
	)
	switch {
	case errors.As(err, &failure):
		return fromFailure(*failure)
	case errors.As(err, &application):
		f := resultmap.FromError(application)
		if f.Code != contract.CodeFailed {
			return fromFailure(*f)
		}
		options := temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: details(application), Cause: errors.Unwrap(application), Category: application.Category(),
		}
		return newApplicationError(messageOf(err, application), application.Type(), options)
	}
	return fromFailure(contract.Failure{Code: contract.CodeFailed, Message: err.Error()})
}

func fromFailure(f contract.Failure) *temporal.ApplicationError {
	f.Retryable = false
	var e *temporal.ApplicationError
	errors.As(resultmap.ApplicationError(&f), &e)
	return e
}

func newApplicationError(message, typ string, options temporal.ApplicationErrorOptions) *temporal.ApplicationError {
	var e *temporal.ApplicationError
	errors.As(temporal.NewApplicationErrorWithOptions(message, typ, options), &e)
	return e
}

// details returns the details of an error, whether the author made it here or it
// came from Temporal, as values that no codec has touched.
func details(e *temporal.ApplicationError) (found []any) {
	if !e.HasDetails() {
		return nil
	}
	var payloads []*commonpb.Payload
	// Details that were made here can only be read into variables of their own
	// types: the SDK panics otherwise.
	defer func() {
		if recover() != nil {
			found = nil
			for _, p := range payloads {
				found = append(found, converter.NewRawValue(p))
			}
		}
	}()
	failure := temporal.GetDefaultFailureConverter().ErrorToFailure(e)
	payloads = failure.GetApplicationFailureInfo().GetDetails().GetPayloads()
	raw, slots := make([]converter.RawValue, len(payloads)), make([]any, len(payloads))
	for i := range raw {
		slots[i] = &raw[i]
	}
	if e.Details(slots...) != nil {
		return nil
	}
	for _, r := range raw {
		found = append(found, r)
	}
	return found
}

// messageOf keeps what the author wrote around an application error, whose own
// text repeats its type.
func messageOf(err error, application *temporal.ApplicationError) string {
	return sayable(strings.Replace(err.Error(), application.Error(), application.Message(), 1))
}

// sayable returns a message as Temporal can carry it. A Worker that cannot report
// a failure looks like one that is dead.
func sayable(message string) string {
	const most = 16 << 10
	return brief(strings.ToValidUTF8(message, "\uFFFD"), most)
}
