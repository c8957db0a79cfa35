package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Object is a JSON object as bytes: members in order, duplicates included, keys
// and values spelled as they came. The zero Object is `{}`.
type Object struct {
	members []member
}

type member struct {
	rawKey []byte
	key    string
	value  json.RawMessage
}

// ParseObject splits a JSON object into its members without decoding them. The
// values alias raw. It returns an error if raw is not one valid JSON object.
func ParseObject(raw json.RawMessage) (Object, error) {
	if err := checkJSON(raw); err != nil {
		return Object{}, err
	}
	return splitObject(raw)
}

// ParseArray splits a JSON array into its elements without decoding them. The
// elements alias raw. It returns an error if raw is not one valid JSON array.
func ParseArray(raw json.RawMessage) ([]json.RawMessage, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	return splitArray(raw)
}

// checkJSON tells valid JSON in valid UTF-8 from the rest, and where it fails.
func checkJSON(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("empty, want JSON")
	}
	if !json.Valid(raw) {
		var v json.RawMessage
		return fmt.Errorf("not valid JSON: %w", json.Unmarshal(raw, &v))
	}
	if !utf8.Valid(raw) {
		return errors.New("not valid UTF-8")
	}
	return nil
}

// splitObject needs valid JSON.
func splitObject(raw json.RawMessage) (Object, error) {
	s := scanner{data: raw}
	s.space()
	if s.peek() != '{' {
		return Object{}, fmt.Errorf("%s, want an object", TypeName(raw))
	}
	s.pos++
	var o Object
	for s.space(); s.peek() != '}'; s.space() {
		if s.peek() == ',' {
			s.pos++
			s.space()
		}
		rawKey := s.value()
		s.space()
		s.pos++ // the colon
		s.space()
		value := s.value()
		key, err := unquote(rawKey)
		if err != nil {
			return Object{}, err
		}
		o.members = append(o.members, member{rawKey: rawKey, key: key, value: value})
	}
	return o, nil
}

// splitArray needs valid JSON.
func splitArray(raw json.RawMessage) ([]json.RawMessage, error) {
	s := scanner{data: raw}
	s.space()
	if s.peek() != '[' {
		return nil, fmt.Errorf("%s, want an array", TypeName(raw))
	}
	s.pos++
	elements := []json.RawMessage{}
	for s.space(); s.peek() != ']'; s.space() {
		if s.peek() == ',' {
			s.pos++
			s.space()
		}
		elements = append(elements, s.value())
	}
	return elements, nil
}

// scanner walks JSON that is known to be valid.
type scanner struct {
	data []byte
	pos  int
}

func (s *scanner) peek() byte { return s.data[s.pos] }

func (s *scanner) space() {
	for s.pos < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.pos]) >= 0 {
		s.pos++
	}
}

// value takes the value that starts here, with its spelling.
func (s *scanner) value() json.RawMessage {
	start, depth := s.pos, 0
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.str()
			if depth == 0 {
				return s.data[start:s.pos]
			}
			continue
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return bytes.TrimRight(s.data[start:s.pos], " \t\r\n")
			}
			depth--
			if depth == 0 {
				s.pos++
				return s.data[start:s.pos]
			}
		case depth == 0 && c == ',':
			return bytes.TrimRight(s.data[start:s.pos], " \t\r\n")
		}
		s.pos++
	}
	return bytes.TrimRight(s.data[start:s.pos], " \t\r\n")
}

func (s *scanner) str() {
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
}

func unquote(raw []byte) (string, error) {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// Get returns the value of a key as it is spelled, or nil where there is none.
// Of duplicates the last counts, as with encoding/json.
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

// Keys returns the decoded keys in order, duplicates included.
func (o *Object) Keys() []string {
	keys := make([]string, len(o.members))
	for i, m := range o.members {
		keys[i] = m.key
	}
	return keys
}

// Set puts a value in the place of the key's last one, or appends it. The
// value must be valid JSON.
func (o *Object) Set(key string, value json.RawMessage) {
	// The members may be shared with a copy of this Object.
	o.members = append([]member(nil), o.members...)
	if i := o.index(key); i >= 0 {
		o.members[i].value = value
		return
	}
	o.members = append(o.members, member{rawKey: Quote(key), key: key, value: value})
}

// Delete removes a key with all its duplicates.
func (o *Object) Delete(key string) {
	kept := make([]member, 0, len(o.members))
	for _, m := range o.members {
		if m.key != key {
			kept = append(kept, m)
		}
	}
	o.members = kept
}

// Each calls f for each member in order with its decoded key. A value that f
// returns takes the place of the member's.
func (o *Object) Each(f func(key string, value json.RawMessage) json.RawMessage) {
	members := make([]member, len(o.members))
	for i, m := range o.members {
		m.value = f(m.key, m.value)
		members[i] = m
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

func (o *Object) index(key string) int {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

// Array returns the bytes of a JSON array of the elements.
func Array(elements ...json.RawMessage) json.RawMessage {
	b := append(make([]byte, 0, 64), '[')
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

// TypeName names the JSON type of a value for messages: "an object", "a string", …
func TypeName(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
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
