package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
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
	for _, part := range []struct {
		key   string
		value json.RawMessage
		want  string
	}{
		{"_meta", p.Meta, "an object"},
		{"inputResponses", p.InputResponses, "an object"},
		{"requestState", p.RequestState, "a string"},
	} {
		if IsNull(part.value) {
			continue
		}
		if err := checkJSON(part.value); err != nil {
			return nil, fmt.Errorf("%s: %w", part.key, err)
		}
		if TypeName(part.value) != part.want {
			return nil, fmt.Errorf("%s: %s, want %s", part.key, TypeName(part.value), part.want)
		}
		o.Set(part.key, part.value)
	}
	return o.JSON(), nil
}

// DecodeCall reads the input of an operation with the encoding.
func DecodeCall(encoding Encoding, input json.RawMessage) (CallParams, error) {
	if encoding != EncodingMCP {
		args, err := CheckArguments(input)
		return CallParams{Arguments: args}, err
	}
	o, err := ParseObject(input)
	if err != nil {
		return CallParams{}, fmt.Errorf("input: %w", err)
	}
	args, err := CheckArguments(o.Get("arguments"))
	if err != nil {
		return CallParams{}, err
	}
	return CallParams{
		Arguments:      args,
		Meta:           o.Get("_meta"),
		InputResponses: o.Get("inputResponses"),
		RequestState:   o.Get("requestState"),
	}, nil
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
// not fit in one payload. What names the thing: "arguments", "result".
func CheckSize(what string, data []byte) error {
	if len(data)+PayloadOverhead <= PayloadLimit {
		return nil
	}
	remedy := "Ask for less, or for a part at a time."
	if what == "arguments" {
		remedy = "Send less, or a reference instead of the data."
	}
	return &Failure{
		Code: CodePayloadTooLarge,
		Message: fmt.Sprintf("The %s have %d bytes; one Temporal payload holds at most %d. %s",
			plural(what), len(data), PayloadLimit-PayloadOverhead, remedy),
	}
}

func plural(what string) string {
	if what == "result" {
		return "result's data"
	}
	return what
}

// Digest returns 32 hex digits that are the same for two JSON values if they
// differ in white space, key order and the spelling of string escapes only.
// Numbers compare by their literal. It needs valid JSON.
func Digest(raw json.RawMessage) string {
	h := sha256.New()
	h.Write(canonical(raw))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func canonical(raw json.RawMessage) []byte {
	switch TypeName(raw) {
	case "an object":
		o, err := splitObject(raw)
		if err != nil {
			return raw
		}
		slices.SortStableFunc(o.members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		for i := range o.members {
			o.members[i].rawKey = canonical(o.members[i].rawKey)
			o.members[i].value = canonical(o.members[i].value)
		}
		return o.JSON()
	case "an array":
		elements, err := splitArray(raw)
		if err != nil {
			return raw
		}
		for i := range elements {
			elements[i] = canonical(elements[i])
		}
		return Array(elements...)
	case "a string":
		return canonicalString(raw)
	}
	return raw
}

// canonicalString spells a string one way. Lone surrogates have no UTF-8 form
// and keep their escape.
func canonicalString(raw json.RawMessage) []byte {
	s, err := unquote(raw)
	if err != nil || strings.ContainsRune(s, '\uFFFD') {
		return []byte(strings.ToLower(string(raw)))
	}
	return Quote(s)
}

func oneLine(err error) string { return strings.Join(strings.Split(err.Error(), "\n"), "; ") }
