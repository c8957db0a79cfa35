package mcpserver

import (
	"encoding/json"

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
