package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// Client runs tool calls on one Temporal namespace. It is safe for concurrent
// use and keeps nothing between calls but what [Client.List] adds to visibility.
type Client struct {
	temporal client.Client
	recent   recent
	runs     runs
	served   atomic.Bool // Temporal has started or shown an operation: it knows the namespace
	starts   pool
	polls    polls
	log      *slog.Logger
}

// Options configure a [Client]. The zero value works.
type Options struct {
	// Logger gets what an operator should see. Defaults to slog.Default().
	Logger *slog.Logger
}

// New returns a client on top of a Temporal client, which the caller keeps
// owning. It returns an error if the Temporal client lacks [Interceptor];
// it sends nothing.
func New(temporal client.Client, options Options) (*Client, error) {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if !installed(temporal) {
		return nil, errors.New("operation: the Temporal client lacks operation.Interceptor(); " +
			"add it to client.Options.Interceptors, since the Go SDK sets Nexus headers in no other way")
	}
	return &Client{
		temporal: temporal,
		starts:   make(pool, maxStarts),
		polls:    polls{temporal: temporal, open: map[*wait]struct{}{}, looks: make(pool, maxLooks)},
		log:      options.Logger,
	}, nil
}

// Temporal returns the client that this one stands on.
func (c *Client) Temporal() client.Client { return c.temporal }

// Call is one tool call to start.
type Call struct {
	Endpoint string
	Service  string
	// Tool is the tool as its manifest has it. Its name is the Nexus operation
	// name, its timeout the operation's schedule-to-close timeout.
	Tool contract.Tool
	// Params are the call's arguments and what travels beside them.
	Params contract.CallParams
	Caller Caller
	Trace  TraceContext
	// IdempotencyKey names the call: a second call by the same caller with the
	// same tool and key attaches to the first, running or closed. A call that goes
	// on with what its tool has asked for is another one under the same key; such
	// calls are told apart by their RequestState. Empty never attaches.
	IdempotencyKey string
	// Starting, if it is set, is called with the ID once Temporal is about to be
	// asked. Who passes the ID on then loses no call, whenever this process
	// dies; an ID that Temporal does not know later was never started.
	Starting func(id string)
}

