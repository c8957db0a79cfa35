package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nexus-rpc/sdk-go/nexus"
)

// The methods that are forwarded to a service, each as an operation of its own.
const (
	readResource = "resources/read"
	getPrompt    = "prompts/get"
	complete     = "completion/complete"
)

// route is one service that may answer a request.
type route struct {
	service catalog.Service
	params  contract.Object
	guess   bool // nothing says that the service has it
	// answer, if it is set, changes the service's result for the client.
	answer func(*contract.Object)
}

// forward asks the services that may know the answer, one after the other until
// one does. That takes no longer than the wait budget: nothing is kept for a reader
// that is gone. Which they are may take a look at their lists before, which has the
// time of a discovery.
func (s *Server) forward(ctx context.Context, f feature, method string, req clientRequest, params contract.Object) (mcp.Result, error) {
	done, err := s.takeCall()
	if err != nil {
		return nil, err
	}
	defer done()
	if meta := forwardedMeta(params.Get("_meta")); meta != nil {
		params.Set("_meta", meta)
	} else {
		params.Delete("_meta")
	}
	routes, err := f.route(s, ctx, params)
	if err != nil {
		return nil, err
	}
	if len(routes) == 0 {
		return s.nobodyKnows(method, req, params)
	}
	openStream(ctx)
	deadline := time.Now().Add(s.options.WaitBudget)
	for _, r := range routes {
		var output json.RawMessage
		output, err = s.ask(ctx, method, req, r, time.Until(deadline))
		if err == nil {
			return s.featureResult(method, req, r, output)
		}
		if !isNotFound(err) {
			break
		}
	}
	if method == readResource && isNotFound(err) {
		err = s.notFound(err, routes, member(params, "uri"), req)
	}
	return nil, err
}

// nobodyKnows answers what there is no service to ask for.
func (s *Server) nobodyKnows(method string, req clientRequest, params contract.Object) (mcp.Result, error) {
	if method == complete { // the service whose prompt or template it is completes nothing
		var o contract.Object
		o.Set("completion", json.RawMessage(`{"values":[]}`))
		return newResult(o, isModern(req.ProtocolVersion())), nil
	}
	return nil, s.notFound(nil, nil, member(params, "uri"), req)
}

// missing is what is known about the catalog where some service has not answered.
func (s *Server) missing() []string {
	snapshot := s.catalog.Snapshot()
	if snapshot.CompleteLists() {
		return nil
	}
	return snapshot.Warnings()
}

// ask runs one request as an operation of a service.
func (s *Server) ask(ctx context.Context, method string, req clientRequest, r route, budget time.Duration) (json.RawMessage, error) {
	tool := contract.Tool{
		Name: contract.MethodOperation(method), Encoding: contract.EncodingValue,
		// Longer than anybody waits, so that who waits says why it ended.
		ScheduleToCloseTimeout: max(s.options.WaitBudget, contract.MinScheduleToClose) + time.Second,
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	budget = max(budget, time.Millisecond)
	began := time.Now()
	id, err := s.start(ctx, operation.Call{
		Endpoint: r.service.Endpoint, Service: r.service.Name, Tool: tool,
		Params: contract.CallParams{Arguments: r.params.JSON()}, Caller: s.caller(req.GetExtra()),
		Trace: traceContext(req.GetParams().GetMeta(), req.GetExtra()),
	}, budget)
	if err != nil {
		return nil, s.featureError(ctx, req, method, id, err)
	}
	waiting, stop := s.untilDrained(ctx, 0)
	defer stop()
	output, err := s.ops.Output(waiting, id, max(budget-time.Since(began), time.Millisecond))
	switch {
	case err == nil:
		return output, nil
	case errors.Is(err, operation.ErrRunning) && s.drained.Err() != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The server stops before the service has answered. Ask again."}
	case errors.Is(err, operation.ErrRunning):
		go s.giveUp(ctx, id, "nobody waits for the answer any more")
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf(
			"The service %q did not answer %s within %v. Nobody waits for the answer any more; ask again.", r.service.Name, method, s.options.WaitBudget)}
	case ctx.Err() != nil:
		s.clientGone(ctx, id)
		return nil, err
	}
	return nil, s.featureError(ctx, req, method, id, err)
}

// featureResult is a service's result, as bytes.
func (s *Server) featureResult(method string, req clientRequest, r route, output json.RawMessage) (mcp.Result, error) {
	o, err := contract.ParseObject(output)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("The service %q answered %s with something that is no result: %v.", r.service.Name, method, err)}
	}
	takes := takesInput(req)
	if method == complete {
		takes = nil
	}
	if problem := resultProblem(o, takes); problem != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: problem}
	}
	if contract.IsNull(o.Get("resultType")) {
		o.Delete("resultType")
	}
	if r.answer != nil {
		r.answer(&o)
	}
	modern := isModern(req.ProtocolVersion())
	if modern && method == readResource && !o.Has("inputRequests") && !o.Has("requestState") {
		if !o.Has("ttlMs") {
			o.Set("ttlMs", json.RawMessage("0"))
		}
		if !o.Has("cacheScope") {
			o.Set("cacheScope", contract.Quote("private")) // the service may look at who asks
		}
	}
	return newResult(o, modern), nil
}

