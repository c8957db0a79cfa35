package mcpserver

// Internal tests of what takes bytes from strangers, see frame_test.go for those of
// stdio.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
)

// nowhere is a server whose Temporal is away.
func nowhere(f *testing.F) *Server {
	f.Helper()
	discard := slog.New(slog.DiscardHandler)
	temporal, err := client.NewLazyClient(client.Options{
		HostPort: "127.0.0.1:1", Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
		Logger: sdklog.NewStructuredLogger(discard),
	})
	require.NoError(f, err)
	f.Cleanup(temporal.Close)
	const soon = 5 * time.Millisecond
	s, err := New(temporal, Options{
		Services: []catalog.Service{{Name: "tools"}}, Logger: discard, WaitBudget: soon, DiscoveryTimeout: soon, RefreshInterval: time.Hour,
	})
	require.NoError(f, err)
	return s
}

// FuzzHTTP: whatever is posted, under whatever revision, is answered soon, by one of
// the statuses of the transport, and every message in the answer is JSON.
func FuzzHTTP(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"tools/call","params":{"name":"get_operation_result","arguments":{"operation_id":"mcp-http-stateless-00000000000000000000000000000000","wait_seconds":1e400}}}`,
		`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"a","arguments":{"n":1e400},"_meta":{"progressToken":1.0,"io.temporal/idempotencyKey":""}}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"},7]`, `{} {}`, ``, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"f","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		for _, revision := range []string{"2025-03-26", "2025-06-18", "2026-07-28", ""} {
			f.Add([]byte(body), revision, "tools/call", "x")
		}
	}
	handler := nowhere(f).Handler()
	allowed := []int{200, 202, 400, 404, 413, 415, 503}
	f.Fuzz(func(t *testing.T, body []byte, revision, method, name string) {
		if bytes.Contains(body, []byte("subscriptions")) {
			return // it is answered for as long as the client listens
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {revision}, "Mcp-Method": {method}, "Mcp-Name": {name},
		}
		w := httptest.NewRecorder()
		began := time.Now()
		handler.ServeHTTP(w, r)
		require.Less(t, time.Since(began), 10*time.Second)
		require.Contains(t, allowed, w.Code, w.Body.String())
		answer := w.Body.Bytes()
		require.NotContains(t, string(answer), "127.0.0.1:1", "addresses are for logs")
		switch kind := w.Header().Get("Content-Type"); {
		case strings.HasPrefix(kind, "application/json"):
			require.True(t, json.Valid(answer), "%s", answer)
		case strings.HasPrefix(kind, "text/event-stream"):
			for line := range bytes.Lines(answer) {
				if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
					require.True(t, json.Valid(data), "%s", data)
				}
			}
		}
	})
}

// FuzzBody: the SDK gets a body that differs from the client's in what it could not
// carry only, and what it writes gets that back.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"a","params":{"n":1e400,"s":"1e400"}}`, `[{"id":1.0,"method":"a"},{"id":"\ud800","method":"b"}]`,
		`[{"id":1,"method":"a"},{"id":1,"method":"a"}]`, `{"id":{},"method":"a"}`, `{"method":"a","id":1,"id":2}`, `[[]]`, `{`, `1e400`, ` [ ] `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id, _, problem := checkBody(body)
		if problem != "" {
			require.True(t, json.Valid(rejection(id, -32600, problem)))
			return
		}
		encoded, batch := forSDK(body)
		require.True(t, json.Valid(encoded))
		var v any
		require.NoError(t, json.Unmarshal(encoded, &v), "the SDK cannot read it")
		before, after := messages(representable(body)), messages(encoded)
		require.Len(t, after, len(before))
		for i := range before {
			restored := decodeIDs(after[i])
			was, err := contract.ParseObject(before[i])
			if err != nil {
				require.Equal(t, contract.Digest(before[i]), contract.Digest(restored))
				continue
			}
			is, err := contract.ParseObject(restored)
			require.NoError(t, err)
			if batch != nil {
				_, raw := peek(messages(body)[i])
				require.Equal(t, string(raw), string(batch[i]))
				is.Set("params", unmarked(t, is.Get("params"), was.Get("params"), i))
				was.Set("params", was.Get("params"))
			}
			require.Equal(t, was.Len(), is.Len())
			for _, key := range was.Keys() {
				require.Equal(t, contract.Digest(was.Get(key)), contract.Digest(is.Get(key)))
			}
		}
	})
}

