package contract

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object is a JSON object as bytes: members in order, duplicates included, keys
// and values spelled as they came. The zero Object is `{}`. A copy is a second
// object: changes to one do not show in the other.
type Object struct {
	members []member
}

type member struct {
	rawKey []byte
	key    string // decoded; a lone surrogate has its WTF-8 bytes
	value  json.RawMessage
}

// ParseObject splits a JSON object into its members without decoding them. The
// values alias raw. It returns an error if raw is not one valid JSON object in
// UTF-8.
func ParseObject(raw json.RawMessage) (Object, error) {
	if err := checkJSON(raw); err != nil {
		return Object{}, err
	}
	return splitObject(raw)
}

// ParseArray splits a JSON array into its elements without decoding them. The
// elements alias raw. It returns an error if raw is not one valid JSON array in
// UTF-8.
func ParseArray(raw json.RawMessage) ([]json.RawMessage, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	return splitArray(raw)
}

// Get returns the value of a key as it is spelled, or nil where there is none.
// Of duplicates the last counts, as with encoding/json. Keys match by their code
// units: exactly, however they are escaped.
func (o *Object) Get(key string) json.RawMessage {
	if i := o.index(key); i >= 0 {
		return o.members[i].value
	}
	return nil
}

// Has reports whether the object has the key.
func (o *Object) Has(key string) bool { return o.index(key) >= 0 }

// Len returns the number of members, duplicates counted.
func (o *Object) Len() int { return len(o.members) }

// Keys returns the decoded keys in order, duplicates included. A lone surrogate
// in a key shows as U+FFFD.
func (o *Object) Keys() []string {
	keys := make([]string, len(o.members))
	for i, m := range o.members {
		keys[i] = toUTF8(m.key)
	}
	return keys
}

// Set puts a value in the place of the key's last one, or appends it. The
// value must be valid JSON; nil stands for null. Bytes of the key that are not
// UTF-8 become U+FFFD. It takes time in proportion to the number of members.
func (o *Object) Set(key string, value json.RawMessage) {
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	rawKey := Quote(key)
	key = decodeString(rawKey)
	o.members = slices.Clone(o.members) // a copy of this Object may share them
	if i := o.index(key); i >= 0 {
		o.members[i].value = value
		return
	}
	o.members = append(o.members, member{rawKey: rawKey, key: key, value: value})
}

// Delete removes a key with all its duplicates.
func (o *Object) Delete(key string) {
	o.members = slices.DeleteFunc(slices.Clone(o.members), func(m member) bool { return m.key == key })
}

// DeleteFunc removes the members for whose decoded key f returns true. To remove
// many it takes one pass, where Delete takes one for each.
func (o *Object) DeleteFunc(f func(key string) bool) {
	o.members = slices.DeleteFunc(slices.Clone(o.members), func(m member) bool { return f(toUTF8(m.key)) })
}

// Each calls f for each member in order with its decoded key. A value that f
// returns takes the place of the member's; nil leaves it.
func (o *Object) Each(f func(key string, value json.RawMessage) json.RawMessage) {
	members := slices.Clone(o.members)
	for i, m := range members {
		if v := f(toUTF8(m.key), m.value); v != nil {
			members[i].value = v
		}
	}
	o.members = members
}

// JSON returns the object's bytes. Keys and values keep their spelling; white
// space between members is gone.
func (o *Object) JSON() json.RawMessage {
	size := 2
	for _, m := range o.members {
		size += len(m.rawKey) + len(m.value) + 2
	}
	b := make([]byte, 0, size)
	b = append(b, '{')
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.rawKey...)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

// UnmarshalJSON implements [json.Unmarshaler], by [ParseObject].
func (o *Object) UnmarshalJSON(data []byte) error {
	read, err := ParseObject(bytes.Clone(data))
	if err != nil {
		return err
	}
	*o = read
	return nil
}

func (o *Object) index(key string) int {
	for i, m := range slices.Backward(o.members) {
		if m.key == key {
			return i
		}
	}
	return -1
}

// Array returns the bytes of a JSON array of the elements, which must be valid
// JSON.
func Array(elements ...json.RawMessage) json.RawMessage {
	size := 2
	for _, e := range elements {
		size += len(e) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

// Quote returns a JSON string of s without HTML escapes: `<b>` stays `<b>`.
// Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimRight(b.Bytes(), "\n")
}

// UnescapeHTML respells the escapes that encoding/json writes for <, > and & as
// these characters. The value stays the same; for those who read JSON as text it is
// what was meant. The JSON must be valid.
func UnescapeHTML(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b = append(b, raw[i])
			continue
		}
		if raw[i+1] == 'u' {
			if r := hex4(raw[i+2:]); r == '<' || r == '>' || r == '&' {
				b, i = append(b, byte(r)), i+5
				continue
			}
		}
		b, i = append(b, raw[i], raw[i+1]), i+1
	}
	return b
}

// TypeName names the JSON type of a value for messages: "an object", "a string",
// …, "nothing" where there is no value.
func TypeName(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch c := raw[0]; {
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == 't', c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case c == '-', c >= '0' && c <= '9':
		return "a number"
	}
	return "no JSON"
}

// IsNull reports whether a value is absent or null.
func IsNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// isObject needs valid JSON.
func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}
