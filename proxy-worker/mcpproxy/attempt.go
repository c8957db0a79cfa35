package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// Notes in the heartbeat details of an activity. A later attempt reads the last
// one, whatever became of the Worker that wrote it.
const (
	noteNothing = "nothing has been sent"
	noteSending = "the request is being sent"
	// noteRefused is noteNothing with the number of attempts that found no place.
	noteRefused = noteNothing + "; no place for attempts: "
)

// beat is how often an attempt tells Temporal that it lives, and hears whether it
// is cancelled, see [runtime.pause]. The SDK's own heartbeats are throttled.
const beat = time.Second

// attempt is one run of an activity.
type attempt struct {
	ctx     context.Context // the activity's
	runtime *runtime
	log     *slog.Logger
	number  int32  // of those that had a place
	most    int32  // attempts; the last one ends with a final error
	single  bool   // the policy has no other one after "unavailable"
	detail  string // of a fault, for the log
	// wasSending says that an earlier attempt may have sent a request that must not
	// be sent twice.
	wasSending bool

	refused int32 // attempts without a place
	waits   bool  // this is one

	mu       sync.Mutex // over a whole heartbeat: an older note must not arrive after a newer one
	note     string
	doubtful bool // a heartbeat has no answer: it may yet arrive
}

// newAttempt starts an attempt: from here to end it heartbeats. Its note is that of the
// attempt before it, so that no heartbeat of its own loses that one.
func (p *Proxy) newAttempt(ctx context.Context) (at *attempt, end func(), err error) {
	r := p.current()
	if r == nil {
		return nil, nil, later("The Worker stops", time.Second)
	}
	at = &attempt{ctx: ctx, runtime: r, log: p.log, number: activity.GetInfo(ctx).Attempt}
	if activity.HasHeartbeatDetails(ctx) {
		at.wasSending, at.refused = readNote(at.number, func(note *string) error { return activity.GetHeartbeatDetails(ctx, note) })
	}
	at.number -= at.refused
	at.note = at.nothing()
	if at.wasSending {
		at.note = noteSending
	}
	return at, at.keepAlive(), nil
}

// readNote reads the note of an attempt before the one of that number: whether it may
// have been sending, as what cannot be read may say, and how many had no place.
func readNote(number int32, read func(note *string) error) (sending bool, refused int32) {
	var note string
	if err := read(&note); err != nil {
		return true, 0
	}
	if note == noteNothing {
		return false, 0
	}
	digits, ok := strings.CutPrefix(note, noteRefused)
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil || n == 0 {
		return true, 0
	}
	if refused = int32(n); refused >= number { // the activity was reset: its attempts are counted anew
		refused = 0
	}
	return false, refused
}

// nothing is the note of an attempt that sends nothing.
func (at *attempt) nothing() string {
	if at.refused == 0 {
		return noteNothing
	}
	return noteRefused + strconv.Itoa(int(at.refused))
}

// refuse ends an attempt for which the proxy has no place. It is none of the policy's:
// the call waits as it would in Temporal's queue.
func (at *attempt) refuse(message string) error {
	at.runtime.crowded.Warn("mcpproxy: too many calls are under way; more of them wait", "calls", cap(at.runtime.slots))
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.note == at.nothing() {
		at.refused++
		at.note = at.nothing()
		ctx := context.WithoutCancel(at.ctx)
		err := at.record(ctx)
		if err != nil && !told(err) {
			err = at.record(ctx)
		}
		switch {
		case errors.As(err, new(*temporal.CanceledError)):
			at.hear()
			return temporal.NewCanceledError()
		case err != nil && !told(err):
			at.log.Warn("mcpproxy: the next attempt will not know that this one had no place", "error", err)
		}
	}
	pause := queuePause(at.refused)
	if info := activity.GetInfo(at.ctx); info.ScheduleToCloseTimeout > 0 {
		// Temporal ends a call whose time would run out in its pause.
		left := time.Until(info.ScheduledTime.Add(info.ScheduleToCloseTimeout))
		if left < 2*time.Second {
			return final(&contract.Failure{Code: contract.CodeUnavailable, Message: message + " The time of the call is over before there is a place."})
		}
		pause = max(min(pause, left/2), time.Second)
	}
	at.waits = true
	return later(message, pause)
}