// unmarked takes the position out of the params of a message of a batch, and the
// _meta that was not there without it.
func unmarked(t *testing.T, params, was json.RawMessage, position int) json.RawMessage {
	t.Helper()
	p, err := contract.ParseObject(params)
	if err != nil {
		return params
	}
	meta, err := contract.ParseObject(p.Get("_meta"))
	if err != nil {
		return params
	}
	require.Equal(t, fmt.Sprintf("%q", fmt.Sprint(position)), string(meta.Get(positionMark)))
	meta.Delete(positionMark)
	p.Set("_meta", meta.JSON())
	if before, _ := contract.ParseObject(was); !before.Has("_meta") {
		p.Delete("_meta")
	}
	return p.JSON()
}

// FuzzServiceResult: what a service answers reaches the client as it is, or as an
// error that says why not; what reaches a client that can give no input asks for
// none.
func FuzzServiceResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[],"resultType":"complete"}`, `{"resultType":"task","task":{}}`, `{"resultType":"input_required","requestState":"s"}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create"}}}`,
		`{"resultType":1}`, `{"resultType":"input_required","inputRequests":{"a":7}}`, `{"content":[{"type":"text","text":"\ud800"}],"_meta":{"a":1.0}}`,
		`{"contents":[{"uri":"a:///1","text":"x"},{"uri":"a:///2"},7,{"uri":1}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		contents := servedContents(data, catalog.Target{URI: "a:///1"}, "nexus:s/a:///1")
		if json.Valid(data) {
			require.True(t, json.Valid(contents))
		}
		r, err := contract.DecodeResult(data)
		if err != nil {
			return
		}
		for _, takes := range []func(string) bool{nil, func(method string) bool { return method == "roots/list" }} {
			shown := presentable(r, takes)
			require.Equal(t, string(shown.JSON()), string(presentable(shown, takes).JSON()))
			o, err := contract.ParseObject(shown.JSON())
			require.NoError(t, err)
			require.Empty(t, resultProblem(o, takes))
			if takes == nil {
				require.NotContains(t, string(o.Get("resultType")), resultInputRequired)
			}
			if !bytes.Equal(shown.JSON(), data) {
				require.True(t, shown.IsError())
			}
			result := newResult(o, true)
			result.Meta = mcp.Meta{"key": 1}
			raw, err := json.Marshal(result)
			require.NoError(t, err)
			require.Contains(t, string(raw), `"resultType"`)
		}
	})
}

// asking is a client of 2026-07-28.
type asking struct{ clientRequest }

func (asking) ProtocolVersion() string     { return firstModern }
func (asking) GetExtra() *mcp.RequestExtra { return nil }

// FuzzCursor: whatever the cursor says, pages end, and no item comes twice.
func FuzzCursor(f *testing.F) {
	items := make([]catalog.Item, 2*pageSize+7)
	for i := range items {
		key := fmt.Sprintf("a:///%05d", i)
		items[i] = catalog.Item{Key: key, Raw: json.RawMessage(`{"uri":"` + key + `"}`)}
	}
	list := &itemList{member: "resources", key: "uri", items: func(*catalog.Snapshot) []catalog.Item { return items }}
	for _, seed := range []string{"", "a:///00000", "a:///00100", "zzz", "\xff"} {
		f.Add(base64.RawURLEncoding.EncodeToString([]byte(seed)))
		f.Add(seed)
	}
	s := nowhere(f)
	f.Fuzz(func(t *testing.T, cursor string) {
		last, pages := "", 0
		for next := contract.Quote(cursor); !contract.IsNull(next); pages++ {
			require.Less(t, pages, 4)
			var params contract.Object
			params.Set("cursor", next)
			result, err := s.listItems(list, &catalog.Snapshot{}, asking{}, params)
			if err != nil {
				require.Zero(t, pages, "the server refuses a cursor of its own: %v", err)
				return
			}
			raw, err := json.Marshal(result)
			require.NoError(t, err)
			var page struct {
				Resources  []struct{ URI string }
				NextCursor json.RawMessage
			}
			require.NoError(t, json.Unmarshal(raw, &page))
			require.LessOrEqual(t, len(page.Resources), pageSize)
			for _, item := range page.Resources {
				require.Greater(t, item.URI, last)
				last = item.URI
			}
			next = page.NextCursor
		}
	})
}
