package resultmap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

const secret = "hunter2"

var errSecret = errors.New("dial 10.0.0.1:443: token " + secret)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// failures has one failure for each code.
func failures() map[contract.Code]contract.Failure {
	all := map[contract.Code]contract.Failure{}
	for _, code := range contract.Codes() {
		all[code] = contract.Failure{Code: code, Message: "What <happened>: " + string(code), Cause: errSecret}
	}
	set := func(code contract.Code, f func(*contract.Failure)) {
		v := all[code]
		f(&v)
		all[code] = v
	}
	set(contract.CodeToolError, func(f *contract.Failure) {
		f.Details = raw(`{"content":[{"type":"hologram","n":1.0,"s":"<\ud800>"}], "isError":true,"z":9007199254740993,"a":-0}`)
	})
	set(contract.CodeProtocolError, func(f *contract.Failure) {
		f.Details = raw(`{"code":-32602,"message":"What <happened>","data":{"n":1e400}}`)
	})
	set(contract.CodeFailed, func(f *contract.Failure) { f.Type = "OutOfStock" })
	set(contract.CodeTimedOut, func(f *contract.Failure) { f.Retryable = true })
	return all
}

// travel does what happens to an error between a service and its caller: the
// worker writes it as a failure, the server stores it, the caller reads it.
func travel(t *testing.T, err error) error {
	t.Helper()

	if opErr, ok := errors.AsType[*nexus.OperationError](err); ok { // as the worker of the Go SDK does
		if opErr.State == nexus.OperationStateCanceled {
			err = temporal.NewCanceledErrorWithOptions(temporal.CanceledErrorOptions{Message: opErr.Message, Cause: opErr.Cause})
		} else {
			err = temporal.NewApplicationErrorWithOptions(opErr.Message, "OperationError",
				temporal.ApplicationErrorOptions{NonRetryable: true, Cause: opErr.Cause})
		}
	}
	fc := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: converter.GetDefaultDataConverter()})
	data, merr := fc.ErrorToFailure(err).Marshal()
	require.NoError(t, merr)
	require.NotContains(t, string(data), secret)
	var stored failurepb.Failure
	require.NoError(t, stored.Unmarshal(data))
	return fc.FailureToError(&stored)
}

func TestFailuresTravel(t *testing.T) {
	t.Parallel()

	all := failures()
	require.Len(t, all, len(contract.Codes()))
	wrappers := map[string]func(t *testing.T, f contract.Failure) error{
		"operation": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			return travel(t, resultmap.OperationError(&f))
		},
		"activity or workflow": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			return travel(t, resultmap.ApplicationError(&f))
		},
		"handler": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			return travel(t, &nexus.HandlerError{
				Type: nexus.HandlerErrorTypeInternal, Message: "handler failed with non-retryable application error",
				Cause: resultmap.ApplicationError(&f), RetryBehavior: nexus.HandlerErrorRetryBehaviorNonRetryable,
			})
		},
		"workflow of an activity": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			return toError(t, wrapActivity(toProto(resultmap.ApplicationError(&f))))
		},
		"workflow that wraps the error of an activity": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			err := toError(t, wrapActivity(toProto(resultmap.ApplicationError(&f))))
			return travel(t, fmt.Errorf("%w", err))
		},
		"workflow that called the operation": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			return toError(t, wrapOperation(toProto(travel(t, resultmap.OperationError(&f)))))
		},
		"workflow client": func(t *testing.T, f contract.Failure) error {
			t.Helper()

			err := toError(t, wrapOperation(toProto(travel(t, resultmap.OperationError(&f)))))
			return fmt.Errorf("call of a tool: %w", errors.Join(errors.New("two things"), err))
		},
		"not at all": func(_ *testing.T, f contract.Failure) error { return resultmap.OperationError(&f) },
	}
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for code, f := range all {
				err := wrap(t, f)
				got := resultmap.FromError(err)
				require.Equal(t, err, got.Cause, code)
				require.NotContains(t, err.Error(), secret)

				want := f
				want.Cause = got.Cause
				if strings.Contains(name, "op") || name == "handler" || name == "workflow client" || name == "not at all" {
					want.Retryable = false // the operation is over
				}
				require.Equal(t, want, *got, code)
				require.NotContains(t, string(got.Result().JSON()), secret)
			}
		})
	}
}

