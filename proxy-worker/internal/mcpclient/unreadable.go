package mcpclient

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
)

// Oversize is the error of [Frames] for a message over the limit. What follows it
// can be read, unless Lost is set.
type Oversize struct {
	// Start is what was kept of the message, End the last bytes of it that are not
	// in Start.
	Start, End []byte
	// Size is how much of it came.
	Size, Limit int64
	// Lost is why the link ends with it; nil if it does not.
	Lost *Error
}

// Error implements error.
func (o *Oversize) Error() string { return fmt.Sprintf("a message of more than %d bytes", o.Limit) }

// answer is the error of the request that the message answers.
func (o *Oversize) answer(method string) *Error {
	size := o.Size
	if o.Lost != nil {
		size = 0
	}
	return TooLarge(method, size, o.Limit)
}

// TooLarge is the error of a request whose answer is over the limit. A size that
// is not above it is not known.
func TooLarge(method string, size, limit int64) *Error {
	has := fmt.Sprintf("%d bytes", size)
	if size <= limit {
		has = fmt.Sprintf("more than %d bytes", limit)
	}
	return &Error{Outcome: Answered, TooLarge: true, Message: fmt.Sprintf(
		"the server's answer to %s has %s, and the limit of a message is %d bytes", method, has, limit)}
}

var errNoJSON = errors.New("it is not JSON that can be read")

// Unreadable is the error of a request whose answer is no JSON, or is nested
// deeper than can be read.
func Unreadable(method string) *Error { return Malformed(method, errNoJSON) }

// lastID is the end of a message of which the ID comes last, as some SDKs write
// it.
var lastID = regexp.MustCompile(`[,{]\s*"id"\s*:\s*([0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// Recognize says what a text is that cannot be read as JSON: whether it looks like
// a response, and for which ID, empty where that cannot be seen. Of a text that is
// only known in part, end holds the last bytes.
func Recognize(text, end []byte) (id string, response bool) {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, bom), " \t\r\n")
	switch {
	case len(text) == 0:
		return "", false
	case text[0] == '[': // a batch, as of 2025-03-26
		return "", true
	case text[0] != '{':
		return "", false
	}
	id, known := topLevel(text)
	switch {
	case known:
		return id, id != ""
	case id != "":
		return id, true
	}
	if tail := append(bytes.Clone(text[max(0, len(text)-keptEnd):]), end...); lastID.Match(tail) {
		id = string(lastID.FindSubmatch(tail)[1])
	}
	return id, true
}

// ReadableID says of a whole text that cannot be read as JSON whether it is a
// response all the same, and for which ID, empty where that cannot be seen. A
// banner, a line of a log or a part of a message is none.
func ReadableID(text []byte) (id string, response bool) {
	id, response = Recognize(text, nil)
	whole := bytes.HasSuffix(bytes.TrimRight(text, " \t\r\n"), []byte("}"))
	return id, response && whole && bytes.Contains(text, []byte(`"jsonrpc"`))
}

// keptEnd is how much of the end of a message can tell its ID.
const keptEnd = 256

var bom = []byte("\xef\xbb\xbf")

// topLevel looks for the ID among the members of an object that may be cut off, or
// no JSON further on. It is known where the member that decides was seen; empty for
// what has a method, and so is no response.
func topLevel(text []byte) (id string, known bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := stringEnd(text, i)
			if end < 0 {
				return id, false
			}
			name := text[i+1 : end]
			i = end
			value, member := bytes.CutPrefix(bytes.TrimLeft(text[end+1:], " \t\r\n"), []byte(":"))
			if depth != 1 || !member {
				continue
			}
			switch string(name) {
			case "method":
				return "", true
			case "id":
				id = scalar(value)
			case "result", "error":
				if id != "" {
					return id, true
				}
			}
		}
	}
	return id, false
}

// stringEnd returns where the string that begins at i has its last quote, or -1.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// scalar returns a number or a string at the start of a text; empty if it has no
// end there.
func scalar(text []byte) string {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) > 0 && text[0] == '"' {
		if end := stringEnd(text, 0); end > 0 {
			return string(text[:end+1])
		}
		return ""
	}
	if end := bytes.IndexAny(text, ",} \t\r\n"); end > 0 {
		return string(text[:end])
	}
	return ""
}
