package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

const asking = `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"n":1.0}}},"requestState":"s"}`

// A service may say what MCP said to it. A task would be one that nobody knows,
// and input is asked only of who can give it.
func TestResultTypesOfAService(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{TaskAfter: time.Millisecond})
	results := map[string]string{
		"task": `{"resultType":"task","taskId":"t","status":"working"}`, "odd": `{"resultType":7}`,
		"whole": `{"resultType":"complete","content":[]}`, "null": `{"resultType":null,"content":[]}`,
		"ask": asking, "again": `{"resultType":"input_required","requestState":"s"}`,
		"bad": `{"resultType":"input_required","inputRequests":{"q":7}}`,
	}
	handlers, tools := map[string]temporaltest.Handler{}, []string{}
	for name, result := range results {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}}`, name))
		handlers[name] = func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(result), nil }
	}
	temporal.Serve("tools", `{"tools":[`+strings.Join(tools, ",")+`]}`, handlers)
	server.Catalog().Refresh(t.Context())
	p := stdio(t, server, time.Second)
	call := func(tool, version, capabilities string) contract.Result {
		meta := ""
		if version != "" {
			meta = fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}`, version, capabilities)
		}
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{}%s}}`, tool, meta))
		a := p.read()
		require.Nil(t, a.Error)
		r, err := contract.DecodeResult(a.Result)
		require.NoError(t, err)
		return r
	}
	const modern = "2026-07-28"
	for _, tool := range []string{"task", "odd", "bad"} {
		r := call(tool, modern, `{"elicitation":{}}`)
		require.True(t, r.IsError(), "%s", r.JSON())
		require.NotEmpty(t, r.Meta(contract.MetaFailure))
	}
	require.Contains(t, string(call("task", modern, `{}`).JSON()), `\"task\"`)
	for _, tool := range []string{"whole", "null"} {
		require.False(t, call(tool, modern, `{}`).IsError())
	}
	for _, tool := range []string{"ask", "again"} {
		require.Equal(t, results[tool], strings.Split(string(call(tool, modern, `{"elicitation":{}}`).JSON()), `,"_meta"`)[0]+"}")
	}
	r := call("ask", modern, `{"sampling":{}}`)
	require.True(t, r.IsError())
	text, _ := r.Text()
	require.Contains(t, text, "elicitation/create")
	require.False(t, call("again", modern, `{}`).IsError(), "it asks for the call once more, and nothing of the client")

	// What is read by its ID cannot be answered any more.
	id := temporal.Operations("tools")[0].GetOperationId()
	for _, op := range temporal.Operations("tools") {
		if op.GetOperation() == "ask" {
			id = op.GetOperationId()
		}
	}
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_operation_result","arguments":{"operation_id":%q},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, id))
	require.Contains(t, string(p.read().Result), "Make the call itself")

	w := deliver(t, server, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{}}}`)
	require.Contains(t, w.Body.String(), `"isError":true`, "an older client")
}

// A tool that the MCP SDK does not take is left out with a warning wherever
// warnings show, and the rest is served.
func TestToolsThatTheSDKRefuses(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	deep := strings.Repeat(`{"properties":{"a":`, 600) + "{}" + strings.Repeat("}}", 600)
	temporal.Serve("tools", `{"tools":[{"name":"deep","inputSchema":{"type":"object","not":`+deep+`}},`+
		`{"name":"header","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"a b"}}}},`+
		`{"name":"fine","inputSchema":{"type":"object"}}]}`, nil)
	server.Catalog().Refresh(t.Context())
	warnings := strings.Join(server.Catalog().Snapshot().Warnings(), "\n")
	require.Contains(t, warnings, `tool "deep" is left out`)
	require.Contains(t, warnings, `tool "header" is left out`)
	_, served := server.Catalog().Snapshot().Find("deep")
	require.False(t, served)
	w := deliver(t, server, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Contains(t, w.Body.String(), `tool \"deep\" is left out`)
	require.Contains(t, w.Body.String(), `"name":"fine"`)
	require.NotContains(t, w.Body.String(), `"name":"header"`)
}