func toProto(err error) *failurepb.Failure {
	return temporal.GetDefaultFailureConverter().ErrorToFailure(err)
}

func toError(t *testing.T, f *failurepb.Failure) error {
	t.Helper()

	data, err := f.Marshal()
	require.NoError(t, err)
	var stored failurepb.Failure
	require.NoError(t, stored.Unmarshal(data))
	return temporal.GetDefaultFailureConverter().FailureToError(&stored)
}

func wrapActivity(cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{
		Message: "activity error", Cause: cause,
		FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{
			ScheduledEventId: 5, Identity: "7@10.0.0.3", ActivityType: &commonpb.ActivityType{Name: "lookUp"},
		}},
	}
}

func wrapChild(cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{
		Message: "child workflow execution error", Cause: cause,
		FailureInfo: &failurepb.Failure_ChildWorkflowExecutionFailureInfo{
			ChildWorkflowExecutionFailureInfo: &failurepb.ChildWorkflowExecutionFailureInfo{Namespace: "10.0.0.3"},
		},
	}
}

func wrapOperation(cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{
		Message: "nexus operation completed unsuccessfully", Cause: cause,
		FailureInfo: &failurepb.Failure_NexusOperationExecutionFailureInfo{
			NexusOperationExecutionFailureInfo: &failurepb.NexusOperationFailureInfo{Endpoint: "e", Service: "s", Operation: "o"},
		},
	}
}

func server(message string, nonRetryable bool) *failurepb.Failure {
	return &failurepb.Failure{Message: message, FailureInfo: &failurepb.Failure_ServerFailureInfo{
		ServerFailureInfo: &failurepb.ServerFailureInfo{NonRetryable: nonRetryable},
	}}
}

