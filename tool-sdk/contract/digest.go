package contract

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Digest returns 32 hex digits that are the same for two JSON values only if
// they differ in nothing but white space, key order and the spelling of string
// escapes. Numbers compare by their literal, strings by their code units,
// duplicates of a key by their order. What is no valid JSON compares by its
// bytes. It takes linear time, however deep the value is.
func Digest(raw json.RawMessage) string {
	form := append([]byte("?"), raw...)
	if checkJSON(raw) == nil {
		s := scanner{data: raw}
		s.space()
		form = s.canonical(nil)
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:16])
}

// canonical appends a form of the value that starts here which no other value
// has. A container is the hash of its parts, so that a level costs no more than
// itself.
func (s *scanner) canonical(dst []byte) []byte {
	switch s.peek() {
	case '{':
		type part struct {
			key  string
			form []byte
		}
		var parts []part
		for s.open(); s.more('}'); {
			parts = append(parts, part{key: decodeString(s.key()), form: s.canonical(nil)})
		}
		slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.key, b.key) })
		var body []byte
		for _, p := range parts {
			body = append(scalar(body, '"', p.key), p.form...)
		}
		return hashed(dst, '{', body)
	case '[':
		var body []byte
		for s.open(); s.more(']'); {
			body = s.canonical(body)
		}
		return hashed(dst, '[', body)
	case '"':
		return scalar(dst, '"', decodeString(s.value()))
	}
	return scalar(dst, '1', string(s.value()))
}

func scalar(dst []byte, tag byte, text string) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, tag), uint32(len(text)))
	return append(dst, text...)
}

func hashed(dst []byte, tag byte, body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(append(dst, tag), sum[:]...)
}
