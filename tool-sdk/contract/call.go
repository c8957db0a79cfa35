package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// PayloadLimit is the most bytes that one Temporal payload may have by default,
// its metadata included (limit.blobSize.error).
const PayloadLimit = 2 << 20

// PayloadOverhead is what a payload's metadata takes beside its data.
const PayloadOverhead = 64

// CallParams is one call of a tool. All fields are raw JSON; nil is absent.
type CallParams struct {
	// Arguments is an object; nil stands for {}.
	Arguments json.RawMessage
	// Meta is the caller's `_meta` object.
	Meta json.RawMessage
	// InputResponses and RequestState continue a call whose result asked for
	// input (MCP 2026-07-28, multi round-trip requests).
	InputResponses json.RawMessage
	RequestState   json.RawMessage
}

// Encode returns the input of the operation. The error says which part is
// wrong; nothing may be started then. The value encoding has no room for more
// than the arguments.
func (p CallParams) Encode(encoding Encoding) (json.RawMessage, error) {
	args, err := CheckArguments(p.Arguments)
	if err != nil {
		return nil, err
	}
	if encoding != EncodingMCP {
		return args, nil
	}
	var o Object
	o.Set("arguments", args)
	for _, part := range p.parts() {
		if IsNull(*part.value) {
			continue
		}
		if err := checkJSON(*part.value); err != nil {
			return nil, fmt.Errorf("%s: %w", part.key, err)
		}
		if err := part.check(); err != nil {
			return nil, err
		}
		o.Set(part.key, *part.value)
	}
	return o.JSON(), nil
}

// Round tells the calls apart that a tool's requests for input make of one (MCP
// 2026-07-28, multi round-trip requests): each goes on from the state that the one
// before it gave. It is empty for the first, and for the value encoding, which has
// no room for them.
func (p CallParams) Round(encoding Encoding) string {
	if encoding != EncodingMCP || IsNull(p.InputResponses) && IsNull(p.RequestState) {
		return ""
	}
	state := p.RequestState
	if IsNull(state) {
		state = nil
	}
	return Digest(Array(state))
}

// RoundKey returns what travels as a call's idempotency key, which may be empty:
// of the rounds of one call each has its own, since who keeps the answer to a key
// must not answer the next round with the request for input of the one before it.
func (p CallParams) RoundKey(encoding Encoding, key string) string {
	if round := p.Round(encoding); round != "" && key != "" {
		return key + "/" + round
	}
	return key
}

// callPart is a member of the mcp encoding's input beside the arguments.
type callPart struct {
	key   string
	want  string
	value *json.RawMessage
}

func (p *CallParams) parts() []callPart {
	return []callPart{
		{"_meta", "an object", &p.Meta},
		{"inputResponses", "an object", &p.InputResponses},
		{"requestState", "a string", &p.RequestState},
	}
}

func (p callPart) check() error {
	if typ := TypeName(*p.value); typ != p.want {
		return fmt.Errorf("%s: %s, want %s", p.key, typ, p.want)
	}
	return nil
}

// DecodeCall reads the input of an operation with the encoding. No input at all,
// null (what a Nexus caller without arguments sends) and null arguments are {}.
func DecodeCall(encoding Encoding, input json.RawMessage) (CallParams, error) {
	var p CallParams
	arguments := input
	if encoding == EncodingMCP && !IsNull(input) {
		o, err := ParseObject(input)
		if err != nil {
			return CallParams{}, fmt.Errorf("input: %w", err)
		}
		arguments = o.Get("arguments")
		for _, part := range p.parts() {
			v := o.Get(part.key)
			if IsNull(v) {
				continue
			}
			*part.value = v
			if err := part.check(); err != nil {
				return CallParams{}, fmt.Errorf("input: %w", err)
			}
		}
	}
	if IsNull(arguments) {
		arguments = nil
	}
	var err error
	p.Arguments, err = CheckArguments(arguments)
	if err != nil {
		return CallParams{}, err
	}
	return p, nil
}

// CheckArguments returns the arguments, {} for none, or an error that says what
// stands in the place of an object.
func CheckArguments(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	if err := checkJSON(raw); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if !isObject(raw) {
		return nil, fmt.Errorf("arguments: %s, want an object", TypeName(raw))
	}
	return raw, nil
}

// CheckSize returns a [Failure] with code [CodePayloadTooLarge] if data would
// not fit in one payload, or not together with the payloads beside it where
// Temporal bounds them as one, as it does with those that an activity is started
// with. What names the thing: "arguments", "result".
func CheckSize(what string, data []byte, beside ...[]byte) error {
	size := len(data) + PayloadOverhead
	for _, more := range beside {
		size += len(more) + PayloadOverhead
	}
	if size <= PayloadLimit {
		return nil
	}
	remedy := "Ask for less, or for a part at a time."
	if what == "arguments" {
		remedy = "Send less, or a reference instead of the data."
	}
	if escapes := bytes.Count(data, []byte(`\u`)); escapes > len(data)/20 {
		remedy += fmt.Sprintf(" %d escapes like \\u00e9 make it bigger than the characters would be.", escapes)
	}
	return &Failure{
		Code: CodePayloadTooLarge,
		Message: fmt.Sprintf("The %s would take %d bytes; one Temporal payload holds at most %d. %s",
			what, size-PayloadOverhead, PayloadLimit-PayloadOverhead, remedy),
	}
}

func oneLine(err error) string { return strings.Join(strings.Split(err.Error(), "\n"), "; ") }