func TestFromErrorGoesByType(t *testing.T) {
	t.Parallel()

	app := func(message, typ string, cause error) error {
		return temporal.NewApplicationErrorWithOptions(message, typ, temporal.ApplicationErrorOptions{NonRetryable: true, Cause: cause})
	}
	activity := func(err error) error { return toError(t, wrapActivity(toProto(err))) }
	handler := func(typ nexus.HandlerErrorType, message string, cause error) error {
		return &nexus.HandlerError{Type: typ, Message: message, Cause: cause}
	}
	cases := []struct {
		name  string
		err   error
		want  contract.Failure
		local bool // the error cannot travel
	}{
		{name: "ordinary application error", err: app("No key 7.", "NoKey", nil),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "retryable one", err: temporal.NewApplicationError("Try later.", "Busy"),
			want: contract.Failure{Code: contract.CodeFailed, Type: "Busy", Message: "Try later.", Retryable: true}},
		{name: "with a cause", err: app("No key 7.", "NoKey", errors.New("sql: no rows")),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "a message in the cause only", err: app("", "NoKey", errors.New("sql: no rows")),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "sql: no rows"}},
		{name: "no message at all", err: app("", "NoKey", nil),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "The call failed without saying why."}},
		{name: "plain error", err: errors.New("boom"),
			want: contract.Failure{Code: contract.CodeFailed, Message: "boom"}, local: true},
		{name: "plain error of a workflow", err: errors.New("boom"),
			want: contract.Failure{Code: contract.CodeFailed, Message: "boom", Retryable: true}},
		{name: "error of an activity", err: activity(app("No key 7.", "NoKey", nil)),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "wrapped by fmt.Errorf", err: fmt.Errorf("step 2: %w", activity(app("No key 7.", "NoKey", nil))),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "step 2: No key 7."}},
		{name: "wrapped with words behind", err: fmt.Errorf("(%w)", activity(app("No key 7.", "NoKey", nil))),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "wrapped, here", err: fmt.Errorf("step 2: %w", activity(app("No key 7.", "NoKey", nil))), local: true,
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "a wire type inside another type", err: app("Step 2 failed.", "StepError", app("x", contract.TypeOutcomeUnknown, nil)),
			want: contract.Failure{Code: contract.CodeFailed, Type: "StepError", Message: "Step 2 failed."}},
		{name: "a wire type of a retryable error", err: temporal.NewApplicationError("x", contract.TypeOutcomeUnknown),
			want: contract.Failure{Code: contract.CodeOutcomeUnknown, Message: "x"}},
		{name: "activity without a cause", err: toError(t, wrapActivity(nil)), local: true,
			want: contract.Failure{Code: contract.CodeFailed, Message: "The call failed without saying why."}},
		{name: "child workflow", err: toError(t, wrapChild(wrapActivity(toProto(app("No key 7.", "NoKey", nil))))),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "workflow call without a cause", err: toError(t, wrapOperation(nil)),
			want: contract.Failure{Code: contract.CodeFailed, Message: "nexus operation completed unsuccessfully"}},
		{name: "panic", err: toError(t, &failurepb.Failure{Message: "index out of range", StackTrace: "goroutine 1 " + secret, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "PanicError"}}}), local: true,
			want: contract.Failure{Code: contract.CodeFailed, Type: "PanicError", Message: "The code behind the tool panicked: index out of range"}},
		{name: "oversize result of an activity", err: temporal.NewApplicationError("[TMPRL1103] too large", "payloadSizeError"),
			want: contract.Failure{Code: contract.CodePayloadTooLarge, Message: "The result is over the payload limit of Temporal: [TMPRL1103] too large"}},

		{name: "canceled", err: temporal.NewCanceledError(), want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}},
		{name: "canceled with a reason", err: temporal.NewCanceledErrorWithOptions(temporal.CanceledErrorOptions{Message: "the user left"}),
			want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled: the user left"}},
		{name: "canceled by an activity", err: activity(temporal.NewCanceledError()),
			want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}},
		{name: "operation canceled", err: nexus.NewOperationCanceledErrorf("the user left"),
			want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled: the user left"}},
		{name: "operation canceled, here", err: nexus.NewOperationCanceledErrorf("the user left"), local: true,
			want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled: the user left"}},
		{name: "terminated", err: toError(t, &failurepb.Failure{FailureInfo: &failurepb.Failure_TerminatedFailureInfo{}}), local: true,
			want: contract.Failure{Code: contract.CodeTerminated, Message: "Somebody terminated the call."}},
		{name: "schedule-to-close", err: timeout(t, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE),
			want: contract.Failure{Code: contract.CodeTimedOut, Type: "schedule-to-close", Message: "The call timed out: its schedule-to-close timeout ran out.", Retryable: true}},
		{name: "schedule-to-start", err: timeout(t, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START),
			want: contract.Failure{Code: contract.CodeTimedOut, Type: "schedule-to-start", Message: "The call timed out: its schedule-to-start timeout ran out.", Retryable: true}},
		{name: "start-to-close of an activity", err: activity(timeout(t, enumspb.TIMEOUT_TYPE_START_TO_CLOSE)),
			want: contract.Failure{Code: contract.CodeTimedOut, Type: "start-to-close", Message: "The call timed out: its start-to-close timeout ran out.", Retryable: true}},
		{name: "heartbeat", err: timeout(t, enumspb.TIMEOUT_TYPE_HEARTBEAT),
			want: contract.Failure{Code: contract.CodeTimedOut, Type: "heartbeat", Message: "The call timed out: its heartbeat timeout ran out.", Retryable: true}},
		{name: "some timeout", err: timeout(t, enumspb.TIMEOUT_TYPE_UNSPECIFIED),
			want: contract.Failure{Code: contract.CodeTimedOut, Message: "The call timed out.", Retryable: true}},
		{name: "server", err: toError(t, server("http: response body too large", true)),
			want: contract.Failure{Code: contract.CodePayloadTooLarge, Message: "The result is over the payload limit of Temporal: one payload holds at most 2097088 bytes. " +
				"Ask for less, or for a part at a time."}},

		{name: "server, for a Workflow", err: temporal.NewNonRetryableApplicationError("http: response body too large", "CallError", nil),
			want: contract.Failure{Code: contract.CodePayloadTooLarge, Message: "The result is over the payload limit of Temporal: one payload holds at most 2097088 bytes. " +
				"Ask for less, or for a part at a time."}},

		{name: "operation failed", err: nexus.NewOperationFailedErrorf("no key %d", 7),
			want: contract.Failure{Code: contract.CodeFailed, Message: "no key 7"}},
		{name: "operation failed, here", err: nexus.NewOperationFailedErrorf("no key %d", 7), local: true,
			want: contract.Failure{Code: contract.CodeFailed, Message: "no key 7"}},
		{name: "operation failed around a type", err: nexus.NewOperationFailedErrorf("no key 7: %w", app("sql", "NoRows", nil)),
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoRows", Message: "no key 7: sql"}},
		{name: "operation failed with a message of its own", err: &nexus.OperationError{
			State: nexus.OperationStateFailed, Message: "No key 7.", Cause: app("sql: "+secret, "NoRows", nil)}, local: true,
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoRows", Message: "No key 7."}},
		{name: "operation failed with a cause only", err: &nexus.OperationError{State: nexus.OperationStateFailed, Cause: app("No key 7.", "NoKey", nil)},
			want: contract.Failure{Code: contract.CodeFailed, Type: "NoKey", Message: "No key 7."}},
		{name: "operation failed with a plain cause only, here", err: &nexus.OperationError{State: nexus.OperationStateFailed, Cause: errors.New("no key 7")}, local: true,
			want: contract.Failure{Code: contract.CodeFailed, Message: "no key 7"}},

		{name: "unknown operation", err: handler(nexus.HandlerErrorTypeNotFound, `operation "x" not found`, nil),
			want: contract.Failure{Code: contract.CodeUnavailable, Message: `The service did not take the call: operation "x" not found`}},
		{name: "unknown operation in the cause", err: handler(nexus.HandlerErrorTypeNotFound, "", errors.New(`operation "x" not found`)),
			want: contract.Failure{Code: contract.CodeUnavailable, Message: `The service did not take the call: operation "x" not found`}},
		{name: "no words", err: handler(nexus.HandlerErrorTypeUnauthorized, "", nil),
			want: contract.Failure{Code: contract.CodeUnavailable, Message: `The service did not take the call: it answered UNAUTHORIZED.`}},
		{name: "no worker", err: handler(nexus.HandlerErrorTypeUpstreamTimeout, "upstream timeout", nil),
			want: contract.Failure{Code: contract.CodeUnavailable, Message: `The service did not take the call: upstream timeout`, Retryable: true}},
		{name: "bad request", err: handler(nexus.HandlerErrorTypeBadRequest, "cannot deserialize operation input", app("unable to decode: not a number", "", nil)),
			want: contract.Failure{Code: contract.CodeFailed, Type: "BAD_REQUEST", Message: "cannot deserialize operation input: unable to decode: not a number"}},
		{name: "bad request with %w", err: &nexus.HandlerError{Type: nexus.HandlerErrorTypeBadRequest, Message: "no key: sql", Cause: errors.New("sql")},
			want: contract.Failure{Code: contract.CodeFailed, Type: "BAD_REQUEST", Message: "no key: sql"}},
		{name: "bad request, bare", err: handler(nexus.HandlerErrorTypeBadRequest, "", nil),
			want: contract.Failure{Code: contract.CodeFailed, Type: "BAD_REQUEST", Message: "it answered BAD_REQUEST."}},
		{name: "conflict", err: handler(nexus.HandlerErrorTypeConflict, "exists", nil),
			want: contract.Failure{Code: contract.CodeFailed, Type: "CONFLICT", Message: "exists"}},
		{name: "internal", err: handler(nexus.HandlerErrorTypeInternal, "internal handler error", errors.New("boom")),
			want: contract.Failure{Code: contract.CodeFailed, Message: "boom", Retryable: true}},
		{name: "internal, bare", err: &nexus.HandlerError{Type: nexus.HandlerErrorTypeInternal, Message: "x", RetryBehavior: nexus.HandlerErrorRetryBehaviorNonRetryable},
			want: contract.Failure{Code: contract.CodeFailed, Type: "INTERNAL", Message: "x"}},
		{name: "a wire type under any handler error", err: handler(nexus.HandlerErrorTypeNotFound, "x", app("y", contract.TypeOutcomeUnknown, nil)),
			want: contract.Failure{Code: contract.CodeOutcomeUnknown, Message: "y"}},

		{name: "unknown endpoint", err: serviceerror.NewNotFound(`endpoint "x" not found`), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: `Temporal does not have it: endpoint "x" not found`}},
		{name: "unknown namespace", err: serviceerror.NewNamespaceNotFound("ns"), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "Temporal does not know the namespace: Namespace ns is not found."}},
		{name: "feature off", err: serviceerror.NewUnimplemented("Standalone Nexus operation is disabled"), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "The Temporal server cannot do it: Standalone Nexus operation is disabled"}},
		{name: "no connection", err: fmt.Errorf("dial: %w", serviceerror.NewUnavailable("dial tcp 10.0.0.1:7233: "+secret)), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "Temporal does not answer.", Retryable: true}},
		{name: "request canceled on the way", err: serviceerror.NewCanceled("context canceled"), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "Temporal does not answer.", Retryable: true}},
		{name: "overloaded", err: serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "namespace rate limit exceeded"), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "Temporal is over a limit: namespace rate limit exceeded", Retryable: true}},
		{name: "not permitted", err: serviceerror.NewPermissionDenied("Request unauthorized.", secret), local: true,
			want: contract.Failure{Code: contract.CodeUnavailable, Message: "The Temporal server does not permit it."}},
		{name: "bad start", err: serviceerror.NewInvalidArgument("input exceeds size limit"), local: true,
			want: contract.Failure{Code: contract.CodeInvalid, Message: "The Temporal server refused the call: input exceeds size limit"}},
		{name: "already started", err: serviceerror.NewNexusOperationExecutionAlreadyStarted("already started", "", "r"), local: true,
			want: contract.Failure{Code: contract.CodeInvalid, Message: "The Temporal server refused the call: already started"}},
		{name: "caller's context canceled", err: fmt.Errorf("x: %w", context.Canceled), local: true,
			want: contract.Failure{Code: contract.CodeCanceled, Message: "The call was canceled."}},
		{name: "caller's deadline", err: context.DeadlineExceeded, local: true,
			want: contract.Failure{Code: contract.CodeTimedOut, Message: "The call timed out.", Retryable: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			err := c.err
			if !c.local {
				err = travel(t, err)
			}
			got := resultmap.FromError(err)
			require.Equal(t, err, got.Cause)
			require.NotContains(t, string(got.Result().JSON()), secret)
			got.Cause = nil
			require.Equal(t, c.want, *got)
			if c.local {
				return
			}
			again := resultmap.FromError(toError(t, wrapOperation(toProto(err))))
			again.Cause = nil
			require.Equal(t, c.want, *again, "a Workflow sees the same")
		})
	}
}

