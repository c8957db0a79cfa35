package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
)

// Notes in an activity's heartbeat details, before those of the author.
const (
	noteRepeatable = "the tool may run again"
	noteStarted    = "the tool has started"
)

// beat is how often a running activity tells Temporal that it lives, and hears
// whether it is cancelled: each second, and three times within a timeout of less
// than three. The SDK's own heartbeats are throttled to most of the timeout.
func (a *activityRunner) beat() time.Duration { return min(time.Second, a.heartbeatTimeout()/3) }

// run is the activity function.
func (a *activityRunner) run(ctx context.Context, arguments converter.RawValue, about call) (converter.RawValue, error) {
	none := converter.RawValue{}
	at := &attempt{ctx: ctx, note: noteRepeatable}
	earlier, err := at.earlier()
	if err != nil {
		return none, err
	}
	if !a.options.Repeatable {
		if earlier == noteStarted {
			return none, final(&contract.Failure{
				Code: contract.CodeOutcomeUnknown,
				Message: "The Worker that ran the tool is gone. What the tool does may have happened, " +
					"in whole or in part; it is not run again.",
			})
		}
		at.note = noteStarted
		if err := at.record(ctx); err != nil {
			return none, at.notStarted(err)
		}
	}
	raw, err := resultmap.JSON(arguments)
	if err != nil {
		return none, final(err)
	}
	stop := at.keepAlive(a.beat())
	result, err := protect(ctx, func() (any, error) { return a.f(withCall(at.authorContext(), about), raw) })
	stop()
	if err != nil {
		return none, a.ended(at, err)
	}
	data, err := activityResult(result)
	if err != nil {
		return none, final(err)
	}
	return resultmap.RawValue(data), nil
}

func activityResult(result any) (json.RawMessage, error) {
	if r, ok := result.(Result); ok && r.err == nil && r.raw.IsError() {
		return nil, r.Err()
	}
	return encodeResult(result)
}

// ended returns what the activity ends with for an error of the author's code.
func (a *activityRunner) ended(at *attempt, err error) error {
	cause := context.Cause(at.ctx)
	switch {
	case shouldRetry(err):
		at.note = noteRepeatable
		if recordErr := at.record(at.ctx); recordErr != nil && !a.options.Repeatable {
			activity.GetLogger(at.ctx).Warn("mcptool: the next attempt will not know that the tool may run again", "error", recordErr)
		}
		return temporal.NewApplicationError(sayable(err.Error()), string(contract.CodeFailed)) // retryable
	case cause == nil || !errors.Is(err, context.Canceled) && !errors.As(err, new(*temporal.CanceledError)):
		return final(err)
	case errors.As(cause, new(*temporal.CanceledError)) || a.options.Repeatable:
		return err // cancelled by the caller, or by a Worker that stops
	}
	return final(&contract.Failure{
		Code: contract.CodeOutcomeUnknown, Cause: err,
		Message: "The Worker stopped while the tool ran. What the tool does may have happened, in whole or in part; it is not run again.",
	})
}

// attempt is one run of an activity.
type attempt struct {
	ctx  context.Context
	note string

	mu       sync.Mutex
	progress []any // the author's heartbeat details
}

// earlier returns the note of an earlier attempt, and takes over the author's
// details: a heartbeat without them would forget them.
func (at *attempt) earlier() (string, error) {
	if !activity.HasHeartbeatDetails(at.ctx) {
		return "", nil
	}
	var note string
	const most = 32 // more details than anybody records
	details := make([]converter.RawValue, most)
	slots := []any{&note}
	for i := range details {
		slots = append(slots, &details[i])
	}
	if err := activity.GetHeartbeatDetails(at.ctx, slots...); err != nil {
		return "", final(&contract.Failure{
			Code: contract.CodeOutcomeUnknown, Cause: err,
			Message: "What an earlier attempt noted cannot be read; the tool is not run again.",
		})
	}
	for _, d := range details {
		if d.Payload() != nil {
			at.progress = append(at.progress, d)
		}
	}
	return note, nil
}

