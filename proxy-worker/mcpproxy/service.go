package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
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

// methods are the methods of MCP beside tools that a proxy serves, with the
// capability that announces each and the member of the params that names what it is
// about.
var methods = []struct{ method, capability, name string }{
	{"resources/list", "resources", ""},
	{"resources/templates/list", "resources", ""},
	{"resources/read", "resources", "uri"},
	{"prompts/list", "prompts", ""},
	{"prompts/get", "prompts", "name"},
	{"completion/complete", "completions", ""},
}

const (
	codeInvalidParams  = -32602 // JSON-RPC 2.0
	codeMethodNotFound = mcpclient.CodeMethodNotFound
)

type (
	started = temporalnexus.TemporalOperationResult[converter.RawValue]
	starter = func(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, options temporalnexus.StartTemporalOperationOptions) (started, error)
)

// service returns the operations. None of them talks to the upstream: what does is
// an activity.
func (p *Proxy) service() (*nexus.Service, error) {
	starters := map[string]starter{
		contract.OperationListTools: p.startList,
		operationCall:               p.startCall,
	}
	for _, m := range methods {
		starters[contract.MethodOperation(m.method)] = func(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, options temporalnexus.StartTemporalOperationOptions) (started, error) {
			return p.startMethod(ctx, nc, m.method, m.capability, input, options)
		}
	}
	service := nexus.NewService(p.name)
	for name, start := range starters {
		op, err := temporalnexus.NewTemporalOperation(temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
			Name: name, Start: start,
		})
		if err != nil {
			return nil, err
		}
		if err := service.Register(op); err != nil {
			return nil, err
		}
	}
	return service, nil
}

// startList answers from the list that the proxy keeps.
func (p *Proxy) startList(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, options temporalnexus.StartTemporalOperationOptions) (started, error) {
	raw, err := resultmap.JSON(input)
	if err != nil {
		return started{}, failed(err)
	}
	cursor, err := contract.DecodeListInput(raw)
	if err != nil {
		return started{}, failed(invalidParams(err.Error()))
	}
	r := p.current()
	if r == nil {
		return started{}, errStopping
	}
	if list := r.catalog.list(); list != nil {
		page, err := list.page(cursor)
		if err != nil {
			return started{}, failed(err)
		}
		return temporalnexus.NewSyncResult(resultmap.RawValue(page)), nil
	}
	return p.startActivity(ctx, nc, activityStart{
		name: p.activityName(contract.OperationListTools), id: contract.OperationListTools, summary: contract.OperationListTools,
		policy: listPolicy(), args: []any{cursor},
	}, options)
}

func (l *listing) page(cursor string) (json.RawMessage, error) {
	page, err := l.manifest.Page(cursor)
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	return page.JSON(), nil
}

// startCall starts the call of a tool whose name the connection has put in a header.
func (p *Proxy) startCall(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, options temporalnexus.StartTemporalOperationOptions) (started, error) {
	name := options.Header.Get(headerTool)
	if name == "" {
		return started{}, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "operation %q not found: a tool is called by its own name", operationCall)
	}
	raw, err := resultmap.JSON(input)
	if err != nil {
		return started{}, failed(err)
	}
	if _, err := contract.DecodeCall(contract.EncodingMCP, raw); err != nil {
		return started{}, failed(invalidParams(err.Error()))
	}
	about := newCall(name, options.Header)
	if err := about.fits(raw); err != nil {
		return started{}, failed(err)
	}
	r := p.current()
	if r == nil {
		return started{}, errStopping
	}
	list := r.catalog.list()
	policy := p.guess(name)
	switch {
	case contract.CheckToolName(name) != nil:
		return started{}, failed(unknownTool(name))
	case list.answers(name):
		t := list.tools[name]
		if t == nil {
			return started{}, failed(unknownTool(name))
		}
		policy = t.plan.policy
	}
	return p.startActivity(ctx, nc, activityStart{
		name: p.activityName(operationCall), id: name, summary: name, policy: policy,
		args: []any{resultmap.RawValue(raw), about},
	}, options)
}

// guess returns the policy of a tool that is not listed: its name is mostly the
// upstream's.
func (p *Proxy) guess(name string) ResolvedPolicy {
	upstream := name
	if n := len(p.options.Prefix); len(name) > n && name[:n] == p.options.Prefix {
		upstream = name[n:]
	}
	return p.options.plan(upstream, nil).policy
}