func timeout(t *testing.T, typ enumspb.TimeoutType) error {
	t.Helper()

	return toError(t, &failurepb.Failure{Message: "operation timed out", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
		TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: typ},
	}})
}

func TestFromErrorKeepsAFailure(t *testing.T) {
	t.Parallel()

	require.Nil(t, resultmap.FromError(nil))
	f := &contract.Failure{Code: contract.CodeFailed, Cause: errSecret}
	before := *f
	require.Same(t, f, resultmap.FromError(f))
	require.Same(t, f, resultmap.FromError(fmt.Errorf("x: %w", f)))
	require.Same(t, f, resultmap.FromError(errors.Join(errors.New("x"), f)))
	outer := resultmap.FromError(temporal.NewApplicationErrorWithCause("x: ", "wrapError", f))
	require.NotSame(t, f, outer)
	require.Equal(t, before, *f)
	require.Equal(t, contract.CodeCanceled, resultmap.FromError(temporal.NewCanceledErrorWithOptions(
		temporal.CanceledErrorOptions{Cause: f})).Code, "the outermost decides")
}

func TestFailuresFitIntoTemporal(t *testing.T) {
	t.Parallel()

	f := &contract.Failure{Code: contract.CodeFailed, Type: "T\xff", Message: strings.Repeat("é", 1<<20) + "\xff"}
	got := resultmap.FromError(travel(t, resultmap.OperationError(f)))
	require.LessOrEqual(t, len(got.Message), 16<<10)
	require.True(t, strings.HasPrefix(got.Message, "éé") && strings.HasSuffix(got.Message, "é…"), "cut between two letters")
	require.Equal(t, "T\uFFFD", got.Type)

	const room = contract.PayloadLimit/4*3 - 128<<10
	detail := func(n int) json.RawMessage { return contract.TextResult(strings.Repeat("x", n-64), true).JSON() }
	fits, err := contract.DecodeResult(detail(room))
	require.NoError(t, err)
	tool := resultmap.ToolError(fits)
	require.LessOrEqual(t, len(tool.Message), 16<<10)
	got = resultmap.FromError(travel(t, resultmap.OperationError(tool)))
	require.Equal(t, contract.CodeToolError, got.Code)
	require.Equal(t, string(fits.JSON()), string(got.Details))
	require.Less(t, toProto(resultmap.ApplicationError(tool)).Size(), contract.PayloadLimit)

	over := *tool
	over.Details = detail(room + 65)
	got = resultmap.FromError(travel(t, resultmap.OperationError(&over)))
	require.Equal(t, contract.CodePayloadTooLarge, got.Code)
	require.Contains(t, got.Message, fmt.Sprintf("would take %d bytes", len(over.Details)))

	// A type that reads as a code does not make another failure of it.
	got = resultmap.FromError(travel(t, resultmap.ApplicationError(&contract.Failure{Code: contract.CodeFailed, Type: contract.TypeToolError, Message: "x"})))
	require.Equal(t, contract.Failure{Code: contract.CodeFailed, Message: "x", Cause: got.Cause}, *got)
	got = resultmap.FromError(travel(t, resultmap.ApplicationError(&contract.Failure{Message: "x", Retryable: true})))
	require.Equal(t, contract.Failure{Code: contract.CodeFailed, Message: "x", Retryable: true, Cause: got.Cause}, *got)
	var app *temporal.ApplicationError
	require.ErrorAs(t, resultmap.ApplicationError(&contract.Failure{Code: contract.CodeOutcomeUnknown, Retryable: true}), &app)
	require.True(t, app.NonRetryable(), "what the contract names is never retried")
}

