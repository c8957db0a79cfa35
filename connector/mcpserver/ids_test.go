package mcpserver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/stretchr/testify/require"
)

// What is answered names its request, or the request is refused by its name.
func TestStdioKeepsIDs(t *testing.T) {
	t.Parallel()

	server, _ := start(t, mcpserver.Options{})
	p := stdio(t, server, time.Second)
	p.send(initialize)
	require.Equal(t, "init", p.read().ID)
	p.send(initialized)
	for _, id := range []string{`1.5`, `1e400`} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,`+
			`"message":"The id %s is neither a string nor an integer."}}`, id, id)+"\n", p.line())
	}
	for _, id := range []string{`9007199254740993`, `123456789012345678901234567890`, `-9007199254740993`, `9007199254740992`,
		`1.0`, `1e3`, `-0`, `-7`, `"a"`, `"\ud800"`, `0`} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)+"\n", p.line())
	}
	p.send(`{"id":9007199254740993,"method":"pi\u006eg","jsonrpc":"2\u002e0"}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`+"\n", p.line())
	p.send(`{"jsonrpc":"2.0","id":8,"method":"ping","params":` + strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000) + "}")
	require.EqualValues(t, 8, p.read().ID)
	p.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}{"jsonrpc":"2.0","id":10,"method":"ping"}`)
	a := p.read()
	require.Nil(t, a.ID)
	require.Equal(t, -32700, a.Error.Code, "neither half of the line was served")
	p.send(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping","params":{"a":"` + "\xff" + `"}}`)
	a = p.read()
	require.Nil(t, a.ID, "of what is no text, no part counts")
	require.Equal(t, -32700, a.Error.Code)
}

// What the SDK would change on its way to the tool is refused.
func TestHTTPRefusesWhatWouldChange(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"n":%s}}}`
	for body, want := range map[string]string{
		fmt.Sprintf(call, "1", "1e400") + "}":                                                   `"id":null,"error":{"code":-32700,`,
		fmt.Sprintf(call, "1", "1") + fmt.Sprintf(call, "2", "1"):                               `"id":null,"error":{"code":-32700,`,
		fmt.Sprintf(call, "1", `1e400,"_":"`+"\xff\""):                                          `"id":null,"error":{"code":-32700,`,
		strings.Replace(fmt.Sprintf(call, "9007199254740993", "1"), "{", "{\"_\":\"\xff\",", 1): `"id":null,"error":{"code":-32700,`,
		fmt.Sprintf(call, "1.5", "1"):                                                           `"id":1.5,"error":{"code":-32600,`,
		"[" + fmt.Sprintf(call, "1", "1") + "," + fmt.Sprintf(call, "1", "2") + "]":             `"id":1,"error":{"code":-32600,`,
	} {
		w := deliver(t, server, body)
		require.Equal(t, http.StatusBadRequest, w.Code, body)
		require.Contains(t, w.Body.String(), want, body)
	}
	require.Empty(t, temporal.Operations("tools"))
	for _, body := range []string{fmt.Sprintf(call, "1", "1e400"), "[" + fmt.Sprintf(call, "1", "1.0") + "," + fmt.Sprintf(call, "2", "1e400") + "]"} {
		w := deliver(t, server, body)
		require.Equal(t, http.StatusOK, w.Code)
		require.Regexp(t, `"structuredContent":\{"n":(1e400|1\.0)\}`, w.Body.String())
	}
	for _, id := range []string{`9007199254740993`, `-123456789012345678901234567890`, `"\udfff"`, `2.0`, `7`} {
		w := deliver(t, server, fmt.Sprintf(call, id, "1"))
		require.Contains(t, w.Body.String(), `"id":`+id+`,`)
		w = deliver(t, server, "["+fmt.Sprintf(call, id, "1")+"]")
		require.Contains(t, w.Body.String(), `"id":`+id+`,`)
		w = deliver(t, server, strings.Replace(fmt.Sprintf(call, id, "1"), `"tools/call"`, `"resources/subscribe"`, 1))
		require.Contains(t, w.Body.String(), `"id":`+id)
		require.NotContains(t, w.Body.String(), `"id-`)
	}
}

func deliver(t *testing.T, server *mcpserver.Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, req)
	return w
}
