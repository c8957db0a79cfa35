package mcpserver

import (
	"bytes"
	"errors"
	"strconv"
)

// representable returns the JSON text with a zero in the place of every number
// that float64 does not reach. The SDK decodes parts of a request to values, and
// refuses it for such a number; the tool gets the params as they came, beside
// it.
func representable(text []byte) []byte {
	out := text
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && isNumberByte(text[end]) {
				end++
			}
			if tooLarge(text[i:end]) {
				if &out[0] == &text[0] {
					out = bytes.Clone(text)
				}
				copy(out[i:end], "0"+string(bytes.Repeat([]byte(" "), end-i-1)))
			}
			i = end - 1
		}
	}
	return out
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

// tooLarge is false at once for what has few digits and no exponent.
func tooLarge(number []byte) bool {
	if len(number) < 300 && !bytes.ContainsAny(number, "eE") {
		return false
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return errors.Is(err, strconv.ErrRange)
}