func TestDetailsOfAnotherEncoding(t *testing.T) {
	t.Parallel()

	encrypted := converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: []byte("…")})
	err := temporal.NewNonRetryableApplicationError("no key 7", contract.TypeToolError, nil, encrypted)
	got := resultmap.FromError(travel(t, err))
	require.Equal(t, contract.CodeToolError, got.Code)
	require.Nil(t, got.Details)
	text, _ := got.Result().Text()
	require.Equal(t, "no key 7", text)
}

func TestToolAndProtocolErrors(t *testing.T) {
	t.Parallel()

	require.Equal(t, "a\nb", resultmap.ToolError(mustResult(t, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)).Message)
	require.Equal(t, "The tool reported an error.", resultmap.ToolError(mustResult(t, `{"content":[{"type":"text","text":""}]}`)).Message)
	require.Equal(t, "The tool reported an error.", resultmap.ToolError(contract.Result{}).Message)

	e := &contract.ProtocolError{Code: -32602, Message: "no", Data: raw(`{"n":1.0}`)}
	require.Equal(t, e, resultmap.ProtocolError(e).Protocol())
}

func mustResult(t *testing.T, s string) contract.Result {
	t.Helper()

	r, err := contract.DecodeResult(raw(s))
	require.NoError(t, err)
	return r
}

