package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

func oneLine(json string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(json) }

// hard is what a decoder that makes values of JSON loses.
var hard = strings.ReplaceAll(oneLine(`{
	"int53": 9007199254740993, "int61": 1917043659912705296, "one": 1.0, "huge": 1e400, "minus": -0, "tiny": 1E-400,
	"thirty": 123456789012345678901234567890, "z": 1, "a": {"z": [1.50, -0.0], "a": 2}, "twice": 1, "twice": 2.0,
	"x-unknown": {"": null}, "nul": "a\u0000b", "html": "<b>&amp;</b> > <", "lines": "\u2028\u2029", "controls": "\u0001\u001f\u007f\n",
	"high": "\ud800", "low": "x\udc00", "swapped": "\udc00\ud800", "pair": "\ud83d\ude00", "plain": "é😀ß\\\"\/\b\f\n\r\t",
	"deep": DEEP, "é": true
}`), "DEEP", strings.Repeat("[", 500)+strings.Repeat("]", 500))

// TestExact: what a client sends reaches the upstream, and what the upstream
// answers reaches the client, with every number, order and unknown member.
func TestExact(t *testing.T) {
	t.Parallel()

	const result = `{"x-first":[1.0],"content":[
		{"type":"text","text":"a <b>","annotations":{"priority":1.0,"audience":["user"]},"_meta":{"com.example/n":9007199254740993}},
		{"type":"image","data":"aGVsbG8=","mimeType":"image/png","_meta":{"ui":1.0}},
		{"type":"audio","data":"not base64!","mimeType":"audio/wav"},
		{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"hello","x":1}},
		{"type":"resource","resource":{"uri":"file:///b","mimeType":"application/pdf","blob":"aGVsbG8=","_meta":{"ui":{"w":1.0}}}},
		{"type":"resource_link","uri":"file:///c","name":"c","size":9007199254740993},
		{"type":"hologram","beams":[1e400,-0]}
	],"structuredContent":{"b":1.0,"a":"\ud800"},"isError":false,"_meta":{"com.example/y":{"z":1.0}}}`
	eachWay(t, func(t *testing.T, w way, p path) {
		t.Helper()
		echo := p.Tool(t, "echo", hard)
		require.False(t, echo.IsError, "%s", echo.Raw)
		harness.RequireExact(t, hard, string(echo.Structured))
		harness.RequireExact(t, hard, echo.Text(t))
		harness.RequireExact(t, `1.0`, string(echo.Meta["com.example/result"]))

		got := p.Tool(t, "reply", `{"result":`+oneLine(result)+`}`)
		var members, want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got.Raw, &members))
		require.NoError(t, json.Unmarshal([]byte(result), &want))
		for _, key := range []string{"x-first", "content", "structuredContent", "isError"} {
			harness.RequireExact(t, string(want[key]), string(members[key]))
		}
		harness.RequireExact(t, `{"z":1.0}`, string(got.Meta["com.example/y"]))

		// _meta reaches the upstream, but for what belongs to one connection.
		params := p.Tool(t, "params", `{"a":1.0}`, `"com.example/x":{"b":1.0,"a":9007199254740993}`, `"progressToken":"client's own"`,
			`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`)
		var sent struct {
			Name      string
			Arguments json.RawMessage
			Meta      map[string]json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(params.Structured), `"_meta"`, `"meta"`, 1)), &sent))
		require.Equal(t, "params", sent.Name)
		harness.RequireExact(t, `{"a":1.0}`, string(sent.Arguments))
		harness.RequireExact(t, `{"b":1.0,"a":9007199254740993}`, string(sent.Meta["com.example/x"]))
		require.NotContains(t, string(params.Structured), "client's own")
		require.Contains(t, string(sent.Meta["traceparent"]), "0af7651916cd43dd8448eb211c80319c")
		require.Equal(t, w.modern, sent.Meta["io.modelcontextprotocol/protocolVersion"] != nil, "%s", params.Structured)
		require.NotContains(t, string(params.Structured), `"e2e"`, "who calls the connector is no client of the upstream")

		for _, none := range []string{"", "{}", " { } "} {
			require.JSONEq(t, `{}`, string(p.Tool(t, "echo", none).Structured))
		}

		// An error result is the tool's, whatever the output schema wants.
		typed := p.Tool(t, "typed", `{}`)
		require.True(t, typed.IsError)
		require.Equal(t, "It does not work.", typed.Text(t))
		require.NotContains(t, typed.Meta, "io.temporal/failure")
		failed := p.Tool(t, "reply", `{"result":{"content":[{"type":"text","text":"no <b>"},{"type":"hologram","n":1.0}],"isError":true,"structuredContent":{"n":9007199254740993}}}`)
		require.True(t, failed.IsError)
		require.Len(t, failed.Content, 2)
		harness.RequireExact(t, `{"n":9007199254740993}`, string(failed.Structured))

		// So is a JSON-RPC error.
		e := p.ToolError(t, upstream.ToolPlain, `{"error":{"code":-32042,"message":"ask first <b>","data":{"n":9007199254740993,"b":1.0}}}`)
		require.Equal(t, -32042, e.Code)
		require.Equal(t, "ask first <b>", e.Message)
		harness.RequireExact(t, `{"n":9007199254740993,"b":1.0}`, string(e.Data))
	})
}

// TestToolsAreExact: a tool is served as the upstream lists it.
func TestToolsAreExact(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, _ way, p path) {
		t.Helper()
		list := awaitTools(t, p.Peer)
		_, echo := list.Find(t, "echo")
		for member, want := range map[string]string{
			"title":       `"Echo"`,
			"description": `"Returns its arguments. <b>&\u2028"`,
			"x-unknown":   `{"z":1.0,"a":9007199254740993,"m":[1e400,-0]}`,
			"inputSchema": `{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"number","maximum":9007199254740993}},` +
				`"$defs":{"node":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"},{"const":9007199254740993}]}}}`,
			"annotations": `{"title":"Echo!","readOnlyHint":true,"x-hint":1.0}`,
			"icons":       `[{"src":"https://example.com/i.png"}]`,
		} {
			harness.RequireExact(t, want, string(echo[member]))
		}
		var meta map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(echo["_meta"], &meta))
		harness.RequireExact(t, `[1.50]`, string(meta["com.example/x"]))
		require.NotContains(t, meta, "io.temporal/upstreamName", "it has its own name")
		for _, tool := range list.Names(t) {
			require.NotContains(t, []string{"", "list_tools"}, tool)
		}
	})
}
