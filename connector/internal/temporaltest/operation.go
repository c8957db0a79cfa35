package temporaltest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
)

// operation is guarded by the frontend's mutex; output and failure do not change
// once closed is.
type operation struct {
	start     *workflowservice.StartNexusOperationExecutionRequest
	scheduled time.Time
	cancel    context.CancelFunc
	reason    string // of a requested cancellation

	closed  chan struct{}
	closeAt time.Time
	status  enumspb.NexusOperationExecutionStatus
	output  json.RawMessage
	failure *failurepb.Failure
}

func (op *operation) close(output json.RawMessage, err error) {
	if !op.closeAt.IsZero() {
		return
	}
	op.closeAt, op.output = time.Now(), output
	op.status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_COMPLETED
	if err != nil {
		op.fail(err)
	}
	close(op.closed)
	op.cancel()
}

// fail wraps the cause as the server does.
func (op *operation) fail(err error) {
	var cause *failurepb.Failure
	switch {
	case errors.Is(err, errTimedOut):
		op.status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_TIMED_OUT
		cause = &failurepb.Failure{Message: "operation timed out", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
			TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE},
		}}
	case errors.Is(err, context.Canceled):
		op.status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_CANCELED
		cause = &failurepb.Failure{Message: "operation canceled", FailureInfo: &failurepb.Failure_CanceledFailureInfo{
			CanceledFailureInfo: &failurepb.CanceledFailureInfo{},
		}}
	default:
		op.status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_FAILED
		cause = temporal.GetDefaultFailureConverter().ErrorToFailure(err)
	}
	op.failure = &failurepb.Failure{
		Message: "nexus operation completed unsuccessfully", Cause: cause,
		FailureInfo: &failurepb.Failure_NexusOperationExecutionFailureInfo{
			NexusOperationExecutionFailureInfo: &failurepb.NexusOperationFailureInfo{
				Endpoint: op.start.GetEndpoint(), Service: op.start.GetService(), Operation: op.start.GetOperation(),
			},
		},
	}
}

func (op *operation) info() *nexuspb.NexusOperationExecutionInfo {
	info := &nexuspb.NexusOperationExecutionInfo{
		OperationId: op.start.GetOperationId(), RunId: "run",
		Endpoint: op.start.GetEndpoint(), Service: op.start.GetService(), Operation: op.start.GetOperation(),
		Status: op.status, ScheduleTime: stamp(op.scheduled), CloseTime: stamp(op.closeAt),
		UserMetadata: op.start.GetUserMetadata(),
	}
	if op.status == enumspb.NEXUS_OPERATION_EXECUTION_STATUS_FAILED {
		info.LastAttemptFailure = op.failure.GetCause()
	}
	if op.reason != "" {
		info.CancellationInfo = &nexuspb.NexusOperationExecutionCancellationInfo{Reason: op.reason}
	}
	return info
}

func (op *operation) listInfo() *nexuspb.NexusOperationExecutionListInfo {
	return &nexuspb.NexusOperationExecutionListInfo{
		OperationId: op.start.GetOperationId(), RunId: "run",
		Endpoint: op.start.GetEndpoint(), Service: op.start.GetService(), Operation: op.start.GetOperation(),
		Status: op.status, ScheduleTime: stamp(op.scheduled), CloseTime: stamp(op.closeAt),
	}
}