// record stores the note and the author's details in Temporal, for certain.
func (at *attempt) record(ctx context.Context) error {
	info := activity.GetInfo(at.ctx)
	if info.ActivityRunID == "" && info.Namespace == testNamespace {
		activity.RecordHeartbeat(at.ctx, at.details()...)
		return nil
	}
	return activity.GetClient(at.ctx).RecordActivityHeartbeat(ctx, info.TaskToken, at.details()...)
}

// testNamespace is that of the SDK's test environments, whose client ends the
// process.
const testNamespace = "default-test-namespace"

func (at *attempt) details() []any {
	at.mu.Lock()
	defer at.mu.Unlock()
	return append([]any{at.note}, at.progress...)
}

// notStarted returns what an attempt ends with that could not store its note.
func (at *attempt) notStarted(err error) error {
	if errors.As(err, new(*temporal.CanceledError)) {
		at.hear()
		return err
	}
	return temporal.NewApplicationErrorWithCause("The Worker could not note that the tool starts.", string(contract.CodeUnavailable), err)
}

// keepAlive heartbeats until stop is called.
func (at *attempt) keepAlive(beat time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(at.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				at.tick(ctx)
			}
		}
	}()
	return func() {
		cancel() // also a heartbeat that hangs
		<-ended
	}
}

func (at *attempt) tick(ctx context.Context) {
	err := at.record(ctx)
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.As(err, new(*temporal.CanceledError)), errors.As(err, new(*serviceerror.NotFound)):
		at.hear()
	default:
		activity.GetLogger(at.ctx).Warn("mcptool: heartbeat", "error", err)
	}
}

// hear lets the SDK find out what this attempt has been told: that it is
// cancelled, or that nobody waits for it any more. Its first heartbeat is not
// throttled, and cancels the context.
func (at *attempt) hear() {
	activity.RecordHeartbeat(at.ctx, at.details()...)
}

// authorContext is the activity's context with heartbeats that keep the note.
func (at *attempt) authorContext() context.Context { return authorContext{at.ctx, at} }

type authorContext struct {
	context.Context

	attempt *attempt
}

// Value puts the attempt between the author and the SDK's heartbeats.
func (c authorContext) Value(key any) any {
	v := c.Context.Value(key)
	if outbound, ok := v.(interceptor.ActivityOutboundInterceptor); ok {
		return heartbeats{outbound, c.attempt}
	}
	return v
}

type heartbeats struct {
	interceptor.ActivityOutboundInterceptor

	attempt *attempt
}

// RecordHeartbeat keeps the details for the next beat.
func (h heartbeats) RecordHeartbeat(_ context.Context, details ...any) {
	h.attempt.mu.Lock()
	defer h.attempt.mu.Unlock()
	h.attempt.progress = details
}

// HasHeartbeatDetails tells whether an earlier attempt of the author's code left
// details.
func (h heartbeats) HasHeartbeatDetails(ctx context.Context) bool {
	if !h.ActivityOutboundInterceptor.HasHeartbeatDetails(ctx) {
		return false
	}
	var note string
	var first converter.RawValue
	return h.ActivityOutboundInterceptor.GetHeartbeatDetails(ctx, &note, &first) == nil && first.Payload() != nil
}

// GetHeartbeatDetails reads the details of an earlier attempt behind its note.
func (h heartbeats) GetHeartbeatDetails(ctx context.Context, d ...any) error {
	if !h.HasHeartbeatDetails(ctx) {
		return temporal.ErrNoData
	}
	var note string
	return h.ActivityOutboundInterceptor.GetHeartbeatDetails(ctx, append([]any{&note}, d...)...)
}

// logger returns the logger of the call that a context belongs to.
func logger(ctx context.Context) log.Logger {
	switch {
	case activity.IsActivity(ctx):
		return activity.GetLogger(ctx)
	case temporalnexus.IsNexusOperation(ctx):
		return temporalnexus.GetLogger(ctx)
	}
	return log.NewStructuredLogger(slog.Default())
}
