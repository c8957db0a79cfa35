package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callTool starts the operation, waits for it within the budget, and answers.
func (s *Server) callTool(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	done, err := s.takeCall()
	if err != nil {
		return nil, err
	}
	defer done()
	if tool, ok := s.pollTool(req); ok {
		result, err := tool(ctx, req)
		if err != nil {
			return nil, err
		}
		return toolResult(req, result)
	}
	entry, ok := s.catalog.Lookup(ctx, req.Params.Name)
	if !ok {
		return s.callOther(ctx, next, req)
	}
	params, err := callParams(ctx, req)
	if err != nil {
		return nil, err
	}
	key, err := idempotencyKey(req.Params.Meta)
	if err != nil {
		return nil, err
	}
	// The decoder made the map for 64 keys; it stays for as long as the call.
	req.Params.Meta = maps.Clone(req.Params.Meta)
	openStream(ctx)
	return s.run(ctx, req, operation.Call{
		Endpoint:       entry.Service.Endpoint,
		Service:        entry.Service.Name,
		Tool:           entry.Tool,
		Params:         params,
		Caller:         s.caller(req.Extra),
		Trace:          traceContext(req.Params.Meta, req.Extra),
		IdempotencyKey: key,
	})
}

// takeCall counts one more call under way, unless there are too many.
func (s *Server) takeCall() (done func(), err error) {
	select {
	case s.calls <- struct{}{}:
		return func() { <-s.calls }, nil
	default:
		return nil, &jsonrpc.Error{Code: busyCode, Message: fmt.Sprintf(
			"The connector has %d calls under way and takes no more now. Nothing was started; try again later.", s.options.MaxCalls)}
	}
}

// callOther serves a tool that the host added to the SDK's server itself, and
// says what is known about one that nobody has.
func (s *Server) callOther(ctx context.Context, next mcp.MethodHandler, req *mcp.CallToolRequest) (mcp.Result, error) {
	res, err := next(ctx, "tools/call", req)
	var rpc *jsonrpc.Error
	// The SDK tells its own refusal from one of the host's tool by its words alone.
	if errors.As(err, &rpc) && rpc.Message == fmt.Sprintf("unknown tool %q", req.Params.Name) {
		return nil, unknownTool(req.Params.Name, s.catalog.Snapshot().Warnings())
	}
	return res, err
}

// run is one durable call: from here on Temporal keeps it.
func (s *Server) run(ctx context.Context, req *mcp.CallToolRequest, call operation.Call) (mcp.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // nobody waits any more, and nothing has started yet
	}
	began := time.Now()
	stopProgress := func() {}
	defer func() { stopProgress() }()
	call.Starting = func(id string) { stopProgress = s.progress(ctx, req, id, began) }
	id, err := s.start(ctx, call, s.options.WaitBudget)
	if err != nil {
		return s.failed(ctx, req, id, err)
	}
	budget, task := s.options.WaitBudget, s.wantsTask(req)
	if task {
		budget = min(budget, s.options.TaskAfter)
	}
	result, err := s.await(ctx, id, call.Tool, budget-time.Since(began))
	switch {
	case err == nil:
		return toolResult(req, presentable(result, takesInput(req)))
	case errors.Is(err, operation.ErrRunning) && task:
		return s.newTask(ctx, id, began)
	case errors.Is(err, operation.ErrRunning):
		return toolResult(req, s.Running(id))
	case ctx.Err() != nil:
		s.clientGone(ctx, id)
		return nil, err
	}
	return s.failed(ctx, req, id, err)
}

// start starts an operation within the budget. A client that leaves while the start
// is on its way must not leave an operation behind that nobody knows of, so the
// start has its own context.
func (s *Server) start(ctx context.Context, call operation.Call, budget time.Duration) (id string, err error) {
	ctx, cancel := s.outlasting(ctx, budget)
	defer cancel()
	return s.ops.Start(ctx, call)
}

// outlasting is within for what its client does not end.
func (s *Server) outlasting(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return s.within(context.WithoutCancel(ctx), limit)
}

// within returns a context that time ends, and the drained server after the last word.
func (s *Server) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(s.drained, func() { time.AfterFunc(lastWord, cancel) })
	return ctx, func() { stop(); cancel() }
}

// lastWord is how long what is on its way to Temporal may go on once the server has
// drained.
const lastWord = 200 * time.Millisecond

// await is operation.Result that ends as running when the server drains.
func (s *Server) await(ctx context.Context, id string, tool contract.Tool, budget time.Duration) (contract.Result, error) {
	ctx, stop := s.untilDrained(ctx, 0)
	defer stop()
	return s.ops.Result(ctx, id, tool, max(budget, time.Millisecond))
}

