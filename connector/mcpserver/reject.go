package mcpserver

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// badID is the answer to an ID that would not come back as it was sent: nobody
// would know whose answer it is.
const badID = "The id is neither a string nor an integer of at most 2^53 in size."

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

// requestID returns the ID of a single request as it was sent, or nil where there
// is none that JSON-RPC allows.
func requestID(message []byte) json.RawMessage {
	o, err := contract.ParseObject(message)
	if err != nil || !o.Has("method") {
		return nil
	}
	switch id := o.Get("id"); contract.TypeName(id) {
	case "a string", "a number":
		return id
	}
	return nil
}

// echoed reports whether an ID comes back as it was sent. The SDK reads a number
// as a float64 and keeps an int64.
func echoed(id json.RawMessage) bool {
	if contract.TypeName(id) != "a number" {
		return true
	}
	f, err := strconv.ParseFloat(string(id), 64)
	if err != nil {
		return false
	}
	if exact, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return exact == int64(f)
	}
	return f == math.Trunc(f) && math.Abs(f) <= 1<<53 // like 1.0 and 1e3
}
