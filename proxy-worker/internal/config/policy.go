package config

import (
	"math"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

var policyKeys = []string{
	"start_to_close_timeout", "schedule_to_close_timeout", "schedule_to_start_timeout", "heartbeat_timeout", "retry", "at_most_once",
}

var retryKeys = []string{
	"initial_interval", "backoff_coefficient", "maximum_interval", "maximum_attempts", "non_retryable_error_types",
}

func (o object) policy() mcpproxy.Policy {
	p := mcpproxy.Policy{
		StartToCloseTimeout:    o.duration("start_to_close_timeout"),
		ScheduleToCloseTimeout: o.duration("schedule_to_close_timeout"),
		ScheduleToStartTimeout: o.duration("schedule_to_start_timeout"),
		HeartbeatTimeout:       o.duration("heartbeat_timeout"),
	}
	if d := p.ScheduleToCloseTimeout; d > 0 && d < contract.MinScheduleToClose {
		o.fault("schedule_to_close_timeout", "%v, want at least %v: the Temporal server cannot keep a shorter one", d, contract.MinScheduleToClose)
	}
	if d := p.HeartbeatTimeout; d > 0 && d < mcpproxy.MinHeartbeatTimeout {
		o.fault("heartbeat_timeout", "%v, want at least %v", d, mcpproxy.MinHeartbeatTimeout)
	}
	if once, ok := o.boolean("at_most_once"); ok {
		p.AtMostOnce = &once
	}
	retry, ok := o.sub("retry", retryKeys...)
	if !ok {
		return p
	}
	p.Retry = &mcpproxy.RetryPolicy{
		InitialInterval:        retry.duration("initial_interval"),
		BackoffCoefficient:     retry.factor("backoff_coefficient"),
		MaximumInterval:        retry.duration("maximum_interval"),
		MaximumAttempts:        int32(retry.count("maximum_attempts", math.MaxInt32)),
		NonRetryableErrorTypes: values(retry.texts("non_retryable_error_types")),
	}
	if r := p.Retry; r.MaximumInterval > 0 && r.InitialInterval > r.MaximumInterval {
		retry.fault("maximum_interval", "%v is less than initial_interval, %v", r.MaximumInterval, r.InitialInterval)
	}
	return p
}

func (o object) policies() map[string]mcpproxy.Policy {
	if len(o.node.members) == 0 {
		return nil
	}
	policies := map[string]mcpproxy.Policy{}
	for _, m := range o.node.members {
		if inner, ok := o.object(join(o.path, m.key), m.value, policyKeys...); ok {
			policies[m.key] = inner.policy()
		}
	}
	return policies
}