func TestToResult(t *testing.T) {
	t.Parallel()

	value := contract.Tool{Encoding: contract.EncodingValue}
	declared := contract.Tool{Encoding: contract.EncodingValue, OutputSchema: raw(`{}`)}
	mcp := contract.Tool{Encoding: contract.EncodingMCP}
	for _, c := range []struct {
		tool         contract.Tool
		output, want string
	}{
		{value, `[1.0]`, `{"content":[{"type":"text","text":"[1.0]"}]}`},
		{declared, `[1.0]`, `{"content":[{"type":"text","text":"[1.0]"}],"structuredContent":[1.0]}`},
		{contract.Tool{}, `null`, `{"content":[]}`},
		{mcp, `{"content":[{"type":"x","n":1.0}],"later":1}`, `{"content":[{"type":"x","n":1.0}],"later":1}`},
	} {
		r, err := resultmap.ToResult(c.tool, raw(c.output))
		require.NoError(t, err)
		require.Equal(t, c.want, string(r.JSON()))
	}
	var f *contract.Failure
	_, err := resultmap.ToResult(mcp, raw(`[1.0]`))
	require.ErrorAs(t, err, &f)
	require.Equal(t, contract.CodeFailed, f.Code)
	require.Equal(t, `The service answered with something that its encoding "mcp" does not allow: result: an array, want an object.`, f.Message)
	_, err = resultmap.ToResult(value, raw(`{`))
	require.ErrorAs(t, err, &f)
}