// Start makes the call durable and returns the ID of its operation. A lost
// connection to Temporal is tried again, under the same ID, until ctx ends; so
// a call is started once however often this has to ask.
//
// The error is a [*contract.Failure]: CodeInvalid for what the caller can mend
// (a key that was used with other arguments or answers, or at another endpoint, among
// it), CodePayloadTooLarge,
// CodeUnavailable with the likely cause. Where Temporal did not answer, the call may
// have been recorded all the same: the message names the ID, which is returned too.
func (c *Client) Start(ctx context.Context, call Call) (id string, err error) {
	input, err := call.Params.Encode(call.Tool.Encoding)
	if err != nil {
		return "", &contract.Failure{Code: contract.CodeInvalid, Message: err.Error()}
	}
	if err := contract.CheckSize("arguments", input); err != nil {
		return "", err
	}
	headers, err := call.headers()
	if err != nil {
		return "", &contract.Failure{Code: contract.CodeInvalid, Message: err.Error()}
	}
	nc, err := c.temporal.NewNexusClient(client.NexusClientOptions{Endpoint: call.Endpoint, Service: call.Service})
	if err != nil {
		return "", &contract.Failure{Code: contract.CodeInvalid, Message: err.Error(), Cause: err}
	}
	id = call.Caller.newID(call.Service, call.Tool.Name, call.IdempotencyKey, call.Params.Round(call.Tool.Encoding))
	options := client.StartNexusOperationOptions{
		ID:                     id,
		ScheduleToCloseTimeout: call.Tool.ScheduleToCloseTimeout,
		Summary:                call.note().String(),
		// Never a second run under one ID, running or closed.
		IDConflictPolicy: enumspb.NEXUS_OPERATION_ID_CONFLICT_POLICY_FAIL,
		IDReusePolicy:    enumspb.NEXUS_OPERATION_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	if call.Starting != nil {
		call.Starting(id)
	}
	ctx = context.WithValue(ctx, headerKey{}, headers)
	var pause backoff
	maybeSent := false // by a try before
	for {
		err := c.starts.do(ctx, func() error {
			h, err := nc.ExecuteOperation(ctx, call.Tool.Name, resultmap.RawValue(input), options)
			if err == nil {
				c.runs.add(id, h.GetRunID())
			}
			return err
		})
		var started *serviceerror.NexusOperationExecutionAlreadyStarted
		if errors.As(err, &started) && call.IdempotencyKey == "" {
			err = nil // the ID is random: it is ours, from a try whose answer was lost
		}
		switch {
		case err == nil:
			c.served.Store(true)
			c.recent.add(id, call)
			return id, nil
		case started != nil:
			return id, c.attach(ctx, id, call)
		case ctx.Err() == nil && c.transient(err):
			c.log.Debug("temporal does not answer, asking again", "operation_id", id, "error", err)
			if pause.sleep(ctx) {
				maybeSent = maybeSent || transient(err)
				continue
			}
		}
		f := c.startFailure(call.Endpoint, call.Service, maybeSent, err)
		if maybeSent || f.Retryable && !ofCodec(err) {
			f.Message += fmt.Sprintf(" The call may have been recorded all the same: its operation is %s.", id)
		}
		return id, f
	}
}

// attach checks that the operation which has the ID is this very call. The ID does
// not tell the endpoint, and two may have a service of one name.
func (c *Client) attach(ctx context.Context, id string, call Call) error {
	d, err := c.Describe(ctx, id)
	if err != nil {
		return resultmap.FromError(err)
	}
	var other string
	switch {
	case d.Endpoint != call.Endpoint:
		other = "at another endpoint"
	case d.note.digest != call.note().digest:
		other = "with other arguments or answers"
	default:
		return nil
	}
	return &contract.Failure{
		Code: contract.CodeInvalid,
		Message: fmt.Sprintf("The idempotency key %q was used for a call of %q %s. "+
			"Nothing was started. Use another key for another call.", call.IdempotencyKey, call.Tool.Name, other),
	}
}

// startFailure says why a call was not started. maybeSent tells that a try before this
// one may have arrived.
func (c *Client) startFailure(endpoint, service string, maybeSent bool, err error) *contract.Failure {
	f := *resultmap.FromError(err)
	var notFound *serviceerror.NotFound
	var off *serviceerror.Unimplemented
	switch {
	case ofCodec(err), f.Code == contract.CodeFailed:
		// No tool has failed yet. What is not of a codec may be of anything on the way to
		// Temporal and back. Such words name addresses.
		c.log.Warn("an operation could not be started", "endpoint", endpoint, "service", service, "error", err)
		what := "Temporal did not confirm the call"
		if ofCodec(err) && !maybeSent {
			what = "The call cannot be sent to Temporal"
		}
		f.Message = fmt.Sprintf("%s (endpoint %q, service %q); the log of this program says why.", what, endpoint, service)
		f.Code, f.Retryable = contract.CodeUnavailable, true
	case errors.As(err, &notFound):
		f.Message = contract.NoEndpoint(endpoint, service).Message
	case errors.As(err, &off):
		f.Message = "This Temporal server has standalone Nexus operations switched off. " +
			"Set nexusoperation.enableStandalone=true in its dynamic configuration."
	case transient(err), errors.Is(err, context.Canceled):
		f.Message = fmt.Sprintf("Temporal does not answer (endpoint %q, service %q).", endpoint, service)
		f.Code, f.Retryable = contract.CodeUnavailable, true
	}
	return &f
}

// transient tells an error of the way to Temporal, or of its load, from an
// answer.
func transient(err error) bool {
	if ofCodec(err) {
		return false
	}
	var (
		unavailable *serviceerror.Unavailable
		deadline    *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
		internal    *serviceerror.Internal
		canceled    *serviceerror.Canceled
	)
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &exhausted) ||
		errors.As(err, &internal) || errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded)
}

