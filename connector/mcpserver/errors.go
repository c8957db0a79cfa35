package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// busyCode is the JSON-RPC error code of a call that was refused for load. It
// is outside the range that JSON-RPC reserves.
const busyCode = 503

func invalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func unknownTool(name string, warnings []string) error {
	return invalidParams("%s", withWarnings(fmt.Sprintf("Unknown tool: %q.", name), warnings))
}

func unknownPrompt(name string, warnings []string) error {
	return invalidParams("%s", withWarnings(fmt.Sprintf("Unknown prompt: %q.", name), warnings))
}

// withWarnings adds what is known about the catalog to a sentence that says that
// nobody has something.
func withWarnings(sentence string, warnings []string) string {
	for _, w := range warnings {
		sentence = strings.TrimSuffix(sentence, ".") + ". " + strings.TrimSuffix(w, ".") + "."
	}
	return sentence
}

// The SDK takes an error with the code of an unknown method for its own: it puts
// words of its own in the place of the message and drops the data. The error of a
// service goes through it under a code that stands for that one, and what the SDK
// writes gets the code back.

// standInCode is random: nobody else's error has it.
var standInCode = rand.Int64() | 1<<62 //nolint:gosec // it guards nothing

var (
	standInMember = strconv.AppendInt([]byte(`"code":`), standInCode, 10)
	methodMember  = strconv.AppendInt([]byte(`"code":`), jsonrpc.CodeMethodNotFound, 10)
)

// serviceError is the JSON-RPC error that a service answered with.
func serviceError(ctx context.Context, extra *mcp.RequestExtra, p *contract.ProtocolError) error {
	e := &jsonrpc.Error{Code: p.Code, Message: p.Message, Data: p.Data}
	if e.Code == jsonrpc.CodeMethodNotFound && restores(ctx, extra) {
		e.Code = standInCode
	}
	return e
}

// restores reports whether what the SDK writes to the client of the request goes
// through [restore], as it does with the transports of this package.
func restores(ctx context.Context, extra *mcp.RequestExtra) bool {
	return ctx.Value(streamKey{}) != nil || extra != nil && extra.Header[stdioParams] != nil
}

// restore puts back, into what the SDK wrote, what it could not carry.
func restore(message []byte) []byte {
	return decodeIDs(bytes.ReplaceAll(message, standInMember, methodMember))
}
