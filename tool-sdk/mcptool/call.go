package mcptool

import (
	"context"
	"encoding/json"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/nexus-rpc/sdk-go/nexus"
)

// call is what a tool's code may know of its call beside the arguments. It
// travels to an activity as JSON.
type call struct {
	Meta           json.RawMessage `json:"meta,omitempty"`
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   json.RawMessage `json:"requestState,omitempty"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`
	Caller         string          `json:"caller,omitempty"`
}

type callKey struct{}

func newCall(header nexus.Header, params contract.CallParams) call {
	return call{
		Meta:           params.Meta,
		InputResponses: params.InputResponses,
		RequestState:   params.RequestState,
		IdempotencyKey: header.Get(contract.HeaderIdempotencyKey),
		Caller:         header.Get(contract.HeaderCaller),
	}
}

func withCall(ctx context.Context, c call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// CallMeta returns the `_meta` object of the MCP request behind a call, as JSON,
// in the code of a sync tool, in the start of an operation and in an activity of
// [NewActivityOperation]. It is nil where the caller sent none and for tools that
// do not return a [Result].
func CallMeta(ctx context.Context) json.RawMessage { return callOf(ctx).Meta }

// IdempotencyKey returns the caller's name for this one call, the same over all
// attempts, in the same places as [CallMeta]. It is empty where the caller gave
// none. A call that goes on with what its tool has asked for is another one, with a
// key that starts with the first one's.
func IdempotencyKey(ctx context.Context) string { return callOf(ctx).IdempotencyKey }

// Caller returns a hash of who calls, in the same places as [CallMeta]. It tells
// callers apart and authorises nothing. It is empty where the caller is unknown.
func Caller(ctx context.Context) string { return callOf(ctx).Caller }

// WorkflowID returns the ID of the Workflow behind an operation: the prefix and
// the Nexus request ID. It is the same when Temporal delivers the start again, so
// that the second start attaches to the first Workflow.
//
//	client.StartWorkflowOptions{ID: mcptool.WorkflowID("report", options.RequestID)}
func WorkflowID(prefix, requestID string) string { return prefix + "-" + requestID }
