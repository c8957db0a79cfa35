package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
)

// ActivityOptions say how the activity behind a tool runs. The zero value runs it
// at most once.
type ActivityOptions struct {
	// Repeatable says that running the work twice does no harm: when a Worker
	// dies, the activity runs again. Defaults to false: it ends as "outcome
	// unknown" then.
	Repeatable bool
	// RetryPolicy spaces and bounds the attempts of a repeatable activity.
	// Errors of the code are only retried where it returns [Retry]. Defaults to
	// Temporal's policy.
	RetryPolicy *temporal.RetryPolicy
	// HeartbeatTimeout is how long a Worker may be silent before it counts as
	// dead. Defaults to 10 seconds; at least 1 second.
	HeartbeatTimeout time.Duration
	// ScheduleToCloseTimeout bounds the activity, all attempts together, where
	// the call itself has no bound or a longer one. Defaults to 24 hours.
	ScheduleToCloseTimeout time.Duration
	// StartToCloseTimeout bounds one attempt. Defaults to no bound of its own.
	StartToCloseTimeout time.Duration
}

const (
	defaultHeartbeatTimeout = 10 * time.Second
	minHeartbeatTimeout     = time.Second
	defaultActivityTimeout  = 24 * time.Hour
)

// ActivityOperation is a Nexus operation backed by an activity of its own.
type ActivityOperation[I, O any] struct {
	nexus.UnimplementedOperation[I, O]

	activity *activityRunner
}

// NewActivityOperation returns an operation that runs f in a standalone activity,
// at most once unless the options say that it may be repeated:
//
//	charge := mcptool.NewActivityOperation("charge_card", chargeCard, mcptool.ActivityOptions{})
//
// Before f runs, a note that it does is stored in Temporal. When the Worker dies
// after that, the call ends as "outcome unknown" and f does not run again; when
// it dies before, f runs on another Worker. The activity heartbeats by itself and
// a cancelled call cancels f's context within about a second.
// [go.temporal.io/sdk/activity.RecordHeartbeat] works in f: details are sent
// within a second and a repeated attempt can read them.
//
// The activity is bounded by what is left of the call's time. An error or a panic
// ends it at once, except for [Retry]. Results over the payload limit end as a
// failure that says so. [Service.Register] registers the activity, as the type
// "service.operation".
//
// The namespace of the Worker needs the dynamic configuration
// activity.enableCallbacks=true.
func NewActivityOperation[I, O any](name string, f func(ctx context.Context, input I) (O, error), options ActivityOptions) *ActivityOperation[I, O] {
	a := &activityRunner{name: name, options: options}
	if f != nil {
		a.f = func(ctx context.Context, arguments json.RawMessage) (any, error) {
			v, err := decode(arguments, reflect.TypeFor[I]())
			if err != nil {
				return nil, toolError(err.Error())
			}
			input, _ := reflect.TypeAssert[I](v) // a nil interface is no I, and the zero I
			return f(ctx, input)
		}
	}
	return &ActivityOperation[I, O]{activity: a}
}

// Name implements nexus.Operation.
func (o *ActivityOperation[I, O]) Name() string { return o.activity.name }

// Start implements nexus.Operation.
func (o *ActivityOperation[I, O]) Start(ctx context.Context, input I, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[O], error) {
	data, err := encode(input)
	if err != nil {
		return nil, handlerError(toolError("arguments: "+err.Error()), false)
	}
	known := callOf(ctx) // where another operation wraps this one
	about := newCall(options.Header, contract.CallParams{Meta: known.Meta, InputResponses: known.InputResponses, RequestState: known.RequestState})
	result, err := o.startRaw(ctx, activityInput{Arguments: data, Call: about}, options)
	if err != nil {
		return nil, handlerError(err, true)
	}
	return result, nil
}

// Cancel implements nexus.Operation.
func (o *ActivityOperation[I, O]) Cancel(ctx context.Context, token string, options nexus.CancelOperationOptions) error {
	op, err := o.activity.operation()
	if err != nil {
		return err
	}
	return op.Cancel(ctx, token, options)
}

func (o *ActivityOperation[I, O]) runner() *activityRunner { return o.activity }

func (o *ActivityOperation[I, O]) itself() nexus.RegisterableOperation { return o }

func (o *ActivityOperation[I, O]) startRaw(ctx context.Context, in activityInput, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[converter.RawValue], error) {
	op, err := o.activity.operation()
	if err != nil {
		return nil, err
	}
	return op.Start(ctx, in, options)
}

// activityInput is what an activity is started with: two arguments.
type activityInput struct {
	Arguments json.RawMessage
	Call      call
}

// fits returns an error for arguments that leave the activity no room for the call
// beside them: Temporal bounds what it is started with together.
func (in activityInput) fits() error {
	about, err := json.Marshal(in.Call)
	if err != nil {
		return err
	}
	return contract.CheckSize("arguments", in.Arguments, about)
}

