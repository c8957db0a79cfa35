package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
)

// The JSON-RPC error of a service is the client's, whatever the SDK makes of its
// code.
func TestErrorsOfAServicePassAsTheyAre(t *testing.T) {
	t.Parallel()

	server, temporal := start(t, mcpserver.Options{})
	var says atomic.Value
	fail := func(context.Context, json.RawMessage) (json.RawMessage, error) {
		e, err := contract.DecodeProtocolError(json.RawMessage(says.Load().(string)))
		if err != nil {
			return nil, err
		}
		return nil, resultmap.ApplicationError(resultmap.ProtocolError(e))
	}
	list := func(list string) temporaltest.Handler {
		return func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(list), nil }
	}
	temporal.Serve("tools", `{"tools":[{"name":"fail","inputSchema":{"type":"object"}}],`+
		`"_meta":{"io.temporal/capabilities":{"resources":{},"prompts":{},"completions":{}}}}`, map[string]temporaltest.Handler{
		"fail": fail,
		contract.MethodOperation("resources/list"):           list(`{"resources":[{"uri":"x:1","name":"1"}]}`),
		contract.MethodOperation("resources/templates/list"): list(`{"resourceTemplates":[]}`),
		contract.MethodOperation("prompts/list"):             list(`{"prompts":[{"name":"p"}]}`),
		contract.MethodOperation("resources/read"):           fail,
		contract.MethodOperation("prompts/get"):              fail,
		contract.MethodOperation("completion/complete"):      fail,
	})
	server.Catalog().Refresh(t.Context())
	requests := map[string]string{
		"tools/call":          `"name":"fail","arguments":{}`,
		"prompts/get":         `"name":"p"`,
		"resources/read":      `"uri":"x:1"`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}`,
	}
	pipes := map[string]*pipe{}
	for _, version := range bothRevisions {
		pipes[version] = speak(t, server, version)
	}
	for _, code := range []int{-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32003, -32004, -32005, -32020, -32021, -32022, -32042, 0, 1, 503} {
		for _, rest := range []string{`"message":"boom","data":{"x":1.0,"n":9007199254740993}`, `"message":"","data":null`, `"message":"method not found"`} {
			e := fmt.Sprintf(`{"code":%d,%s}`, code, rest)
			says.Store(e)
			for method, params := range requests {
				for version, p := range pipes {
					require.Contains(t, p.raw(version, method, params), `"error":`+e, "%s over stdio at %s", method, version)
					w := request(t, server, version, method, params)
					require.Equal(t, statusOf(version, code), w.Code)
					require.Contains(t, w.Body.String(), `"error":`+e, "%s over HTTP at %s", method, version)
				}
			}
		}
	}

	says.Store(`{"code":-32601,"message":"boom"}`)
	w := deliver(t, server, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+requests["tools/call"]+`}}]`)
	require.Contains(t, w.Body.String(), `"error":{"code":-32601,"message":"boom"}`, "in a batch")

	// What is not there has the code of the client's revision.
	for said, want := range map[string]map[string]string{
		`{"code":-32002,"message":"gone","data":{"x":1.0}}`: {
			"2025-11-25": `{"code":-32002,"message":"gone","data":{"x":1.0}}`, "2026-07-28": `{"code":-32602,"message":"gone","data":{"x":1.0}}`},
		`{"code":-32602,"message":"gone","data":{"uri":"x:1","y":1.0}}`: {
			"2025-11-25": `{"code":-32002,"message":"gone","data":{"uri":"x:1","y":1.0}}`, "2026-07-28": `{"code":-32602,"message":"gone","data":{"uri":"x:1","y":1.0}}`},
	} {
		says.Store(said)
		for version, p := range pipes {
			require.Contains(t, p.raw(version, "resources/read", requests["resources/read"]), `"error":`+want[version], version)
		}
	}

	// A method that nobody has keeps the status that the revision gives it.
	w = request(t, server, "2026-07-28", "resources/subscribe", `"uri":"x:1"`)
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), `"code":-32601`)
}

// statusOf is the HTTP status that a revision has for an error's code. An unknown
// method of a service is none of the server's.
func statusOf(version string, code int) int {
	if version == "2026-07-28" && (code == -32602 || code == -32021 || code == -32022) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// request sends one request over HTTP, at a revision.
func request(t *testing.T, server *mcpserver.Server, version, method, params string) *httptest.ResponseRecorder {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
	if version == "2026-07-28" {
		body = modern(1, method, params)
	}
	var named struct{ Name, URI string }
	require.NoError(t, json.Unmarshal([]byte("{"+params+"}"), &named))
	return send(t, server, version, method, named.Name+named.URI, body)
}

func send(t *testing.T, server *mcpserver.Server, version, method, name, body string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
	req.Host = "localhost"
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", version)
	req.Header.Set("Mcp-Method", method)
	req.Header.Set("Mcp-Name", name)
	w := httptest.NewRecorder()
	server.Handler().ServeHTTP(w, req)
	return w
}