// queuePause is how long a call waits that found no place so often: 1 to 16 seconds,
// and up to half of it more, so that not all of them come back at once.
func queuePause(refused int32) time.Duration {
	pause := time.Second << min(max(refused-1, 0), 4)
	return pause + rand.N(pause/2) //nolint:gosec // jitter is no secret
}

// sending notes, durably, that the request goes out. Without an error it must not
// be sent twice.
func (at *attempt) sending() error {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.doubtful {
		return errors.New("an earlier heartbeat has no answer")
	}
	at.note = noteSending
	return at.record(at.ctx)
}

// notSent takes the note back. Where that fails the next attempt ends as outcome
// unknown, which is safe.
func (at *attempt) notSent() {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.note == at.nothing() {
		return
	}
	at.note = at.nothing()
	if err := at.record(context.WithoutCancel(at.ctx)); err != nil {
		at.log.Warn("mcpproxy: the next attempt will not know that nothing was sent", "error", err)
	}
}

// record sends a heartbeat with the note. The lock is held.
func (at *attempt) record(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*beat)
	defer cancel()
	err := activity.GetClient(at.ctx).RecordActivityHeartbeat(ctx, activity.GetInfo(at.ctx).TaskToken, at.note)
	if err != nil && !told(err) {
		at.doubtful = true
	}
	return err
}

// told reports whether an error is what Temporal has to say to the attempt: that
// it is cancelled, or that nobody waits for it any more.
func told(err error) bool {
	return errors.As(err, new(*temporal.CanceledError)) || errors.As(err, new(*serviceerror.NotFound)) ||
		errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// keepAlive heartbeats until stop is called.
func (at *attempt) keepAlive() (stop func()) {
	ctx, cancel := context.WithCancel(at.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		timeout := activity.GetInfo(at.ctx).HeartbeatTimeout
		timer := time.NewTimer(at.runtime.pause(timeout))
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
				at.tick(ctx)
				timer.Reset(at.runtime.pause(timeout))
			}
		}
	}()
	return func() {
		cancel() // also a heartbeat that hangs
		<-ended
	}
}

func (at *attempt) tick(ctx context.Context) {
	at.mu.Lock()
	defer at.mu.Unlock()
	err := at.record(ctx)
	switch {
	case err == nil, ctx.Err() != nil:
	case told(err):
		at.hear()
	default:
		at.log.Warn("mcpproxy: heartbeat", "error", err)
	}
}

// hear lets the SDK find out what this attempt has been told: its first heartbeat
// is not throttled, and cancels the context.
func (at *attempt) hear() { activity.RecordHeartbeat(at.ctx, at.note) }

// follow sets the policy whose attempts this is one of.
func (at *attempt) follow(p ResolvedPolicy) {
	at.most = p.Retry.MaximumAttempts
	at.single = slices.Contains(p.Retry.NonRetryableErrorTypes, string(contract.CodeUnavailable))
}

// again ends the attempt for another one, after a delay or the policy's pause for
// none; the last attempt ends the call.
func (at *attempt) again(message string, delay time.Duration) error {
	if at.number >= at.most || at.single {
		if at.number > 1 {
			message = fmt.Sprintf("%s (after %d attempts)", message, at.number)
		}
		return final(&contract.Failure{Code: contract.CodeUnavailable, Message: message})
	}
	return later(message, delay)
}

// later ends an attempt for another one, after a delay or the policy's pause for none.
func later(message string, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(message, string(contract.CodeUnavailable),
		temporal.ApplicationErrorOptions{NextRetryDelay: delay, Category: temporal.ApplicationErrorCategoryBenign})
}

// unknown ends a call that may have taken effect.
func unknown(message string, cause error) error {
	return final(&contract.Failure{
		Code: contract.CodeOutcomeUnknown, Cause: cause,
		Message: message + " The request may have reached the server; it is not sent again.",
	})
}

// final ends the call. To the SDK the error is benign, so that it logs no answer
// of a tool as an error of the Worker: what there is to say, [attempt.report] does.
func final(f *contract.Failure) error {
	f.Retryable = false
	err := resultmap.ApplicationError(f)
	var app *temporal.ApplicationError
	var details converter.RawValue
	if !errors.As(err, &app) || app.HasDetails() && app.Details(&details) != nil {
		return err
	}
	o := temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign}
	if app.HasDetails() {
		o.Details = []any{details}
	}
	return temporal.NewApplicationErrorWithOptions(app.Message(), app.Type(), o)
}