// untilDrained returns a context that ends as running so long after the server has
// drained.
func (s *Server) untilDrained(ctx context.Context, after time.Duration) (waiting context.Context, stop func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(s.drained, func() { time.AfterFunc(after, func() { cancel(operation.ErrRunning) }) })
	return waiting, func() { forget(); cancel(nil) }
}

// clientGone cancels the operation if its client asked for that: by a
// notifications/cancelled, or by closing the response stream of a 2026-07-28
// request, which the SDK both turns into a plain cancel. A connection that ends
// has its read or write error as the cause, and leaves the operation running.
func (s *Server) clientGone(ctx context.Context, id string) {
	if s.drained.Err() == nil && errors.Is(context.Cause(ctx), context.Canceled) {
		s.giveUp(ctx, id, "cancelled by the MCP client")
	}
}

// giveUp cancels an operation that nobody waits for any more.
func (s *Server) giveUp(ctx context.Context, id, reason string) {
	ctx, cancel := s.outlasting(ctx, 10*time.Second)
	defer cancel()
	if err := s.ops.Cancel(ctx, id, reason); err != nil {
		s.options.Logger.Warn("an operation that nobody waits for could not be cancelled", "operation_id", id, "error", err)
	}
}

// failed answers a call that did not complete.
func (s *Server) failed(ctx context.Context, req *mcp.CallToolRequest, id string, err error) (mcp.Result, error) {
	result, err := s.failure(ctx, req, id, err)
	if err != nil {
		return nil, err
	}
	return toolResult(req, result)
}

// failure returns the result of a call that did not complete, or the error that
// answers its request.
func (s *Server) failure(ctx context.Context, req *mcp.CallToolRequest, id string, err error) (contract.Result, error) {
	f := resultmap.FromError(err)
	s.options.Logger.Debug("a call failed", "tool", req.Params.Name, "operation_id", id, "code", string(f.Code), "error", err)
	if p := f.Protocol(); p != nil {
		return contract.Result{}, serviceError(ctx, req.Extra, p)
	}
	if f.Code == contract.CodeInvalid && id == "" {
		return contract.Result{}, invalidParams("%s", f.Message)
	}
	return errorResult(f, id), nil
}

// errorResult is the failure's result; one that we made names the operation.
func errorResult(f *contract.Failure, id string) contract.Result {
	r := f.Result()
	if id != "" && f.Code != contract.CodeToolError {
		r = r.WithMeta(contract.MetaOperationID, contract.Quote(id))
	}
	return r
}

// Running is the result of a call that goes on.
func (s *Server) Running(id string) contract.Result {
	text := fmt.Sprintf("The call is still running; it is durable and goes on. Its operation ID is %s. ", id)
	if s.options.HidePollTools {
		text += "Keep the ID: the result can be read by it."
	} else {
		text += fmt.Sprintf("Do not repeat the call. To get its result, call the tool %s with {\"operation_id\": %q}.",
			contract.ToolGetOperationResult, id)
	}
	return stateResult(text, id, "running").WithMeta(contract.MetaOperationID, contract.Quote(id))
}

// stateResult tells the state of a call in words and for programs.
func stateResult(text, id, status string) contract.Result {
	var state, o contract.Object
	state.Set("status", contract.Quote(status))
	state.Set("operation_id", contract.Quote(id))
	o, _ = contract.ParseObject(contract.TextResult(text, false).JSON())
	o.Set("structuredContent", state.JSON())
	r, _ := contract.DecodeResult(o.JSON())
	return r
}

// IsRunning reports whether a result is that of a call that goes on.
func IsRunning(r contract.Result) bool {
	var state struct {
		Status string `json:"status"`
		ID     string `json:"operation_id"`
	}
	return r.Meta(contract.MetaOperationID) != nil && json.Unmarshal(r.Structured(), &state) == nil &&
		state.Status == "running" && state.ID != ""
}

// progress tells the client the operation's ID at once, before the start is on its
// way, and then the elapsed time, where it gave a token. The returned function
// ends that.
func (s *Server) progress(ctx context.Context, req *mcp.CallToolRequest, id string, began time.Time) (stop func()) {
	token := progressToken(ctx, req)
	if token == nil {
		return func() {}
	}
	tell := func(message string) {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token,
			Progress:      time.Since(began).Seconds(),
			Message:       message,
			Meta:          mcp.Meta{contract.MetaOperationID: id},
		})
		if err != nil && ctx.Err() == nil {
			s.options.Logger.Debug("a progress notification was not delivered", "operation_id", id, "error", err)
		}
	}
	tell(fmt.Sprintf("%s runs durably as operation %s.", req.Params.Name, id))
	// A timer, not a goroutine: thousands of calls may be waiting.
	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	mu.Lock() // until timer is set, which its function needs
	defer mu.Unlock()
	timer = time.AfterFunc(s.options.ProgressInterval, func() {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		tell(fmt.Sprintf("%s has been running for %s (operation %s).", req.Params.Name, time.Since(began).Round(time.Second), id))
		timer.Reset(s.options.ProgressInterval)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true // no notification after the result
		timer.Stop()
	}
}