// featureError is the JSON-RPC error for a request that a service did not answer
// with a result. Its data say what a program may want to know.
func (s *Server) featureError(ctx context.Context, req clientRequest, method, id string, err error) error {
	f := resultmap.FromError(err)
	s.options.Logger.Debug("a request failed", "method", method, "operation_id", id, "code", string(f.Code), "error", err)
	if p := f.Protocol(); p != nil {
		return serviceError(ctx, req.GetExtra(), p)
	}
	if f.Code == contract.CodeInvalid && id == "" {
		return invalidParams("%s", f.Message)
	}
	if h, ok := errors.AsType[*nexus.HandlerError](err); ok && h.Type == nexus.HandlerErrorTypeNotFound {
		return invalidParams("%s", f.Message)
	}
	r := f.Result()
	var data contract.Object
	if failure := r.Meta(contract.MetaFailure); failure != nil {
		data.Set(contract.MetaFailure, failure)
	}
	if id != "" {
		data.Set(contract.MetaOperationID, contract.Quote(id))
	}
	message, _ := r.Text()
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message, Data: data.JSON()}
}

// resourceNotFound is the code that MCP before 2026-07-28 has for a resource that
// is not there. Since then it is invalid params.
const resourceNotFound = -32002

// isNotFound reports whether a service does not know what it was asked for.
func isNotFound(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && (rpc.Code == resourceNotFound || rpc.Code == jsonrpc.CodeInvalidParams)
}

// notFound is the answer to a reader of a resource that is not there, in the code of
// the client's revision: the service's own error where it alone can have it, else one
// that names the services which have not answered.
func (s *Server) notFound(err error, asked []route, uri string, req clientRequest) error {
	missing := s.missing()
	var data contract.Object
	data.Set("uri", contract.Quote(uri))
	answer := &jsonrpc.Error{
		Code: resourceNotFound, Message: withWarnings(fmt.Sprintf("Resource not found: %.200q.", uri), missing), Data: data.JSON(),
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok && len(asked) == 1 {
		own, err := contract.ParseObject(rpc.Data)
		named := err == nil && own.Has("uri")
		if rpc.Code == jsonrpc.CodeInvalidParams && !named {
			return rpc // other params may be what is wrong
		}
		if !asked[0].guess || len(missing) == 0 {
			answer.Message = rpc.Message
			if named {
				own.Set("uri", contract.Quote(uri)) // that the client knows
				answer.Data = own.JSON()
			} else if len(rpc.Data) > 0 {
				answer.Data = rpc.Data
			}
		}
	}
	if isModern(req.ProtocolVersion()) {
		answer.Code = jsonrpc.CodeInvalidParams
	}
	return answer
}

func member(o contract.Object, key string) string {
	var s string
	_ = json.Unmarshal(o.Get(key), &s) // the SDK has refused what is no string
	return s
}

// routeResource: the service that has the resource, or those that may.
func (s *Server) routeResource(_ context.Context, params contract.Object) ([]route, error) {
	asked := member(params, "uri")
	var routes []route
	for _, t := range s.catalog.Snapshot().Locate(asked) {
		r := route{service: t.Service, params: params, guess: t.Guess}
		if t.URI != asked {
			r.params.Set("uri", contract.Quote(t.URI))
			r.answer = func(o *contract.Object) { o.Set("contents", servedContents(o.Get("contents"), t, asked)) }
		}
		routes = append(routes, r)
	}
	return routes, nil
}

// servedContents puts the URIs that the client knows in the contents of a
// service whose own ones belong to another.
func servedContents(contents json.RawMessage, t catalog.Target, asked string) json.RawMessage {
	blocks, err := contract.ParseArray(contents)
	if err != nil {
		return contents
	}
	for i, b := range blocks {
		o, err := contract.ParseObject(b)
		if err != nil || !o.Has("uri") {
			continue
		}
		uri := member(o, "uri")
		if uri == t.URI {
			o.Set("uri", contract.Quote(asked))
		} else {
			o.Set("uri", contract.Quote(t.Served(uri)))
		}
		blocks[i] = o.JSON()
	}
	return contract.Array(blocks...)
}

// routePrompt: the service that has the prompt.
func (s *Server) routePrompt(ctx context.Context, params contract.Object) ([]route, error) {
	name := member(params, "name")
	item, ok := s.catalog.LookupPrompt(ctx, name)
	if !ok {
		return nil, unknownPrompt(name, s.catalog.Snapshot().Warnings())
	}
	if item.Own() != name {
		params.Set("name", contract.Quote(item.Own()))
	}
	return []route{{service: item.Service, params: params}}, nil
}

// routeCompletion: the services that may have the prompt or the template, as far
// as they complete at all.
func (s *Server) routeCompletion(ctx context.Context, params contract.Object) ([]route, error) {
	ref, err := contract.ParseObject(params.Get("ref"))
	if err != nil {
		return nil, invalidParams("ref: %v", err)
	}
	to := func(service catalog.Service, key, asked, own string) route {
		p := params
		if own != asked {
			changed := ref
			changed.Set(key, contract.Quote(own))
			p.Set("ref", changed.JSON())
		}
		return route{service: service, params: p}
	}
	var routes []route
	if ref.Has("uri") {
		asked := member(ref, "uri")
		for _, t := range s.catalog.Snapshot().LocateRef(asked) {
			routes = append(routes, to(t.Service, "uri", asked, t.URI))
		}
		if len(routes) == 0 {
			return nil, invalidParams("%s", withWarnings(fmt.Sprintf("ref: nobody has the resource template %q", asked), s.missing()))
		}
	} else {
		asked := member(ref, "name")
		item, ok := s.catalog.LookupPrompt(ctx, asked)
		if !ok {
			return nil, unknownPrompt(asked, s.catalog.Snapshot().Warnings())
		}
		routes = append(routes, to(item.Service, "name", asked, item.Own()))
	}
	snapshot := s.catalog.Snapshot()
	able := routes[:0:0]
	for _, r := range routes {
		if snapshot.Has(r.service, catalog.Completions) {
			able = append(able, r)
		}
	}
	return able, nil
}