func TestPayloads(t *testing.T) {
	t.Parallel()

	dc := converter.GetDefaultDataConverter()
	for _, data := range []string{`{"b":1.0, "a":"<\ud800>"}`, `1e400`, `null`} {
		p, err := dc.ToPayload(resultmap.RawValue(raw(data)))
		require.NoError(t, err)
		require.Equal(t, data, string(p.GetData()))
		var back converter.RawValue
		require.NoError(t, dc.FromPayload(p, &back))
		got, err := resultmap.JSON(back)
		require.NoError(t, err)
		require.Equal(t, data, string(got))
	}
	require.Equal(t, "null", string(resultmap.RawValue(nil).Payload().GetData()))

	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, "null"},
		{[]byte("ab"), `"YWI="`},
		{map[string]int{"a": 1}, `{"a":1}`},
		{&commonpb.WorkflowExecution{WorkflowId: "w"}, `{"workflowId":"w"}`},
	} {
		p, err := dc.ToPayload(c.value)
		require.NoError(t, err)
		got, err := resultmap.JSON(converter.NewRawValue(p))
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got))
	}
	got, err := resultmap.JSON(converter.RawValue{})
	require.NoError(t, err)
	require.Equal(t, "null", string(got))

	var f *contract.Failure
	_, err = resultmap.JSON(converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}}))
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Message, `"binary/encrypted"`)
}