// transient is [transient], and knows that a namespace which was there has not
// gone: an overloaded server also says so when it cannot look.
func (c *Client) transient(err error) bool {
	return transient(err) || c.served.Load() && errors.As(err, new(*serviceerror.NamespaceNotFound))
}

// ErrRunning is returned by [Client.Result] when the budget ends first.
var ErrRunning = errors.New("operation: still running")

// Result waits until the call of a tool closes and returns its MCP result. It
// returns [ErrRunning] when the budget ends first, the cause of ctx when ctx
// does, and a [*contract.Failure] when the call did not complete, or is unknown.
// A Temporal that is away or overloaded is waited for, and so is a codec that
// cannot decode the output. A budget of zero or less has no end.
//
// Of the tool only the encoding counts and whether it has an output schema;
// [Description.Tool] has both for a call that another process started, see
// [Client.Read].
func (c *Client) Result(ctx context.Context, id string, tool contract.Tool, budget time.Duration) (contract.Result, error) {
	output, err := c.wait(ctx, id, budget)
	if err != nil {
		return contract.Result{}, err
	}
	return resultmap.ToResult(tool, output)
}

// Read is [Client.Result] for a call that [Client.Find] has found. Until a codec can
// read what the result needs beside the output, it ends as running, too.
func (c *Client) Read(ctx context.Context, d Description, budget time.Duration) (contract.Result, error) {
	const least = 200 * time.Millisecond // for a codec that is there
	began := time.Now()
	output, err := c.wait(ctx, d.ID, budget)
	if err != nil {
		return contract.Result{}, err
	}
	if budget > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, max(budget-time.Since(began), least), ErrRunning)
		defer stop()
	}
	var pause backoff
	for told := false; ; told = true {
		err := d.read(ctx)
		switch {
		case err == nil:
			return resultmap.ToResult(d.Tool, output)
		case ctx.Err() != nil:
			return contract.Result{}, context.Cause(ctx)
		case errors.Is(err, converter.ErrEncodingIsNotSupported):
			return contract.Result{}, undecodable(d.ID, err)
		}
		if !told {
			c.log.Warn("what Temporal keeps of an operation cannot be decoded, asking again", "operation_id", d.ID, "error", errors.Unwrap(err))
		}
		if !pause.sleep(ctx) {
			return contract.Result{}, context.Cause(ctx)
		}
	}
}

// Output is [Client.Result] for an operation that is no call of a tool: it
// returns the output as it is.
func (c *Client) Output(ctx context.Context, id string, budget time.Duration) (json.RawMessage, error) {
	return c.wait(ctx, id, budget)
}

func (c *Client) wait(ctx context.Context, id string, budget time.Duration) (json.RawMessage, error) {
	// A deadline on the poll's context makes the server answer empty at once in
	// the last second, and the SDK ask a thousand times: the poll gets a context
	// without one, cancelled by hand.
	poll, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	if budget > 0 {
		defer time.AfterFunc(budget, func() { cancel(ErrRunning) }).Stop()
	}
	var pause backoff
	told := false
	for {
		output, err := c.polls.get(poll, id, c.runs.of(id))
		if err == nil {
			c.runs.forget(id)
			c.served.Store(true)
			return resultmap.JSON(output)
		}
		if poll.Err() != nil {
			return nil, context.Cause(poll)
		}
		undecoded := ofCodec(err)
		if undecoded && !told {
			c.log.Warn("an output cannot be decoded, asking again", "operation_id", id, "error", err)
			told = true
		}
		if !undecoded && !c.transient(err) {
			if c.runs.forget(id) && errors.As(err, new(*serviceerror.NotFound)) {
				continue // the run is gone, and its ID may be that of another one by now
			}
			return nil, c.waitFailure(ctx, id, err)
		}
		if !pause.sleep(poll) {
			return nil, context.Cause(poll)
		}
	}
}

