package mcpproxy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/temporal"
)

// Policy says how a tool's calls are run, bounded and repeated. The zero value has
// the defaults, and the tool's annotations decide whether a call may be repeated.
type Policy struct {
	// StartToCloseTimeout bounds one attempt. Defaults to 10 minutes.
	StartToCloseTimeout time.Duration
	// ScheduleToCloseTimeout bounds a call, all attempts together; callers are
	// told. At least 3 seconds. Defaults to 1 hour.
	ScheduleToCloseTimeout time.Duration
	// ScheduleToStartTimeout bounds the wait for a Worker. Defaults to no bound of
	// its own.
	ScheduleToStartTimeout time.Duration
	// HeartbeatTimeout is how long a Worker may be silent before it counts as
	// dead. At least [MinHeartbeatTimeout]. Defaults to 10 seconds.
	HeartbeatTimeout time.Duration
	// Retry spaces and bounds the attempts. In [Options.ToolPolicies] it also says
	// that the tool may be repeated, unless AtMostOnce is set or MaximumAttempts is 1.
	// Defaults to that of [RetryPolicy].
	Retry *RetryPolicy
	// AtMostOnce says whether a call that may have reached the upstream must not be
	// sent again. In [Options.Policy] it is for the tools whose annotations do not
	// say. Defaults to what the annotations say, and for those that do not to true.
	AtMostOnce *bool
}

// RetryPolicy spaces and bounds the attempts of a call. A tool that runs at most
// once is tried again only when a request was certainly not sent.
type RetryPolicy struct {
	// InitialInterval is the first pause. Defaults to 1 second.
	InitialInterval time.Duration
	// BackoffCoefficient multiplies each further pause. At least 1. Defaults to 2.
	BackoffCoefficient float64
	// MaximumInterval bounds the pause. Defaults to 30 seconds.
	MaximumInterval time.Duration
	// MaximumAttempts bounds the attempts, the first included. Defaults to 5.
	MaximumAttempts int32
	// NonRetryableErrorTypes end a call at once. The upstream being away is
	// "unavailable". Defaults to none.
	NonRetryableErrorTypes []string
}

// ResolvedPolicy is a policy with all defaults filled in.
type ResolvedPolicy struct {
	StartToCloseTimeout    time.Duration
	ScheduleToCloseTimeout time.Duration
	ScheduleToStartTimeout time.Duration // zero: no bound
	HeartbeatTimeout       time.Duration
	Retry                  RetryPolicy
}

// Why a call of a tool may be repeated, or may not.
const (
	WhyReadOnlyHint   = "annotation readOnlyHint"
	WhyIdempotentHint = "annotation idempotentHint"
	WhyDefault        = "MCP default"
	WhyPolicy         = "policy"
	WhyToolPolicies   = "tool_policies"
)

const (
	defaultStartToClose    = 10 * time.Minute
	defaultScheduleToClose = time.Hour
	defaultHeartbeat       = 10 * time.Second
	defaultInitialInterval = time.Second
	defaultCoefficient     = 2
	defaultMaximumInterval = 30 * time.Second
	defaultMaximumAttempts = 5
)

// MinHeartbeatTimeout is the shortest [Policy.HeartbeatTimeout] that a Worker keeps.
const MinHeartbeatTimeout = time.Second

// check returns every fault; place is where the policy stands.
func (p *Policy) check(place string) []error {
	var errs []error
	fail := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s.%s: %s", place, field, fmt.Sprintf(format, args...)))
	}
	atLeastZero := func(field string, d time.Duration) {
		if d < 0 {
			fail(field, "%s is negative", d)
		}
	}
	atLeastZero("StartToCloseTimeout", p.StartToCloseTimeout)
	atLeastZero("ScheduleToStartTimeout", p.ScheduleToStartTimeout)
	if d := p.ScheduleToCloseTimeout; d != 0 && d < contract.MinScheduleToClose {
		fail("ScheduleToCloseTimeout", "%s, want at least %s: below it the Temporal server lets a call time out before a Worker gets it",
			d, contract.MinScheduleToClose)
	}
	if d := p.HeartbeatTimeout; d != 0 && d < MinHeartbeatTimeout {
		fail("HeartbeatTimeout", "%s, want at least %s", d, MinHeartbeatTimeout)
	}
	if r := p.Retry; r != nil {
		atLeastZero("Retry.InitialInterval", r.InitialInterval)
		atLeastZero("Retry.MaximumInterval", r.MaximumInterval)
		if c := r.BackoffCoefficient; c != 0 && (c < 1 || math.IsNaN(c) || math.IsInf(c, 0)) {
			fail("Retry.BackoffCoefficient", "%v, want a number of at least 1", c)
		}
		if r.MaximumAttempts < 0 {
			fail("Retry.MaximumAttempts", "%d is negative", r.MaximumAttempts)
		}
		full := r.resolved()
		if r.InitialInterval > 0 && full.MaximumInterval < full.InitialInterval {
			fail("Retry.MaximumInterval", "%s is less than the InitialInterval, %s", full.MaximumInterval, full.InitialInterval)
		}
	}
	return errs
}

