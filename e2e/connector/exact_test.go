package connector_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// deep is a value of so many levels.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// oneLine is JSON as stdio wants it.
func oneLine(json string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(json) }

// hard is what a decoder that makes values of JSON loses.
var hard = strings.ReplaceAll(oneLine(`{
	"int53": 9007199254740993, "int61": 1917043659912705296, "one": 1.0, "huge": 1e400, "minus": -0, "tiny": 1E-400,
	"thirty": 123456789012345678901234567890, "z": 1, "a": {"z": [1.50, -0.0], "a": 2}, "twice": 1, "twice": 2.0,
	"x-unknown": {"": null}, "nul": "a\u0000b", "html": "<b>&amp;</b> > <", "lines": "\u2028\u2029", "controls": "\u0001\u001f\u007f",
	"high": "\ud800", "low": "x\udc00", "swapped": "\udc00\ud800", "pair": "\ud83d\ude00", "plain": "é😀ß\\\"\/\b\f\n\r\t",
	"deep": DEEP, "é": true
}`), "DEEP", deep(900))

// TestArgumentsAndResultsAreExact: what goes in comes out, byte for byte but for
// white space and the spelling of escapes.
func TestArgumentsAndResultsAreExact(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		echo := p.Tool(t, "echo", hard)
		require.False(t, echo.IsError)
		harness.RequireExact(t, hard, string(echo.Structured))
		harness.RequireExact(t, hard, echo.Text(t))
		require.Contains(t, echo.Text(t), `"<b>&amp;</b> > <"`, "a text copy is a string for people and models")

		act := p.Tool(t, "act", `{"value":`+hard+`}`)
		harness.RequireExact(t, hard, string(act.Structured))
		harness.RequireExact(t, hard, act.Text(t))

		slow := p.Tool(t, "slow", `{"value":`+hard+`}`)
		harness.RequireExact(t, hard, string(slow.Structured))

		input := p.Tool(t, "input", hard, `"com.example/x":{"b":1.0,"a":9007199254740993}`, `"progressToken":"secret-token"`)
		var got struct{ Arguments, Meta json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(input.Structured), `"_meta"`, `"meta"`, 1)), &got))
		harness.RequireExact(t, hard, string(got.Arguments))
		harness.RequireExact(t, `{"com.example/x":{"b":1.0,"a":9007199254740993}}`, string(got.Meta))
	})
}

func TestValuesThatAreNoObjects(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		for value, text := range map[string]string{
			`9007199254740993`: `9007199254740993`, `1e400`: `1e400`, `-0`: `-0`, `1.0`: `1.0`, `true`: `true`,
			`"<b>\u0000é"`: "<b>\u0000é", `[1.0,{"b":1,"a":2}]`: `[1.0,{"b":1,"a":2}]`, `""`: "",
		} {
			args := `{"value":` + value + `}`
			pick := p.Tool(t, "pick", args)
			require.Equal(t, text, pick.Text(t))
			require.Empty(t, pick.Structured, "%s", pick.Raw)
			structured := p.Tool(t, "pick_any", args)
			require.Equal(t, text, structured.Text(t))
			if p.Modern() {
				harness.RequireExact(t, value, string(structured.Structured))
			} else { // before 2026-07-28 it is an object
				require.Empty(t, structured.Structured, "%s", structured.Raw)
			}
		}
		null := p.Tool(t, "pick", `{"value":null}`)
		require.Empty(t, null.Content)
		null = p.Tool(t, "pick_any", `{"value":null}`)
		require.Empty(t, null.Content)
		require.Equal(t, p.Modern(), string(null.Structured) == "null", "%s", null.Raw)
	})
}

// TestContentArrivesWhole: a service that speaks MCP itself says what the client
// gets, with types and members that nobody here knows.
func TestContentArrivesWhole(t *testing.T) {
	t.Parallel()

	const result = `{"x-first":[1.0],"content":[
		{"type":"text","text":"a <b>","annotations":{"priority":1.0,"audience":["user"]},"_meta":{"com.example/n":9007199254740993}},
		{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},
		{"type":"audio","data":"aGVsbG8=","mimeType":"audio/wav"},
		{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"hello","x":1}},
		{"type":"resource","resource":{"uri":"file:///b","blob":"aGVsbG8="}},
		{"type":"resource_link","uri":"file:///c","name":"c","size":9007199254740993},
		{"type":"hologram","beams":[1e400,-0]}
	],"structuredContent":{"b":1.0,"a":"\ud800"},"isError":false,"_meta":{"com.example/y":{"z":1.0}}}`
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		got := p.Tool(t, "content", `{"result":`+oneLine(result)+`}`)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got.Raw, &members))
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(result), &want))
		for _, key := range []string{"x-first", "content", "structuredContent", "isError"} {
			harness.RequireExact(t, string(want[key]), string(members[key]))
		}
		harness.RequireExact(t, `{"z":1.0}`, string(got.Meta["com.example/y"]))

		failed := p.Tool(t, "content", `{"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`)
		require.True(t, failed.IsError)
		require.Equal(t, "no", failed.Text(t))

		empty := p.Tool(t, "content", `{"result":{"content":[]}}`)
		require.Empty(t, empty.Content)
	})
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		line := harness.Unique("line")
		for _, bad := range []string{`["` + line + `"]`, `"{\"line\":\"` + line + `\"}"`, `1`, `true`, `null`} {
			e := p.ToolError(t, "note", bad)
			require.Equal(t, -32602, e.Code, "%s: %+v", bad, e)
			require.Contains(t, e.Message, "arguments: ")
		}
		require.Zero(t, kit.Effects(t, line))
		for _, none := range []string{"", "{}", " { } "} {
			require.JSONEq(t, `{}`, string(p.Tool(t, "echo", none).Structured), "%q", none)
		}
	})
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		e := p.ToolError(t, "absent", `{}`)
		require.Equal(t, -32602, e.Code)
		require.Contains(t, e.Message, `"absent"`)
		require.Equal(t, -32602, p.ToolError(t, "list_tools", `{}`).Code, "the manifest is no tool")
		require.Equal(t, -32602, p.ToolError(t, "Bad Name", `{}`).Code)
	})
}