func (c *Client) handle(id string) client.NexusOperationHandle {
	return c.temporal.GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: id})
}

// waitFailure says why an operation did not complete. A timeout alone hides
// whether anything ever took the call, so it is explained.
func (c *Client) waitFailure(ctx context.Context, id string, err error) error {
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return unknown(id, err)
	}
	f := resultmap.FromError(err)
	if f.Code != contract.CodeTimedOut {
		return withRemedy(f)
	}
	d, derr := c.state(ctx, id)
	if derr != nil || d.Status != TimedOut || d.taken {
		return f // where it failed, a handler said that it timed out
	}
	last := d.lastAttempt()
	if last == nil {
		return f
	}
	explained := *f
	explained.Message += fmt.Sprintf(" No handler took it (endpoint %q, service %q, operation %q). %s The last attempt ended with: %s",
		d.Endpoint, d.Service, d.Tool.Name, c.whoPolls(ctx, d.Endpoint), resultmap.FromError(last).Message)
	return &explained
}

// callbacksOff is what a Temporal server says where activity.enableCallbacks is
// off. It is InvalidArgument, as much else is, so only the text tells.
const callbacksOff = "callbacks are not enabled"

// withRemedy names the setting that a server lacks, where a service passes on
// the server's words alone.
func withRemedy(f *contract.Failure) *contract.Failure {
	const setting = "activity.enableCallbacks"
	switch {
	case f.Code == contract.CodeToolError || f.Code == contract.CodeProtocolError,
		!strings.Contains(f.Message, callbacksOff), strings.Contains(f.Message, setting):
		return f
	}
	mended := *f
	mended.Message = strings.TrimSuffix(f.Message, ".") + ". Activity tools need the dynamic configuration " + setting +
		"=true in the namespace of their worker."
	return &mended
}

func unknown(id string, cause error) error {
	return &contract.Failure{
		Code: contract.CodeInvalid, Cause: cause,
		Message: fmt.Sprintf("Temporal has no operation %q: the ID is wrong, or the namespace's retention has ended.", id),
	}
}

// Cancel requests that the operation be cancelled, and returns once Temporal
// has recorded that. Cancelling what is closed, or was asked already, is no
// error. What runs behind the operation decides when it stops.
func (c *Client) Cancel(ctx context.Context, id, reason string) error {
	var pause backoff
	for {
		err := c.handle(id).Cancel(ctx, client.CancelNexusOperationOptions{Reason: reason})
		var done *serviceerror.FailedPrecondition
		var notFound *serviceerror.NotFound
		switch {
		case err == nil, errors.As(err, &done):
			return nil
		case errors.As(err, &notFound):
			return unknown(id, err)
		case ctx.Err() == nil && c.transient(err) && pause.sleep(ctx):
			continue
		}
		return resultmap.FromError(err)
	}
}

// backoff pauses longer each time, with jitter: 50 ms to 2 s.
type backoff struct{ last time.Duration }

// sleep reports whether the pause ended before ctx did.
func (b *backoff) sleep(ctx context.Context) bool {
	b.last = min(max(2*b.last, 50*time.Millisecond), 2*time.Second)
	t := time.NewTimer(b.last/2 + rand.N(b.last/2)) //nolint:gosec // jitter is no secret
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pool bounds how many short RPCs are on their way at once. Each runs on a
// goroutine of its own: an RPC needs a deep stack, and that of the caller, which
// stays for as long as the call is waited for, would keep its size.
type pool chan struct{}

const maxStarts = 64

func (p pool) do(ctx context.Context, rpc func() error) error {
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	return within(ctx, func() error {
		defer func() { <-p }()
		return rpc()
	})
}

// within calls f and returns when that does, or when ctx ends: a codec has no
// context, and may hang.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
