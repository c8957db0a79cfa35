package operation

import (
	"encoding/json"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// note is the summary of an operation: the arguments in short, for people, after
// what a process needs that reads the result and has no manifest. Temporal keeps
// it beside the operation, encoded as payloads are.
type note struct {
	mcp       bool   // the output is a CallToolResult
	schema    bool   // the tool has an output schema
	digest    string // of the arguments, and the answers, of a call with an idempotency key
	arguments string
}

func (c Call) note() note {
	args, err := contract.CheckArguments(c.Params.Arguments)
	if err != nil {
		return note{} // Start refuses the call
	}
	n := note{mcp: c.Tool.Encoding == contract.EncodingMCP, schema: c.Tool.OutputSchema != nil, arguments: short(args)}
	if c.IdempotencyKey != "" {
		n.digest = contract.Digest(args)
		if answers := c.Params.InputResponses; c.Params.Round(c.Tool.Encoding) != "" && !contract.IsNull(answers) {
			n.digest = contract.Digest(contract.Array(args, answers))
		}
	}
	return n
}

// String is the inverse of parseNote.
func (n note) String() string {
	var marks []string
	if n.mcp {
		marks = append(marks, "mcp")
	}
	if n.schema {
		marks = append(marks, "schema")
	}
	if n.digest != "" {
		marks = append(marks, n.digest)
	}
	if len(marks) == 0 {
		return n.arguments
	}
	return "[" + strings.Join(marks, " ") + "] " + n.arguments
}

func parseNote(summary string) note {
	rest, ok := strings.CutPrefix(summary, "[")
	marks, arguments, closed := strings.Cut(rest, "] ")
	if !ok || !closed {
		return note{arguments: summary}
	}
	n := note{arguments: arguments}
	for mark := range strings.FieldsSeq(marks) {
		switch mark {
		case "mcp":
			n.mcp = true
		case "schema":
			n.schema = true
		default:
			n.digest = mark
		}
	}
	return n
}

// tool is as much of the tool as reading its result takes.
func (n note) tool(name string) contract.Tool {
	t := contract.Tool{Name: name, Encoding: contract.EncodingValue}
	if n.mcp {
		t.Encoding = contract.EncodingMCP
	}
	if n.schema {
		t.OutputSchema = json.RawMessage("true")
	}
	return t
}

// maxShortBytes leaves the marks, and a codec, room within the 400 bytes that
// the server allows for an encoded summary.
const maxShortBytes = 160

// short cuts the arguments so that their encoded form keeps to the bound.
func short(args json.RawMessage) string {
	s := strings.ToValidUTF8(string(args[:min(len(args), maxShortBytes)]), "")
	for {
		encoded, _ := json.Marshal(s) // a string always encodes
		if len(encoded) <= maxShortBytes {
			break
		}
		runes := []rune(s)
		s = string(runes[:len(runes)*3/4])
	}
	if len(s) < len(args) {
		s += "…"
	}
	return s
}