func (p *Proxy) startMethod(ctx context.Context, nc temporalnexus.NexusClient, method, capability string, input converter.RawValue, options temporalnexus.StartTemporalOperationOptions) (started, error) {
	raw, err := resultmap.JSON(input)
	if err != nil {
		return started{}, failed(err)
	}
	if !contract.IsNull(raw) {
		if _, err := contract.ParseObject(raw); err != nil {
			return started{}, failed(invalidParams("params: " + err.Error()))
		}
	}
	about := newCall("", options.Header)
	if err := about.fits(raw); err != nil {
		return started{}, failed(err)
	}
	r := p.current()
	if r == nil {
		return started{}, errStopping
	}
	operation := contract.MethodOperation(method)
	if list := r.catalog.list(); list != nil && !list.server.Has(capability) {
		return started{}, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "operation %q not found: the server has no %s", operation, capability)
	}
	return p.startActivity(ctx, nc, activityStart{
		name: p.activityName(operation), id: operation, summary: method, policy: p.options.Policy.resolved(),
		args: []any{resultmap.RawValue(raw), about},
	}, options)
}

// activityStart is an activity to start.
type activityStart struct {
	name, id, summary string
	policy            ResolvedPolicy
	args              []any
}

// startActivity schedules an activity. Its ID is that of the Nexus request, so a
// start that is delivered again finds the first one, also after it closed.
func (p *Proxy) startActivity(ctx context.Context, nc temporalnexus.NexusClient, a activityStart, options temporalnexus.StartTemporalOperationOptions) (started, error) {
	id := a.id + "-" + options.RequestID
	result, err := temporalnexus.StartUntypedActivity[converter.RawValue](ctx, nc, client.StartActivityOptions{
		ID:                       id,
		ScheduleToCloseTimeout:   timeLeft(a.policy.ScheduleToCloseTimeout, options.Header),
		ScheduleToStartTimeout:   a.policy.ScheduleToStartTimeout,
		StartToCloseTimeout:      a.policy.StartToCloseTimeout,
		HeartbeatTimeout:         a.policy.HeartbeatTimeout,
		ActivityIDReusePolicy:    enumspb.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ActivityIDConflictPolicy: enumspb.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING,
		RetryPolicy:              a.policy.Retry.temporal(),
		Summary:                  a.summary,
	}, a.name, a.args...)
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, new(*serviceerror.InvalidArgument)), errors.As(err, new(*serviceerror.Unimplemented)):
		return started{}, failed(&contract.Failure{Code: contract.CodeUnavailable, Cause: err, Message: fmt.Sprintf(
			"Temporal refused the activity behind the call: %v. A proxy needs the dynamic configuration "+
				"activity.enableCallbacks=true in the namespace of its Worker.", err)})
	case errors.As(err, new(*serviceerror.FailedPrecondition)), errors.As(err, new(*serviceerror.ActivityExecutionAlreadyStarted)):
		return outcome(ctx, id)
	}
	return started{}, transient(err)
}

// outcome answers for an activity of this very request that has closed: an earlier
// delivery of the start had made it.
func outcome(ctx context.Context, id string) (started, error) {
	var value converter.RawValue
	err := temporalnexus.GetClient(ctx).GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}).Get(ctx, &value)
	if err != nil {
		if errors.As(err, new(*temporal.ApplicationError)) || errors.As(err, new(*temporal.CanceledError)) || errors.As(err, new(*temporal.TimeoutError)) {
			return started{}, failed(err)
		}
		return started{}, transient(err)
	}
	return temporalnexus.NewSyncResult(value), nil
}

// timeLeft bounds an activity by the operation's time, which Temporal states in a
// header: an operation that times out or is terminated does not end its activity.
func timeLeft(limit time.Duration, header nexus.Header) time.Duration {
	if left, err := time.ParseDuration(header.Get(nexus.HeaderOperationTimeout)); err == nil && left > 0 {
		return min(limit, left)
	}
	return limit
}

// failed ends the operation.
func failed(err error) error {
	f := resultmap.FromError(err)
	return resultmap.OperationError(f)
}

// errStopping lets Temporal deliver the start to another Worker.
var errStopping = &nexus.HandlerError{
	Type: nexus.HandlerErrorTypeUnavailable, Message: "the Worker stops", RetryBehavior: nexus.HandlerErrorRetryBehaviorRetryable,
}

// transient asks Temporal, which did not answer, to deliver the start again, or
// ends the operation where it did.
func transient(err error) error {
	typ := nexus.HandlerErrorTypeUnavailable
	if errors.As(err, new(*serviceerror.ResourceExhausted)) {
		typ = nexus.HandlerErrorTypeResourceExhausted
	}
	f := resultmap.FromError(err)
	if f.Code == contract.CodeUnavailable && f.Retryable || errors.Is(err, context.DeadlineExceeded) {
		return &nexus.HandlerError{Type: typ, Message: f.Message, RetryBehavior: nexus.HandlerErrorRetryBehaviorRetryable}
	}
	return failed(f)
}

func invalidParams(message string) *contract.Failure {
	return resultmap.ProtocolError(&contract.ProtocolError{Code: codeInvalidParams, Message: message})
}

// unknownTool is what MCP answers for a name that no tool has (server/tools,
// "Error Handling").
func unknownTool(name string) *contract.Failure {
	const most = 128
	if len(name) > most {
		name = name[:most] + "…"
	}
	return invalidParams("Unknown tool: " + name)
}