func (p *Policy) resolved() ResolvedPolicy {
	r := ResolvedPolicy{
		StartToCloseTimeout:    p.StartToCloseTimeout,
		ScheduleToCloseTimeout: p.ScheduleToCloseTimeout,
		ScheduleToStartTimeout: p.ScheduleToStartTimeout,
		HeartbeatTimeout:       p.HeartbeatTimeout,
	}
	orElse(&r.StartToCloseTimeout, defaultStartToClose)
	orElse(&r.ScheduleToCloseTimeout, defaultScheduleToClose)
	orElse(&r.HeartbeatTimeout, defaultHeartbeat)
	var retry RetryPolicy
	if p.Retry != nil {
		retry = *p.Retry
	}
	r.Retry = retry.resolved()
	return r
}

func (r RetryPolicy) resolved() RetryPolicy {
	if r.InitialInterval == 0 {
		r.InitialInterval = defaultInitialInterval
		if r.MaximumInterval > 0 {
			r.InitialInterval = min(r.InitialInterval, r.MaximumInterval)
		}
	}
	orElse(&r.BackoffCoefficient, defaultCoefficient)
	if r.MaximumInterval == 0 {
		r.MaximumInterval = max(defaultMaximumInterval, r.InitialInterval)
	}
	orElse(&r.MaximumAttempts, defaultMaximumAttempts)
	r.NonRetryableErrorTypes = slices.Clone(r.NonRetryableErrorTypes)
	return r
}

// temporal returns the policy for the server. Its attempts have no end there: the
// proxy counts them, so that the last one can end with words that say what became
// of the call, also when its Worker died; and a call that waits for a place is
// "unavailable" too, so that type is the proxy's to end. A result that a codec made
// too large is too large every time.
func (r RetryPolicy) temporal() *temporal.RetryPolicy {
	types := slices.DeleteFunc(slices.Clone(r.NonRetryableErrorTypes), func(s string) bool { return s == string(contract.CodeUnavailable) })
	return &temporal.RetryPolicy{
		InitialInterval:        r.InitialInterval,
		BackoffCoefficient:     r.BackoffCoefficient,
		MaximumInterval:        r.MaximumInterval,
		MaximumAttempts:        math.MaxInt32,
		NonRetryableErrorTypes: append(types, typePayloadSize),
	}
}

// typePayloadSize is the Temporal SDK's error of a payload over the limit.
const typePayloadSize = "payloadSizeError"

// plan is how the calls of one tool run.
type plan struct {
	policy     ResolvedPolicy
	repeatable bool
	why        string
}

// plan resolves the policy of a tool. Annotations are nil for a tool that nobody
// has listed yet.
func (o *Options) plan(upstreamName string, annotations []byte) plan {
	if p, ok := o.ToolPolicies[upstreamName]; ok {
		switch {
		case p.AtMostOnce != nil:
			return plan{p.resolved(), !*p.AtMostOnce, WhyToolPolicies}
		case p.Retry != nil && p.Retry.MaximumAttempts != 1: // who wants one attempt wants no other
			return plan{p.resolved(), true, WhyToolPolicies}
		}
		repeatable, why := byAnnotations(annotations)
		return plan{p.resolved(), repeatable, why}
	}
	repeatable, why := byAnnotations(annotations)
	if why == WhyDefault && o.Policy.AtMostOnce != nil {
		repeatable, why = !*o.Policy.AtMostOnce, WhyPolicy
	}
	return plan{o.Policy.resolved(), repeatable, why}
}

// byAnnotations decides by the hints of a tool. Without any of the two that speak
// of repeating, MCP's defaults hold: not read-only, not idempotent.
func byAnnotations(raw []byte) (repeatable bool, why string) {
	hints, err := contract.ParseObject(raw)
	if err != nil {
		return false, WhyDefault
	}
	readOnly, idempotent := hints.Get("readOnlyHint"), hints.Get("idempotentHint")
	switch {
	case string(readOnly) == "true":
		return true, WhyReadOnlyHint
	case string(idempotent) == "true":
		return true, WhyIdempotentHint
	case !contract.IsNull(idempotent):
		return false, WhyIdempotentHint
	case !contract.IsNull(readOnly):
		return false, WhyReadOnlyHint
	}
	return false, WhyDefault
}