// activityRunner is an activity operation without its types.
type activityRunner struct {
	name    string
	options ActivityOptions
	f       func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// activityName is the type of the activity behind a service's operation.
func activityName(service, operation string) string { return service + "." + operation }

func (a *activityRunner) check() []error {
	var errs []error
	o := a.options
	if a.f == nil {
		errs = append(errs, errors.New("activity: the function is nil"))
	}
	if o.RetryPolicy != nil && !o.Repeatable {
		errs = append(errs, errors.New("RetryPolicy: it needs Repeatable"))
	}
	if o.HeartbeatTimeout != 0 && o.HeartbeatTimeout < minHeartbeatTimeout {
		errs = append(errs, fmt.Errorf("HeartbeatTimeout: %s, want at least %s", o.HeartbeatTimeout, minHeartbeatTimeout))
	}
	if o.ScheduleToCloseTimeout < 0 {
		errs = append(errs, fmt.Errorf("ScheduleToCloseTimeout: %s is negative", o.ScheduleToCloseTimeout))
	}
	if o.StartToCloseTimeout < 0 {
		errs = append(errs, fmt.Errorf("StartToCloseTimeout: %s is negative", o.StartToCloseTimeout))
	}
	return errs
}

func (a *activityRunner) operation() (nexus.Operation[activityInput, converter.RawValue], error) {
	return temporalnexus.NewTemporalOperation(temporalnexus.TemporalOperationOptions[activityInput, converter.RawValue]{
		Name: a.name, Start: a.start,
	})
}

// start schedules the activity. Its ID is that of the Nexus request, so a start
// that is delivered again finds the first one, also after it closed.
func (a *activityRunner) start(ctx context.Context, nc temporalnexus.NexusClient, in activityInput, options temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
	if err := in.fits(); err != nil {
		return temporalnexus.TemporalOperationResult[converter.RawValue]{}, err
	}
	name := activityName(nexus.ExtractHandlerInfo(ctx).Service, a.name)
	id := a.name + "-" + options.RequestID
	started, err := temporalnexus.StartUntypedActivity[converter.RawValue](ctx, nc, client.StartActivityOptions{
		ID:                       id,
		ScheduleToCloseTimeout:   a.timeLeft(options.Header),
		StartToCloseTimeout:      a.options.StartToCloseTimeout,
		HeartbeatTimeout:         a.heartbeatTimeout(),
		ActivityIDReusePolicy:    enumspb.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ActivityIDConflictPolicy: enumspb.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING,
		RetryPolicy:              a.retryPolicy(),
	}, name, resultmap.RawValue(in.Arguments), in.Call)
	switch {
	case errors.As(err, new(*serviceerror.InvalidArgument)), errors.As(err, new(*serviceerror.Unimplemented)):
		return started, &contract.Failure{Code: contract.CodeUnavailable, Cause: err, Message: fmt.Sprintf(
			"Temporal refused the activity behind the tool: %v. Activity tools need the dynamic configuration "+
				"activity.enableCallbacks=true in the namespace of their Worker.", err)}
	case errors.As(err, new(*serviceerror.FailedPrecondition)), errors.As(err, new(*serviceerror.ActivityExecutionAlreadyStarted)):
		return outcome(ctx, id)
	}
	return started, err
}

// outcome answers for an activity of this very request that has closed: an earlier
// delivery of the start had made it.
func outcome(ctx context.Context, id string) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
	var value converter.RawValue
	err := temporalnexus.GetClient(ctx).GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}).Get(ctx, &value)
	var application *temporal.ApplicationError
	switch {
	case err == nil:
		return temporalnexus.NewSyncResult(value), nil
	case errors.As(err, &application):
		err = application
	default:
		err = resultmap.FromError(err)
	}
	return temporalnexus.TemporalOperationResult[converter.RawValue]{}, err
}

// retryPolicy lets an activity that runs at most once have attempts without end: a
// later one says that the outcome is unknown. What a policy leaves open is the
// server's to set, and some servers allow one attempt.
func (a *activityRunner) retryPolicy() *temporal.RetryPolicy {
	if a.options.Repeatable {
		return a.options.RetryPolicy
	}
	return &temporal.RetryPolicy{
		InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: math.MaxInt32,
	}
}

func (a *activityRunner) heartbeatTimeout() time.Duration {
	if a.options.HeartbeatTimeout == 0 {
		return defaultHeartbeatTimeout
	}
	return a.options.HeartbeatTimeout
}

// timeLeft bounds the activity by the operation's time, which Temporal states in a
// header: an operation that times out or is terminated does not end its activity.
func (a *activityRunner) timeLeft(header nexus.Header) time.Duration {
	limit := a.options.ScheduleToCloseTimeout
	if limit == 0 {
		limit = defaultActivityTimeout
	}
	if left, err := time.ParseDuration(header.Get(nexus.HeaderOperationTimeout)); err == nil && left > 0 {
		limit = min(limit, left)
	}
	return limit
}
