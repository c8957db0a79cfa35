package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// The SDK reads the ID of a request as a float64 or a string of Go and sends that
// back: 2^53+1, 1.0 and a lone surrogate come back as others, and nobody would
// know whose answer it is. Such an ID goes to the SDK as a string that stands for
// it, and what the SDK writes gets the ID's own bytes back.

// idMark starts these strings. It is random: no string of anybody else has it.
var idMark = newIDMark()

func newIDMark() []byte {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails, see crypto/rand
	return []byte(`"id-` + hex.EncodeToString(bits[:]) + "-")
}

// checkID says what is wrong with an ID: MCP has strings and integers.
func checkID(id json.RawMessage) (problem string) {
	if contract.TypeName(id) != "a number" || !bytes.ContainsAny(id, ".eE") {
		return ""
	}
	if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return "" // like 1.0 and 1e3
	}
	return fmt.Sprintf("The id %.40s is neither a string nor an integer.", id)
}

// echoed reports whether the SDK sends an ID back as it came.
func echoed(id json.RawMessage) bool {
	switch contract.TypeName(id) {
	case "a number":
		n, err := strconv.ParseInt(string(id), 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == string(id) && n > -1<<53 && n < 1<<53
	case "a string":
		var s string
		return json.Unmarshal(id, &s) == nil && !strings.ContainsRune(s, utf8.RuneError)
	}
	return true
}

// encodeID returns the ID that stands for one in the SDK.
func encodeID(id json.RawMessage) json.RawMessage {
	if echoed(id) {
		return id
	}
	return fmt.Appendf(nil, `%s%x"`, idMark, []byte(id))
}

// decodeIDs puts the IDs back into what the SDK wrote.
func decodeIDs(message []byte) []byte {
	var out []byte
	for {
		start := bytes.Index(message, idMark)
		if start < 0 {
			break
		}
		coded := message[start+len(idMark):]
		end := bytes.IndexByte(coded, '"')
		id, err := hex.DecodeString(string(coded[:max(end, 0)]))
		if end < 0 || err != nil {
			break
		}
		out = append(append(out, message[:start]...), id...)
		message = coded[end+1:]
	}
	if out == nil {
		return message
	}
	return append(out, message...)
}

// encodeMember returns the object with the ID of one of its members encoded.
func encodeMember(object json.RawMessage, member string) json.RawMessage {
	o, err := contract.ParseObject(object)
	if err != nil {
		return object
	}
	id := o.Get(member)
	if id == nil || echoed(id) {
		return object
	}
	o.Delete(member)
	o.Set(member, encodeID(id))
	return o.JSON()
}

// requestID returns the ID of a single request as it was sent, or nil where there
// is none that JSON-RPC allows.
func requestID(message []byte) json.RawMessage {
	o, _ := contract.ParseObject(message)
	return idOf(o)
}

func idOf(message contract.Object) json.RawMessage {
	if !message.Has("method") {
		return nil
	}
	switch id := message.Get("id"); contract.TypeName(id) {
	case "a string", "a number":
		return id
	}
	return nil
}

// duplicateID is the answer to a request whose ID another one has that is not
// answered yet: two answers under one ID could not be told apart.
func duplicateID(id json.RawMessage) string {
	return fmt.Sprintf("The id %.80s is that of a request that is still under way. Give each request an id of its own.", id)
}
