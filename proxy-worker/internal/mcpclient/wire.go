package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// encode returns a JSON-RPC message on one line. A value without an ID is a
// notification.
func encode(id, method string, params json.RawMessage) json.RawMessage {
	var o contract.Object
	o.Set("jsonrpc", json.RawMessage(`"2.0"`))
	if id != "" {
		o.Set("id", json.RawMessage(id))
	}
	o.Set("method", contract.Quote(method))
	if params != nil {
		o.Set("params", params)
	}
	return oneLine(o.JSON())
}

// encodeReply returns the answer to a request of the peer.
func encodeReply(id, result json.RawMessage, err *contract.ProtocolError) json.RawMessage {
	var o contract.Object
	o.Set("jsonrpc", json.RawMessage(`"2.0"`))
	o.Set("id", id)
	if err != nil {
		o.Set("error", err.JSON())
	} else {
		o.Set("result", result)
	}
	return oneLine(o.JSON())
}

// oneLine takes out the line feeds that valid JSON can have, which are white
// space: a frame ends at the first.
func oneLine(raw json.RawMessage) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw // not reached: what comes here is valid
	}
	return b.Bytes()
}

// Incoming is one message of a peer, split but not decoded.
type Incoming struct {
	// ID is the ID as it is spelled, nil for a notification.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	Params json.RawMessage
	// Raw is the whole message.
	Raw json.RawMessage
	// Fault says what is wrong with it as a JSON-RPC message; nil if nothing is.
	Fault error
}

// IsResponse reports whether the message answers a request.
func (m *Incoming) IsResponse() bool { return m.Method == "" }

// DecodeIncoming splits a message of a peer. It returns an error for what is no
// JSON object at all. Of an object that JSON-RPC does not allow it returns as
// much as there is, with a Fault, so that the request that waits for it can end.
func DecodeIncoming(raw json.RawMessage) (Incoming, error) {
	o, fault, err := split(raw)
	if err != nil {
		return Incoming{}, err
	}
	m := Incoming{Raw: raw, Fault: fault}
	if id := o.Get("id"); !contract.IsNull(id) {
		m.ID = id
	}
	if v := o.Get("method"); v != nil {
		if json.Unmarshal(v, &m.Method) != nil || m.Method == "" {
			return Incoming{}, errors.New("a method that is no name")
		}
		m.Params = o.Get("params")
	}
	if m.IsResponse() && m.ID == nil && !o.Has("result") && !o.Has("error") {
		return Incoming{}, errors.New("no member of JSON-RPC") // a line of a structured log
	}
	if m.Fault != nil {
		return m, nil //nolint:nilerr // the message could be read, and is at fault
	}
	switch {
	case string(o.Get("jsonrpc")) != `"2.0"`:
		m.Fault = errors.New(`it is not of JSON-RPC "2.0"`)
	case !m.IsResponse():
	case o.Has("result") && o.Has("error"):
		m.Fault = errors.New("it has both a result and an error")
	case !o.Has("result") && !o.Has("error"):
		m.Fault = errors.New("it has neither a result nor an error")
	}
	return m, nil
}

// split splits an object. One whose text is not in UTF-8 has a fault, and enough
// is known of it to see whom it is for.
func split(raw json.RawMessage) (o contract.Object, fault, err error) {
	o, fault = contract.ParseObject(raw)
	if fault == nil {
		return o, nil, nil
	}
	if !json.Valid(raw) {
		return o, nil, fault
	}
	o, err = contract.ParseObject(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	return o, fault, err
}

// Reply asks h about a request of the peer and returns the answer to write.
func Reply(h Handler, m Incoming) json.RawMessage {
	result, err := h.Request(m.Method, m.Params)
	if err == nil {
		return encodeReply(m.ID, result, nil)
	}
	var pe *contract.ProtocolError
	if !errors.As(err, &pe) {
		pe = &contract.ProtocolError{Code: codeInternalError, Message: "internal error"}
	}
	return encodeReply(m.ID, nil, pe)
}

// Malformed is the error of a request whose answer is no answer that JSON-RPC
// allows.
func Malformed(method string, fault error) *Error {
	return &Error{
		Outcome: Answered,
		Message: fmt.Sprintf("the server's answer to %s is malformed: %v", method, fault),
		Cause:   fault,
	}
}

// decodeResult returns the result of a response that DecodeIncoming accepted.
func decodeResult(method string, raw json.RawMessage) (json.RawMessage, error) {
	o, err := contract.ParseObject(raw)
	if err != nil {
		return nil, Malformed(method, err)
	}
	if o.Has("error") {
		pe, err := contract.DecodeProtocolError(o.Get("error"))
		if err != nil {
			return nil, Malformed(method, err)
		}
		return nil, pe
	}
	result := o.Get("result")
	if t := contract.TypeName(result); t != "an object" {
		return nil, Malformed(method, fmt.Errorf("its result is %s, want an object", t))
	}
	return result, nil
}
