package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/stretchr/testify/require"
)

// A service may write its empty content as Go writes an empty list.
func TestNoContent(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{Caller: "ada"})
	temporal.Serve("tools", `{"tools":[{"name":"silent","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}}]}`,
		map[string]temporaltest.Handler{"silent": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"resultType":null,"content":null}`), nil
		}})
	server.Catalog().Refresh(t.Context())
	w := deliver(t, server, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent","arguments":{}}}`)
	require.Contains(t, w.Body.String(), `"content":[]}`)
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/call", `"name":"silent","arguments":{}`))
	require.Contains(t, string(p.read().Result), `{"resultType":"complete","content":[],`)
	for _, op := range temporal.Operations("tools") {
		if strings.HasPrefix(op.GetOperationId(), "mcp-stdio-") {
			p.send(modern(2, "tasks/get", fmt.Sprintf(`"taskId":%q`, op.GetOperationId())))
			require.Contains(t, string(p.read().Result), `"result":{"resultType":"complete","content":[]}`)
		}
	}
}

func TestLegacyClientsSeeObjectsOnly(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	p := stdio(t, server, time.Second)
	p.send(modern(1, "tools/list", ""), modern(2, "tools/call", `"name":"count","arguments":{}`))
	byID := map[string]answer{}
	for range 2 {
		a := p.read()
		byID[fmt.Sprint(a.ID)] = a
	}
	require.Contains(t, string(byID["1"].Result), `"outputSchema":{"anyOf":[{"type":"integer"},`)
	require.Contains(t, string(byID["1"].Result), `"ttlMs":30000`)
	require.Contains(t, string(byID["2"].Result), `"structuredContent":9007199254740993`)
	require.Contains(t, string(byID["2"].Result), `"resultType":"complete"`)

	for asked, agreed := range map[string]string{
		"2025-06-18": "2025-06-18", "2026-07-28": "2025-11-25", "2999-01-01": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		legacy := stdio(t, server, time.Second)
		legacy.send(strings.Replace(initialize, "2025-06-18", asked, 1))
		require.Contains(t, string(legacy.read().Result), `"protocolVersion":"`+agreed+`"`, asked)
		legacy.send(initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		list := string(legacy.read().Result)
		require.NotContains(t, list, "outputSchema", asked)
		require.NotContains(t, list, "ttlMs", asked)
		legacy.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count"}}`)
		result := string(legacy.read().Result)
		require.Contains(t, result, `"text":"9007199254740993"`, asked)
		require.NotContains(t, result, "structuredContent", asked)
		require.NotContains(t, result, "resultType", asked)
	}
}

// Structured content that the client's revision does not have is text, so that no
// result ends up empty.
func TestLegacyClientsReadStructuredContent(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	var result atomic.Value
	temporal.Serve("tools", `{"tools":[{"name":"say","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}}]}`,
		map[string]temporaltest.Handler{"say": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(result.Load().(string)), nil
		}})
	server.Catalog().Refresh(t.Context())
	const image, text = `{"type":"image","data":"AA==","mimeType":"image/png"}`, `{"type":"text","text":"t"}`
	const array, object = `[9007199254740993,1.0,"\u003cb>"]`, `{"n":1.0}`
	copied := func(text string) string { return `{"type":"text","text":` + text + `}` }
	for _, test := range []struct{ version, content, structured, want string }{
		{"2025-11-25", "[]", array, `{"content":[` + copied(`"[9007199254740993,1.0,\"<b>\"]"`) + `]}`},
		{"2025-06-18", "null", array, `{"content":[` + copied(`"[9007199254740993,1.0,\"<b>\"]"`) + `]}`},
		{"2025-11-25", "[" + image + "]", "true", `{"content":[` + image + `,` + copied(`"true"`) + `]}`},
		{"2025-11-25", "[" + text + "]", array, `{"content":[` + text + `]}`},
		{"2025-11-25", "[]", `"\ud800 <b>"`, `{"content":[` + copied(`"\ud800 <b>"`) + `]}`},
		{"2025-11-25", "[]", "null", `{"content":[]}`},
		{"2025-11-25", "[]", object, `{"content":[],"structuredContent":` + object + `}`},
		{"2025-03-26", "[]", object, `{"content":[` + copied(`"{\"n\":1.0}"`) + `],"structuredContent":` + object + `}`},
		{"2025-03-26", "[" + text + "]", object, `{"content":[` + text + `],"structuredContent":` + object + `}`},
		{"2026-07-28", "[]", array, `{"content":[],"structuredContent":` + array + `,`},
	} {
		result.Store(`{"content":` + test.content + `,"structuredContent":` + test.structured + `}`)
		require.Contains(t, speak(t, server, test.version).raw(test.version, "tools/call", `"name":"say","arguments":{}`), `"result":`+test.want)
		require.Contains(t, request(t, server, test.version, "tools/call", `"name":"say","arguments":{}`).Body.String(), `"result":`+test.want)
	}
}
