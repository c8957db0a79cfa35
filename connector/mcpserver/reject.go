package mcpserver

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// rejection is the JSON-RPC error that answers a message which does not reach
// the SDK. The ID is nil where nobody knows it.
func rejection(id json.RawMessage, code int64, message string) json.RawMessage {
	if id == nil {
		id = json.RawMessage("null")
	}
	var reply contract.Object
	reply.Set("jsonrpc", contract.Quote("2.0"))
	reply.Set("id", id)
	reply.Set("error", (&contract.ProtocolError{Code: code, Message: message}).JSON())
	return reply.JSON()
}

// isJSON reports whether text is one JSON value, which is UTF-8 (RFC 8259, section
// 8.1). Go's decoder takes other bytes too, and reads them as something else: what
// is kept as it came and what the SDK decodes would be two messages.
func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }
