package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
)

// A JSON-RPC error has the HTTP status that it is due for as long as no headers
// are out; after that it is an event.
func TestStatusOfAnError(t *testing.T) {
	t.Parallel()

	const e = `{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`
	server, temporal := start(t, mcpserver.Options{KeepAliveInterval: time.Minute, DisableTasks: true})
	late := serve(t, temporal, mcpserver.Options{KeepAliveInterval: time.Millisecond, DisableTasks: true})
	goOn := make(chan struct{}, 1)
	temporal.Handle("tools", "echo", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		<-goOn
		refusal, err := contract.DecodeProtocolError(json.RawMessage(e))
		if err != nil {
			return nil, err
		}
		return nil, resultmap.ApplicationError(resultmap.ProtocolError(refusal))
	})
	url := func(s *mcpserver.Server) string {
		web := httptest.NewServer(s.Handler())
		t.Cleanup(web.Close)
		return web.URL
	}

	goOn <- struct{}{}
	resp := post(t.Context(), t, url(server), "echo")
	body, err := io.ReadAll(resp.body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.status, "%s", body)
	require.Equal(t, "application/json", resp.header.Get("Content-Type"))
	require.Contains(t, string(body), `"error":`+e)
	require.True(t, json.Valid(body), "%s", body)

	resp = post(t.Context(), t, url(late), "echo") // returns when the headers are there
	goOn <- struct{}{}
	body, err = io.ReadAll(resp.body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.status, "%s", body)
	require.Equal(t, "text/event-stream", resp.header.Get("Content-Type"))
	require.Regexp(t, `(?s)event: message\ndata: \{[^\n]*"error":\{"code":-32021,[^\n]*\}\n\n(: keep-alive\n\n)*$`, string(body))

	goOn <- struct{}{}
	w := send(t, server, "2026-07-28", "tools/call", "echo",
		strings.Replace(modern(1, "tools/call", `"name":"echo"`), `"_meta":{`, `"_meta":{"progressToken":7,`, 1))
	require.Equal(t, http.StatusOK, w.Code)
	require.Regexp(t, `(?s)notifications/progress.*\n\nevent: message\ndata: \{[^\n]*"error":\{"code":-32021,[^\n]*\}\n\n$`, w.Body.String())
}
