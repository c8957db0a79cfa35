package mcpproxy

import (
	"context"
	"errors"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// headerTool carries the name of a called tool from the connection to the handler,
// within this process: a Worker of the Temporal SDK knows only operations that
// were registered before it started. Nexus header keys are in lower case.
const headerTool = "durable-mcp-proxy-tool"

// operationCall is the operation that all calls of tools become. No tool can have
// its name.
var operationCall = contract.MethodOperation("tools/call")

// probeKey asks the connection, in a context, whether it has a proxy.
type probeKey struct{ p *Proxy }

// interceptedKey says, in a context, that a proxy sees the request already.
type interceptedKey struct{ p *Proxy }

var errProbed = errors.New("the connection has the proxy")

// intercept is a gRPC interceptor of the Worker's client.
func (p *Proxy) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if ctx.Value(probeKey{p}) != nil {
		return errProbed
	}
	if ctx.Value(interceptedKey{p}) != nil { // the client has the proxy twice
		return invoke(ctx, method, request, reply, conn, options...)
	}
	err := invoke(context.WithValue(ctx, interceptedKey{p}, true), method, request, reply, conn, options...)
	if poll, ok := reply.(*workflowservice.PollNexusTaskQueueResponse); ok && err == nil {
		p.rewrite(poll.GetRequest())
	}
	return err
}

// rewrite makes the call of a tool that of the one operation for all of them.
func (p *Proxy) rewrite(r *nexuspb.Request) {
	var (
		service   string
		operation *string
	)
	if start := r.GetStartOperation(); start != nil {
		service, operation = start.GetService(), &start.Operation
	} else if cancel := r.GetCancelOperation(); cancel != nil {
		service, operation = cancel.GetService(), &cancel.Operation
	}
	if operation == nil || service != p.name {
		return
	}
	for key := range r.Header {
		if strings.EqualFold(key, headerTool) { // a caller's
			delete(r.Header, key)
		}
	}
	if *operation == contract.OperationListTools || strings.HasPrefix(*operation, contract.MethodOperation("")) {
		return
	}
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	r.Header[headerTool] = *operation
	*operation = operationCall
}
