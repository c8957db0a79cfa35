package mcpworkflow

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Interceptor goes into worker.Options.Interceptors of the Worker that runs the
// Workflows. With it each call carries the hash of the Workflow's namespace and
// ID (so that a proxy gives it a session of its own), [WithIdempotencyKey] and
// [WithHeader] work, and the Nexus operations that a Workflow starts by itself
// count as pending, though they are never held back: see [Options.MaxPending].
//
// It adds nothing to the history of a Workflow, but a Workflow does other things
// with it: a call with a key or headers goes out that fails without it, and calls
// wait for the Workflow's own operations. So it comes and goes like a change to the
// Workflow's code: on a new version of the Worker, or when the runs have ended.
func Interceptor() interceptor.WorkerInterceptor { return &workerInterceptor{} }

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
}

func (*workerInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &inbound{}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{}
	o.Next = next
	return i.Next.Init(o)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

type (
	headerKey  struct{} // marks a call of this package; its []header
	countedKey struct{} // marks an operation of the Workflow's own that is counted
	probeKey   struct{} // a *bool that says whether the interceptor is there
)

// GetInfo implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	if there, ok := ctx.Value(probeKey{}).(*bool); ok {
		*there = true
	}
	return o.Next.GetInfo(ctx)
}

// intercepted reports whether the Worker has the interceptor.
func intercepted(ctx workflow.Context) (there bool) {
	workflow.GetInfo(workflow.WithValue(ctx, probeKey{}, &there))
	return there
}

// ExecuteNexusOperation implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteNexusOperation(ctx workflow.Context, in interceptor.ExecuteNexusOperationInput) workflow.NexusOperationFuture {
	if headers, ours := ctx.Value(headerKey{}).([]header); ours {
		for _, h := range headers {
			in.NexusHeader.Set(h.key, h.value)
		}
		return o.Next.ExecuteNexusOperation(ctx, in)
	}
	if ctx.Value(countedKey{}) != nil { // the Worker has the interceptor twice
		return o.Next.ExecuteNexusOperation(ctx, in)
	}
	operation := o.Next.ExecuteNexusOperation(workflow.WithValue(ctx, countedKey{}, true), in)
	if !operation.IsReady() {
		r := runOf(ctx)
		r.pending++
		calm, _ := workflow.NewDisconnectedContext(ctx)
		workflow.Go(calm, func(ctx workflow.Context) {
			_ = operation.Get(ctx, nil)
			r.release(ctx)
		})
	}
	return operation
}

// header is one Nexus header of a call.
type header struct{ key, value string }

// callerOf is the value of the caller header: 16 hex digits that every run of
// the Workflow has.
func callerOf(info *workflow.Info) string {
	sum := sha256.Sum256([]byte(info.Namespace + "\x00" + info.WorkflowExecution.ID))
	return hex.EncodeToString(sum[:])[:16]
}

// headersOf returns the headers of a call, those last that no caller may set.
func headersOf(ctx workflow.Context, o callOptions) []header {
	headers := append(slices.Clip(o.headers), header{contract.HeaderCaller, callerOf(workflow.GetInfo(ctx))})
	if o.sentKey != "" {
		headers = append(headers, header{contract.HeaderIdempotencyKey, o.sentKey})
	}
	return headers
}
