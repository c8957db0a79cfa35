package mcpserver

import (
	"encoding/json"
	"slices"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// firstModern is the first revision without sessions. It has resultType on
// every result, and structured content of any type.
const firstModern = "2026-07-28"

// firstStructured is the first revision with structured content, which is an object
// before 2026-07-28.
const firstStructured = "2025-06-18"

func isModern(version string) bool { return version >= firstModern }

// agreed returns the revision of a session whose client asks for one: a later one has
// no sessions, and an unknown one is answered with the latest that has (MCP,
// lifecycle, "Version Negotiation").
func agreed(version string) string {
	sessions := slices.DeleteFunc(mcp.SupportedProtocolVersions(), isModern) // newest first
	if slices.Contains(sessions, version) {
		return version
	}
	return sessions[0]
}

// rawResult is a result as bytes. The SDK's own types would decode numbers to
// float64 and drop what they do not know.
type rawResult struct {
	mcp.ResultBase // what the SDK adds to `_meta`
	object         contract.Object
}

// newResult returns a result with the members of o. The SDK sets resultType only
// on its own types.
func newResult(o contract.Object, modern bool) *rawResult {
	if modern && contract.IsNull(o.Get("resultType")) {
		o.Set("resultType", contract.Quote("complete"))
	}
	return &rawResult{object: o}
}

// toolResult returns a tool's result as the revision of the client has it.
func toolResult(req *mcp.CallToolRequest, r contract.Result) (mcp.Result, error) {
	result, err := resultFor(req.ProtocolVersion(), r)
	if err != nil {
		return nil, err
	}
	return result, nil
}

func resultFor(version string, r contract.Result) (*rawResult, error) {
	if version < firstStructured || !isModern(version) && contract.TypeName(r.Structured()) != "an object" {
		r = r.WithTextCopy()
	}
	o, err := contract.ParseObject(r.JSON())
	if err != nil {
		return nil, err
	}
	if contract.IsNull(o.Get("content")) && !r.NeedsInput() { // Go writes an empty list as null
		o.Set("content", json.RawMessage("[]"))
	}
	if !isModern(version) && contract.TypeName(r.Structured()) != "an object" {
		o.Delete("structuredContent")
	}
	return newResult(o, isModern(version)), nil
}

// MarshalJSON implements [json.Marshaler].
func (r *rawResult) MarshalJSON() ([]byte, error) {
	o := r.object
	if len(r.Meta) > 0 {
		var meta contract.Object
		if raw := o.Get("_meta"); !contract.IsNull(raw) {
			var err error
			if meta, err = contract.ParseObject(raw); err != nil {
				return nil, err
			}
		}
		for key, value := range r.Meta {
			if meta.Has(key) {
				continue
			}
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			meta.Set(key, raw)
		}
		o.Set("_meta", meta.JSON())
	}
	return o.JSON(), nil
}
