package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
	if s.space(); s.peek() != '{' {
		return Object{}, fmt.Errorf("%s, want an object", TypeName(raw))
	}
	var o Object
	for s.open(); s.more('}'); {
		rawKey, value := s.key(), s.value()
		o.members = append(o.members, member{rawKey: rawKey, key: decodeString(rawKey), value: value})
	}
	return o, nil
}

// splitArray needs valid JSON.
func splitArray(raw json.RawMessage) ([]json.RawMessage, error) {
	s := scanner{data: raw}
	if s.space(); s.peek() != '[' {
		return nil, fmt.Errorf("%s, want an array", TypeName(raw))
	}
	elements := []json.RawMessage{}
	for s.open(); s.more(']'); {
		elements = append(elements, s.value())
	}
	return elements, nil
}

// scanner walks JSON that is known to be valid.
type scanner struct {
	data []byte
	pos  int
}

// peek returns 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.pos]) >= 0 {
		s.pos++
	}
}

// open steps into a container.
func (s *scanner) open() { s.pos++ }

// more stands before the next element, or behind the end of the container.
func (s *scanner) more(end byte) bool {
	s.space()
	switch s.peek() {
	case end, 0:
		s.pos++
		return false
	case ',':
		s.pos++
		s.space()
	}
	return true
}

// key takes a member's key, and stands before its value then.
func (s *scanner) key() []byte {
	key := s.value()
	s.space()
	s.pos++ // the colon
	s.space()
	return key
}

// value takes the value that starts here, with its spelling.
func (s *scanner) value() json.RawMessage {
	start, depth := s.pos, 0
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			s.str()
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			s.literal()
			return s.data[start:s.pos:s.pos]
		}
		if depth == 0 {
			s.pos++
			return s.data[start:s.pos:s.pos]
		}
	}
	return s.data[start:]
}

// literal goes behind the number, boolean or null that starts here.
func (s *scanner) literal() {
	for s.pos < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.pos]) < 0 {
		s.pos++
	}
}

// str goes to the quote that ends the string which starts here.
func (s *scanner) str() {
	for s.pos++; s.peek() != '"' && s.peek() != 0; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
}

// decodeString returns the code units of a valid JSON string as WTF-8: UTF-8 in
// which a lone surrogate has its three bytes. So no two strings are the same
// that JSON tells apart.
func decodeString(quoted []byte) string {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	b := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			n := bytes.IndexByte(text, '\\')
			if n < 0 {
				n = len(text)
			}
			b, text = append(b, text[:n]...), text[n:]
			continue
		}
		if text[1] != 'u' {
			b, text = append(b, unescape(text[1])), text[2:]
			continue
		}
		r := hex4(text[2:])
		text = text[6:]
		if utf16.IsSurrogate(r) {
			if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(text[2:])); pair != utf8.RuneError {
					b, text = utf8.AppendRune(b, pair), text[6:]
					continue
				}
			}
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

func unescape(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		default:
			r |= rune(c|0x20-'a') + 10
		}
	}
	return r
}

// text returns a JSON string's text, and whether raw is one.
func text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return toUTF8(decodeString(raw)), true
}

// toUTF8 puts U+FFFD in the place of each lone surrogate of a decoded string, as
// encoding/json does.
func toUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			size = 3
		}
		b, i = utf8.AppendRune(b, r), i+size
	}
	return string(b)
}
