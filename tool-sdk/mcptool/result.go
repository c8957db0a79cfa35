package mcptool

import (
	"encoding/json"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
)

// Result is the CallToolResult of MCP, for authors who want to say more than a
// value. A tool whose operation has Result as output type speaks the mcp encoding:
// its callers send `{"arguments": …, "_meta": …}` and get the result whole.
//
// A Result is immutable: methods return a changed copy. What cannot be encoded
// shows as an error when the result is. The zero Result has no content.
type Result struct {
	raw contract.Result
	err error
}

// Text returns a result of one text block.
func Text(text string) Result { return Result{raw: contract.TextResult(text, false)} }

// Content returns a result of content blocks. A block is anything whose JSON is
// a content block of MCP: a [json.RawMessage], a map, a struct of an MCP SDK.
func Content(blocks ...any) Result {
	raw := make([]json.RawMessage, len(blocks))
	for i, b := range blocks {
		var err error
		if raw[i], err = encode(b); err != nil {
			return Result{err: fmt.Errorf("content[%d]: %w", i, err)}
		}
	}
	var o contract.Object
	o.Set("content", contract.Array(raw...))
	return Result{}.with(o)
}

// WithStructured returns the result with v as structured content.
func (r Result) WithStructured(v any) Result { return r.set("structuredContent", v) }

// WithMeta returns the result with one key of its `_meta` set.
func (r Result) WithMeta(key string, v any) Result {
	data, err := encode(v)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("_meta: %s: %w", key, err)
	}
	if r.err == nil {
		r.raw = r.raw.WithMeta(key, data)
	}
	return r
}

// AsError returns the result as one that reports an error of the tool. From a
// sync tool or an activity it may be returned as value or, by [Result.Err], as
// error; from a Workflow return the error.
func (r Result) AsError() Result { return r.set("isError", true) }

// Err returns the error that says: the tool answered, and its answer is this
// result, as an error. It works as [ToolError] does.
func (r Result) Err() error {
	r = r.AsError()
	if r.err != nil {
		return final(unencodable(r.err))
	}
	return resultmap.ApplicationError(resultmap.ToolError(r.raw))
}

func (r Result) set(key string, v any) Result {
	if r.err != nil {
		return r
	}
	data, err := encode(v)
	if err != nil {
		return Result{err: fmt.Errorf("%s: %w", key, err)}
	}
	o, err := contract.ParseObject(r.raw.JSON())
	if err != nil {
		return Result{err: err}
	}
	o.Set(key, data)
	return r.with(o)
}

func (r Result) with(o contract.Object) Result {
	raw, err := contract.DecodeResult(o.JSON())
	return Result{raw: raw, err: err}
}

// MarshalJSON implements [json.Marshaler].
func (r Result) MarshalJSON() ([]byte, error) { return r.raw.JSON(), r.err }

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Result) UnmarshalJSON(data []byte) error {
	raw, err := contract.DecodeResult(append(json.RawMessage(nil), data...))
	if err != nil {
		return err
	}
	*r = Result{raw: raw}
	return nil
}
