package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// InputRequest is what a tool asks its caller for: a request of MCP, which the
// caller answers before it makes the call again.
type InputRequest struct {
	// Method is "elicitation/create", "sampling/createMessage" or "roots/list".
	// Required.
	Method string
	// Params are those of the method: anything whose JSON is an object.
	// Defaults to none.
	Params any
}

// InputRequired returns the result that asks for input (MCP 2026-07-28, multi
// round-trip requests). The caller gets the answers, and makes the call again
// with the same arguments: [InputResponses] has the answers then, each under the
// key of its request, and [RequestState] the state. Without requests the state
// alone comes back; one of the two is required.
//
// Only what [CanAsk] allows may be asked for: to other callers the call ends as
// an error of the tool. The state comes back from the caller, who can read and
// change it: sign what must not be forged. Each round is a call of its own, so a
// tool asks before it does what must not be done twice. Under one idempotency key
// the connector tells the rounds apart by their state: a tool that asks more than
// once gives another state each time.
func InputRequired(requests map[string]InputRequest, state string) Result {
	if len(requests) == 0 && state == "" {
		return Result{err: errors.New("it asks for no input and has no state")}
	}
	var o contract.Object
	o.Set("resultType", contract.Quote("input_required"))
	if len(requests) > 0 {
		var all contract.Object
		for _, key := range sortedKeys(requests) {
			request, err := requests[key].object()
			if err != nil {
				return Result{err: fmt.Errorf("input request %q: %w", key, err)}
			}
			all.Set(key, request.JSON())
		}
		o.Set("inputRequests", all.JSON())
	}
	if state != "" {
		o.Set("requestState", contract.Quote(state))
	}
	return Result{}.with(o)
}

func (r InputRequest) object() (contract.Object, error) {
	var o contract.Object
	if r.Method == "" {
		return o, errors.New("method: missing")
	}
	o.Set("method", contract.Quote(r.Method))
	params := json.RawMessage("{}")
	if r.Params != nil {
		var err error
		if params, err = encode(r.Params); err != nil {
			return o, fmt.Errorf("params: %w", err)
		}
		if _, err := contract.ParseObject(params); err != nil {
			return o, fmt.Errorf("params: %w", err)
		}
	}
	o.Set("params", params)
	return o, nil
}

// InputResponses returns the caller's answers to what [InputRequired] asked, as
// JSON under the keys of the requests, in the same places as [CallMeta]. They are
// the caller's word: keys may be missing, others be there, and nothing has checked
// the values. It is nil where there are none.
func InputResponses(ctx context.Context) map[string]json.RawMessage {
	o, err := contract.ParseObject(callOf(ctx).InputResponses)
	if err != nil {
		return nil
	}
	responses := make(map[string]json.RawMessage, o.Len())
	o.Each(func(key string, response json.RawMessage) json.RawMessage {
		responses[key] = response
		return nil
	})
	return responses
}

// RequestState returns the state that [InputRequired] gave, as the caller sent it
// back, in the same places as [CallMeta]. It is empty where there is none.
func RequestState(ctx context.Context) string {
	var state string
	_ = json.Unmarshal(callOf(ctx).RequestState, &state) // nothing in the first round
	return state
}

// metaClientCapabilities is MCP's own key for what a client can be asked for.
const metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"

// CanAsk reports whether the caller has said that it answers input requests of a
// method, in the same places as [CallMeta].
func CanAsk(ctx context.Context, method string) bool {
	capability := map[string]string{
		"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots",
	}[method]
	meta, err := contract.ParseObject(CallMeta(ctx))
	if err != nil {
		return false
	}
	declared, err := contract.ParseObject(meta.Get(metaClientCapabilities))
	return err == nil && capability != "" && !contract.IsNull(declared.Get(capability))
}
