package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/pool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// exchange is one request to the upstream in one attempt of its activity.
type exchange struct {
	*attempt

	server  string // for messages: the name of the proxy
	caller  string
	what    string // for messages: the tool or the method
	plan    plan
	request func(s mcpclient.Server) (mcpclient.Request, error) // an error ends the call
}

// errLate ends an attempt a little before its time, so that it can still say what
// became of it.
var errLate = errors.New("the attempt takes too long")

// run returns the bytes of the result, or what the attempt ends with.
func (x *exchange) run() (json.RawMessage, error) {
	x.follow(x.plan.policy)
	if x.number > x.most {
		return nil, final(&contract.Failure{Code: contract.CodeUnavailable, Message: fmt.Sprintf(
			"%s of the server %q was given up after %d attempts, the last of which left no word.", x.what, x.server, x.most)})
	}
	release, ok := x.runtime.admit()
	if !ok {
		return nil, x.refuse(fmt.Sprintf("The server %q has too many calls under way.", x.server))
	}
	defer release()
	left := time.Until(activity.GetInfo(x.ctx).Deadline)
	ctx, cancel := context.WithTimeoutCause(x.ctx, left-min(left/10, time.Second), errLate)
	defer cancel()
	raw, err := x.try(ctx, x.runtime.pool.Acquire)
	var lost *mcpclient.Error
	if errors.As(err, &lost) && lost.Lost && lost.Outcome == mcpclient.NotSent && ctx.Err() == nil {
		raw, err = x.try(ctx, x.runtime.pool.AcquireNew) // once
	}
	if err != nil {
		return nil, x.ended(ctx, err)
	}
	return raw, nil
}

// stageError says how far a try came.
type stageError struct {
	sent bool
	err  error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// try makes the request once.
func (x *exchange) try(ctx context.Context, acquire acquire) (json.RawMessage, error) {
	lease, err := acquire(ctx, x.caller)
	if err != nil {
		return nil, &stageError{err: err}
	}
	defer lease.Release()
	session := lease.Session()
	r, err := x.request(session.Server())
	if err != nil {
		return nil, &stageError{err: err}
	}
	if !x.plan.repeatable {
		if err := x.sending(); err != nil {
			x.notSent() // the note may have arrived
			return nil, &stageError{err: &noteError{err}}
		}
	}
	var sent atomic.Bool
	r.Once = !x.plan.repeatable
	r.Sending = func() { sent.Store(true) }
	raw, err := session.Call(ctx, r)
	if err == nil {
		return raw, nil
	}
	// Without an answer a link that gives up cannot say for sure that no byte went out.
	e := &stageError{sent: sent.Load() || !x.plan.repeatable, err: err}
	if failed, ok := errors.AsType[*mcpclient.Error](err); ok {
		e.sent = failed.Outcome == mcpclient.Sent || failed.Outcome == mcpclient.Answered
		if failed.Lost {
			lease.Discard()
		}
	}
	if errors.Is(context.Cause(ctx), errLate) {
		lease.Discard() // a server that hangs would keep the next call waiting too
	}
	if errors.As(err, new(*contract.ProtocolError)) {
		return nil, e // an answer
	}
	if !e.sent {
		x.notSent()
	}
	return nil, e
}

// noteError is the error of a note that could not be stored.
type noteError struct{ err error }

func (e *noteError) Error() string { return "the note that the request is sent could not be stored" }
func (e *noteError) Unwrap() error { return e.err }

// ended returns what the attempt ends with for the error of its last try.
func (x *exchange) ended(ctx context.Context, err error) error {
	var (
		stage  *stageError
		answer *contract.ProtocolError
		failed *mcpclient.Error
		note   *noteError
	)
	sent := errors.As(err, &stage) && stage.sent
	switch {
	case errors.As(err, &answer):
		return final(resultmap.ProtocolError(answer))
	case errors.As(err, &note) && errors.As(note.err, new(*temporal.CanceledError)):
		x.hear()
		return temporal.NewCanceledError()
	case errors.As(err, &note):
		x.log.Warn("mcpproxy: "+note.Error(), "error", note.err)
		return x.again(fmt.Sprintf("%s of the server %q was not called: %v", x.what, x.server, note), 0)
	case errors.As(context.Cause(ctx), new(*temporal.CanceledError)):
		return temporal.NewCanceledError()
	case errors.As(err, &failed):
		return x.failed(failed, sent)
	case ctx.Err() != nil:
		return x.stopped(context.Cause(ctx), sent)
	}
	return x.broken(err, sent)
}

// failed is for the errors of the client.
func (x *exchange) failed(failed *mcpclient.Error, sent bool) error {
	x.detail = failed.Detail
	message := fmt.Sprintf("%s of the server %q: %s", x.what, x.server, failed.Message)
	switch {
	case failed.TooLarge:
		return final(&contract.Failure{Code: contract.CodePayloadTooLarge, Message: message + ". It ran, and is not run again."})
	case failed.Outcome == mcpclient.Answered && x.plan.repeatable:
		return final(&contract.Failure{Code: contract.CodeFailed, Message: message + ". It is not run again: it would answer alike."})
	case sent && !x.plan.repeatable:
		return unknown(message+".", failed)
	case failed.Outcome != mcpclient.NotSent && !failed.Retryable: // another attempt would end alike
		return final(&contract.Failure{Code: contract.CodeFailed, Message: message})
	}
	return x.again(message, failed.RetryAfter)
}

// stopped returns what an attempt ends with whose context has ended.
func (x *exchange) stopped(cause error, sent bool) error {
	switch {
	case errors.Is(cause, errLate) && sent && !x.plan.repeatable:
		return unknown(fmt.Sprintf("%s of the server %q did not answer in time.", x.what, x.server), nil)
	case errors.Is(cause, errLate) && sent:
		return x.again(fmt.Sprintf("%s of the server %q did not answer in time", x.what, x.server), 0)
	case errors.Is(cause, errLate):
		return x.again(fmt.Sprintf("The server %q had no session free in time", x.server), 0)
	case sent && !x.plan.repeatable:
		return unknown("The Worker stopped while the tool ran.", cause)
	}
	return x.again("The Worker stopped during the call", 0)
}

// broken is for errors that are nobody's answer.
func (x *exchange) broken(err error, sent bool) error {
	x.detail = err.Error()
	if sent && !x.plan.repeatable {
		return unknown(fmt.Sprintf("The call of %s failed in the proxy.", x.what), err)
	}
	message := fmt.Sprintf("%s of the server %q could not be called", x.what, x.server)
	if errors.Is(err, pool.ErrClosed) {
		message = "The Worker stops"
	}
	return x.again(message, 0)
}

// errorAttributes are for a log line: what an operator may know of an error.
func errorAttributes(err error) []any {
	attributes := []any{"error", err.Error()}
	var e *mcpclient.Error
	if errors.As(err, &e) && e.Detail != "" {
		attributes = append(attributes, "detail", e.Detail)
	}
	return attributes
}