// progressToken is the client's token as it came, nil where there is none: the
// SDK would read a number as float64.
func progressToken(ctx context.Context, req *mcp.CallToolRequest) any {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	params, err := contract.ParseObject(rawParams(ctx, req))
	if err != nil {
		return token
	}
	meta, err := contract.ParseObject(params.Get("_meta"))
	if err != nil || !meta.Has("progressToken") {
		return token
	}
	return meta.Get("progressToken")
}

// caller is who sent the request.
func (s *Server) caller(extra *mcp.RequestExtra) operation.Caller {
	if !isHTTP(extra) {
		return operation.Caller{Transport: operation.Stdio, Name: s.options.Caller}
	}
	return operation.Caller{Transport: operation.HTTP, Name: s.options.Principal(extra)}
}

// callParams returns the call's params with the bytes that came.
func callParams(ctx context.Context, req *mcp.CallToolRequest) (contract.CallParams, error) {
	p := contract.CallParams{Arguments: req.Params.Arguments}
	if raw := rawParams(ctx, req); raw != nil {
		o, err := contract.ParseObject(raw)
		if err != nil {
			return p, invalidParams("params: %v", err)
		}
		// Middleware of the host's own may have put others in their place.
		if raw := o.Get("arguments"); bytes.Equal(representable(raw), p.Arguments) {
			p.Arguments = raw
		}
		p.Meta = o.Get("_meta")
		p.InputResponses, p.RequestState = o.Get("inputResponses"), o.Get("requestState")
	} else if len(req.Params.Meta) > 0 {
		// A transport that keeps no bytes.
		meta, err := json.Marshal(req.Params.Meta)
		if err != nil {
			return p, invalidParams("_meta: %v", err)
		}
		p.Meta = meta
	}
	if _, err := contract.CheckArguments(p.Arguments); err != nil {
		return p, invalidParams("%v", err)
	}
	p.Meta = forwardedMeta(p.Meta)
	return p, nil
}

// forwardedMeta is the part of a request's `_meta` that is for the tool: not
// what belongs to the hop between this client and this server, and not what this
// server acts on itself. What the client can be asked for goes along.
func forwardedMeta(raw json.RawMessage) json.RawMessage {
	if contract.IsNull(raw) {
		return nil
	}
	o, err := contract.ParseObject(raw)
	if err != nil {
		return raw // Encode says what is wrong
	}
	capabilities := answerable(o)
	o.DeleteFunc(func(key string) bool {
		return key == "progressToken" || key == contract.MetaIdempotencyKey || strings.HasPrefix(key, "io.modelcontextprotocol/")
	})
	if capabilities != nil {
		o.Set(mcp.MetaKeyClientCapabilities, capabilities)
	}
	if o.Len() == 0 {
		return nil
	}
	return o.JSON()
}

// answerable returns what a client of 2026-07-28 declares that it can be asked
// for in a result, nil where that is nothing: a service must not ask for more.
func answerable(meta contract.Object) json.RawMessage {
	declared, err := contract.ParseObject(meta.Get(mcp.MetaKeyClientCapabilities))
	if err != nil || !meta.Has(mcp.MetaKeyProtocolVersion) {
		return nil
	}
	var o contract.Object
	for _, key := range []string{"elicitation", "sampling", "roots"} {
		if v := declared.Get(key); !contract.IsNull(v) {
			o.Set(key, v)
		}
	}
	if o.Len() == 0 {
		return nil
	}
	return o.JSON()
}

func idempotencyKey(meta mcp.Meta) (string, error) {
	v, ok := meta[contract.MetaIdempotencyKey]
	if !ok {
		return "", nil
	}
	key, ok := v.(string)
	if !ok || key == "" {
		return "", invalidParams("_meta: %s: want a string that is not empty", contract.MetaIdempotencyKey)
	}
	return key, nil
}

// traceContext is the W3C trace context of the request: of its `_meta`, else of
// its HTTP headers.
func traceContext(meta map[string]any, extra *mcp.RequestExtra) operation.TraceContext {
	get := func(key string) string {
		if v, ok := meta[key].(string); ok {
			return v
		}
		if isHTTP(extra) {
			return strings.Join(extra.Header.Values(key), ",")
		}
		return ""
	}
	return operation.TraceContext{
		Traceparent: get(contract.HeaderTraceparent),
		Tracestate:  get(contract.HeaderTracestate),
		Baggage:     get(contract.HeaderBaggage),
	}
}
