package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// call is what an activity knows of its call beside the input. It is kept in
// Temporal as JSON.
type call struct {
	Tool           string            `json:"tool,omitempty"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Caller         string            `json:"caller,omitempty"`
	Trace          map[string]string `json:"trace,omitempty"`
}

func newCall(tool string, header nexus.Header) call {
	c := call{
		Tool:           tool,
		IdempotencyKey: header.Get(contract.HeaderIdempotencyKey),
		Caller:         header.Get(contract.HeaderCaller),
	}
	for _, key := range []string{contract.HeaderTraceparent, contract.HeaderTracestate, contract.HeaderBaggage} {
		if v := header.Get(key); v != "" {
			if c.Trace == nil {
				c.Trace = map[string]string{}
			}
			c.Trace[key] = v
		}
	}
	return c
}

// fits returns an error for an input that leaves the activity no room for the call
// beside it: Temporal bounds what it is started with together.
func (c call) fits(input json.RawMessage) error {
	about, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return contract.CheckSize("arguments", input, about)
}

// activities returns the activities by type.
func (p *Proxy) activities() map[string]any {
	all := map[string]any{
		p.activityName(contract.OperationListTools): p.runList,
		p.activityName(operationCall):               p.runCall,
	}
	for _, m := range methods {
		all[p.activityName(contract.MethodOperation(m.method))] = func(ctx context.Context, params converter.RawValue, c call) (converter.RawValue, error) {
			return p.runMethod(ctx, m.method, m.capability, m.name, params, c)
		}
	}
	return all
}

func (p *Proxy) activityName(operation string) string { return p.name + "." + operation }

// runCall is the activity behind a tool.
func (p *Proxy) runCall(ctx context.Context, input converter.RawValue, c call) (_ converter.RawValue, err error) {
	none := converter.RawValue{}
	at, end, err := p.newAttempt(ctx)
	if err != nil {
		return none, err
	}
	defer func() {
		end()
		at.report(c.Tool, err)
	}()
	raw, err := resultmap.JSON(input)
	if err != nil {
		return none, final(resultmap.FromError(err))
	}
	params, err := contract.DecodeCall(contract.EncodingMCP, raw)
	if err != nil {
		return none, final(invalidParams(err.Error()))
	}
	if at.wasSending { // whatever there is to say of the tool now
		return none, unknown("The Worker that called it is gone, or its answer came too late.", nil)
	}
	t, err := p.find(at, c.Tool)
	if err != nil {
		return none, err
	}
	x := &exchange{
		attempt: at, server: p.name, caller: c.Caller, what: fmt.Sprintf("Tool %q", t.upstream), plan: t.plan,
		request: func(s mcpclient.Server) (mcpclient.Request, error) {
			request := mcpclient.Request{Method: "tools/call", Name: t.upstream, Params: callParams(t.upstream, params, c, activity.GetInfo(ctx).ActivityID)}
			if s.Stateless {
				request.Headers = headersOf(t.headers, params.Arguments)
			}
			return request, nil
		},
	}
	answer, err := x.run()
	if err != nil {
		return none, err
	}
	result, err := contract.DecodeResult(answer)
	if err != nil {
		return none, final(&contract.Failure{Code: contract.CodeFailed, Message: fmt.Sprintf(
			"%s of the server %q ran, and its answer is none of a tool: %v", x.what, p.name, err)})
	}
	if result.IsError() {
		return none, final(resultmap.ToolError(result))
	}
	return fitting(answer)
}

// find returns the tool of a call. Before the list is known to lack it, it is
// listed anew.
func (p *Proxy) find(at *attempt, name string) (*tool, error) {
	if list := at.runtime.catalog.list(); list.answers(name) {
		if t := list.tools[name]; t != nil {
			return t, nil
		}
		return nil, final(unknownTool(name))
	}
	at.follow(p.guess(name))
	t, err := at.runtime.catalog.lookup(at.ctx, name)
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, errNoSuchTool):
		return nil, final(unknownTool(name))
	}
	return nil, at.unlisted(p.name, err)
}

// unlisted returns what an attempt ends with that had to list the tools first.
func (at *attempt) unlisted(server string, err error) error {
	if cause := context.Cause(at.ctx); errors.As(cause, new(*temporal.CanceledError)) {
		return temporal.NewCanceledError()
	}
	message := fmt.Sprintf("The tools of the server %q could not be listed", server)
	if failed, ok := errors.AsType[*mcpclient.Error](err); ok {
		at.detail = failed.Detail
		message += ": " + failed.Message
		return at.again(message, failed.RetryAfter)
	}
	return at.again(message, 0)
}

// callParams are the params of tools/call.
func callParams(name string, p contract.CallParams, c call, activityID string) json.RawMessage {
	meta, _ := contract.ParseObject(p.Meta) // an object or nothing: DecodeCall has seen it
	c.trace(&meta)
	key := meta.Get(contract.MetaIdempotencyKey)
	switch {
	case c.IdempotencyKey != "":
		key = contract.Quote(c.IdempotencyKey)
	case contract.TypeName(key) != "a string":
		key = contract.Quote(activityID)
	}
	meta.Set(contract.MetaIdempotencyKey, key)

	var o contract.Object
	o.Set("name", contract.Quote(name))
	o.Set("arguments", p.Arguments)
	o.Set("_meta", meta.JSON())
	if p.InputResponses != nil {
		o.Set("inputResponses", p.InputResponses)
	}
	if p.RequestState != nil {
		o.Set("requestState", p.RequestState)
	}
	return o.JSON()
}

// trace sets the trace context that the operation came with, where the caller's
// `_meta` has none.
func (c call) trace(meta *contract.Object) {
	for key, value := range c.Trace {
		if !meta.Has(key) {
			meta.Set(key, contract.Quote(value))
		}
	}
}

// fitting returns a result that Temporal can take.
func fitting(answer json.RawMessage) (converter.RawValue, error) {
	if err := contract.CheckSize("result", answer); err != nil {
		return converter.RawValue{}, final(resultmap.FromError(err))
	}
	return resultmap.RawValue(answer), nil
}

// runMethod is the activity behind a method of MCP that is no tool. All of them
// only read.
func (p *Proxy) runMethod(ctx context.Context, method, capability, nameKey string, input converter.RawValue, c call) (_ converter.RawValue, err error) {
	none := converter.RawValue{}
	at, end, err := p.newAttempt(ctx)
	if err != nil {
		return none, err
	}
	defer func() {
		end()
		at.report(method, err)
	}()
	raw, err := resultmap.JSON(input)
	if err != nil {
		return none, final(resultmap.FromError(err))
	}
	var params, meta contract.Object
	if !contract.IsNull(raw) {
		if params, err = contract.ParseObject(raw); err != nil {
			return none, final(invalidParams("params: " + err.Error()))
		}
	}
	if given := params.Get("_meta"); !contract.IsNull(given) {
		if meta, err = contract.ParseObject(given); err != nil {
			return none, final(invalidParams("params: _meta: " + err.Error()))
		}
	}
	c.trace(&meta)
	if meta.Len() > 0 {
		params.Set("_meta", meta.JSON())
	}
	name := ""
	if nameKey != "" {
		_ = json.Unmarshal(params.Get(nameKey), &name) // the server says what is wrong with it
	}
	caller := c.Caller
	if caller == "" && strings.HasSuffix(method, "/list") {
		caller = listCaller // no process for each page, and its cursors hold in the session
	}
	x := &exchange{
		attempt: at, server: p.name, caller: caller, what: fmt.Sprintf("Method %q", method),
		plan: plan{policy: p.options.Policy.resolved(), repeatable: true},
		request: func(s mcpclient.Server) (mcpclient.Request, error) {
			if !s.Has(capability) {
				return mcpclient.Request{}, &contract.ProtocolError{Code: codeMethodNotFound, Message: "Method not found: " + method}
			}
			return mcpclient.Request{Method: method, Name: name, Params: params.JSON()}, nil
		},
	}
	answer, err := x.run()
	if err != nil {
		return none, err
	}
	return fitting(answer)
}

// runList is the activity behind the list while there is none yet.
func (p *Proxy) runList(ctx context.Context, cursor string) (_ converter.RawValue, err error) {
	none := converter.RawValue{}
	at, end, err := p.newAttempt(ctx)
	if err != nil {
		return none, err
	}
	defer func() {
		end()
		at.report(contract.OperationListTools, err)
	}()
	at.follow(listPolicy())
	list := at.runtime.catalog.list()
	if list == nil {
		if list, err = at.runtime.catalog.refresh(ctx); err != nil {
			return none, at.unlisted(p.name, err)
		}
	}
	page, err := list.page(cursor)
	if err != nil {
		return none, final(resultmap.FromError(err))
	}
	return fitting(page)
}

// listPolicy is that of a list that somebody waits for.
func listPolicy() ResolvedPolicy {
	p := Policy{StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: 2 * time.Minute, Retry: &RetryPolicy{MaximumAttempts: 3}}
	return p.resolved()
}
