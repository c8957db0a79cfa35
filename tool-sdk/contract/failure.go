package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Error type strings of failed operations. They are wire protocol: Go types do
// not survive the server.
const (
	// TypeToolError: the tool reported an error; the details are its whole
	// CallToolResult.
	TypeToolError = "McpToolError"
	// TypeProtocolError: an upstream answered with a JSON-RPC error; the
	// details are a [ProtocolError].
	TypeProtocolError = "McpProtocolError"
	// TypeOutcomeUnknown: the call may have taken effect and must not be
	// repeated.
	TypeOutcomeUnknown = "McpOutcomeUnknown"
	// TypePayloadTooLarge: arguments or result are over the payload limit.
	TypePayloadTooLarge = "McpPayloadTooLarge"
)

// Code classes every way in which a call does not end with a value. The set is
// closed.
type Code string

// The codes.
const (
	CodeToolError       Code = TypeToolError
	CodeProtocolError   Code = TypeProtocolError
	CodeOutcomeUnknown  Code = TypeOutcomeUnknown
	CodePayloadTooLarge Code = TypePayloadTooLarge
	// CodeFailed is a failure of the code behind the tool.
	CodeFailed Code = "failed"
	// CodeTimedOut is a timeout of the operation or of what runs behind it.
	CodeTimedOut Code = "timed_out"
	// CodeCanceled is a call that was cancelled.
	CodeCanceled Code = "canceled"
	// CodeTerminated is an operation that somebody terminated.
	CodeTerminated Code = "terminated"
	// CodeUnavailable is a call that reached no handler: no worker, no such
	// endpoint, service or operation, a feature switched off, no Temporal.
	CodeUnavailable Code = "unavailable"
	// CodeInvalid is a call that was refused before anything started.
	CodeInvalid Code = "invalid"
)

// Codes lists every [Code].
func Codes() []Code {
	return []Code{
		CodeToolError, CodeProtocolError, CodeOutcomeUnknown, CodePayloadTooLarge, CodeFailed,
		CodeTimedOut, CodeCanceled, CodeTerminated, CodeUnavailable, CodeInvalid,
	}
}

// Failure is the one error type that crosses the boundary between a service and
// its callers. Message is for the caller; Cause is for logs and never leaves.
type Failure struct {
	Code Code
	// Type says more than the code, where there is more to say: the type name of
	// an application error, the name of a timeout.
	Type string
	// Message says what happened, in words for the caller.
	Message string
	// Retryable reports whether the same call may end otherwise.
	Retryable bool
	// Details are the CallToolResult of [CodeToolError], the [ProtocolError]
	// of [CodeProtocolError], nil otherwise.
	Details json.RawMessage
	// Cause may be nil.
	Cause error
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// NoEndpoint returns the failure of a call through a Nexus endpoint that Temporal does
// not have, with what to do about it.
func NoEndpoint(endpoint, service string) *Failure {
	remedy := fmt.Sprintf("Create it (temporal operator nexus endpoint create --name %s …) or name the right one.", endpoint)
	if err := CheckEndpointName(endpoint); err != nil {
		remedy = fmt.Sprintf("There can be none: %v. Name the right one.", err)
	}
	return &Failure{
		Code:    CodeUnavailable,
		Message: fmt.Sprintf("There is no Nexus endpoint %q in Temporal (service %q). %s", endpoint, service, remedy),
	}
}

// ProtocolError is a JSON-RPC error object.
type ProtocolError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message)
}

// JSON returns the error object's bytes.
func (e *ProtocolError) JSON() json.RawMessage {
	var o Object
	o.Set("code", strconv.AppendInt(nil, e.Code, 10))
	o.Set("message", Quote(e.Message))
	if len(e.Data) > 0 {
		o.Set("data", e.Data)
	}
	return o.JSON()
}

// DecodeProtocolError reads a JSON-RPC error object. Its data stays as it is
// spelled; members that JSON-RPC does not name are not kept. The error names the
// JSON types of what is there and quotes nothing of it.
func DecodeProtocolError(raw json.RawMessage) (*ProtocolError, error) {
	o, err := ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("error object: %w", err)
	}
	e := &ProtocolError{Data: o.Get("data")}
	if e.Code, err = strconv.ParseInt(string(o.Get("code")), 10, 64); err != nil {
		return nil, fmt.Errorf("error object: code: %s, want an integer of 64 bits", TypeName(o.Get("code")))
	}
	if v := o.Get("message"); !IsNull(v) {
		message, ok := text(v)
		if !ok {
			return nil, fmt.Errorf("error object: message: %s, want a string", TypeName(v))
		}
		e.Message = message
	}
	return e, nil
}

// codeInternalError is that of JSON-RPC 2.0.
const codeInternalError = -32603

// Protocol returns the JSON-RPC error that the caller sees, or nil where the
// failure is a result.
func (f *Failure) Protocol() *ProtocolError {
	if f.Code != CodeProtocolError {
		return nil
	}
	e, err := DecodeProtocolError(f.Details)
	if err != nil {
		return &ProtocolError{Code: codeInternalError, Message: f.Message}
	}
	return e
}

// outcomeUnknownAdvice tells a model what it must not do, whatever a service's
// message says.
const outcomeUnknownAdvice = "The outcome is unknown: the call may or may not have taken effect. " +
	"Find out before you repeat it."

// Result returns the error result that the caller sees: the tool's own for
// [CodeToolError], one that this project makes otherwise, with [MetaFailure]
// and, for an unknown outcome, [MetaOutcome] and words that say so.
func (f *Failure) Result() Result {
	if f.Code == CodeToolError {
		if r, err := DecodeResult(f.Details); err == nil {
			if r.IsError() {
				return r
			}
			// The failure is the tool's word that this is an error.
			o, _ := splitObject(r.JSON())
			o.Set("isError", json.RawMessage("true"))
			return Result{o.JSON()}
		}
	}
	typ := string(f.Code)
	if f.Code == CodeFailed && f.Type != "" {
		typ = f.Type
	}
	message := f.Message
	if message == "" {
		message = "The call failed without saying why."
	}
	if f.Code == CodeOutcomeUnknown {
		message += " " + outcomeUnknownAdvice
	}
	var note Object
	note.Set("type", Quote(typ))
	note.Set("retryable", strconv.AppendBool(nil, f.Retryable))
	r := TextResult(message, true).WithMeta(MetaFailure, note.JSON())
	if f.Code == CodeOutcomeUnknown {
		r = r.WithMeta(MetaOutcome, Quote(OutcomeUnknown))
	}
	return r
}
