package mcpproxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// logLines is a log to look at.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// about returns the lines with a text.
func (l *logLines) about(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// An answer that is of no use is one all the same: no tool runs again for it.
func TestAnAnswerThatCannotBeReadEndsTheCall(t *testing.T) {
	t.Parallel()

	const limit = 100_000
	var answer atomic.Value
	var calls atomic.Int32
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		result := ""
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"once","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
		case "tools/call":
			calls.Add(1)
			result = answer.Load().(string)
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case result == "":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		w.Header().Set("Content-Length", strconv.Itoa(len(out)))
		_, _ = io.WriteString(w, out)
	}))
	t.Cleanup(upstream.Close)
	log := &logLines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	p := newProxy(t, "fake", mcpproxy.HTTP(upstream.URL, mcpproxy.HTTPOptions{}), mcpproxy.Options{MaxMessageBytes: limit, Logger: logger})
	temporal(t)
	sdk, err := client.Dial(client.Options{
		HostPort: server.FrontendHostPort(), Logger: sdklog.NewStructuredLogger(logger), Plugins: []client.Plugin{p},
	})
	require.NoError(t, err)
	t.Cleanup(sdk.Close)
	endpoint := newEndpoint(t)
	w := worker.New(sdk, endpoint, worker.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	c := caller{t: t, endpoint: endpoint, service: "fake"}
	for tool, code := range map[string]contract.Code{"once": contract.CodeOutcomeUnknown, "read": contract.CodeFailed} {
		calls.Store(0)
		answer.Store(`{"content":[{"type":"text","text":"` + strings.Repeat("x", limit) + `"}]}`)
		f := c.fails(tool, `{}`)
		require.Equal(t, contract.CodePayloadTooLarge, f.Code, "%v", f)
		require.Contains(t, f.Message, "has 1000")
		require.Contains(t, f.Message, "limit of a message is 100000 bytes")
		require.EqualValues(t, 1, calls.Load())

		answer.Store(`{"content":[],"structuredContent":{"x":NaN,"y":"s3cret"}}`)
		f = c.fails(tool, `{}`)
		require.Equal(t, code, f.Code, "%v", f)
		require.Contains(t, f.Message, "not JSON")
		require.NotContains(t, f.Message, "s3cret")
		require.EqualValues(t, 2, calls.Load())

		answer.Store(`{"content":[{"type":"text","text":"s3cret"}],"isError":true}`)
		require.Equal(t, contract.CodeToolError, c.fails(tool, `{}`).Code)
	}
	require.Empty(t, log.about("s3cret"))
	require.Empty(t, log.about("level=ERROR"))
	require.Len(t, log.about("what=once"), 3, "one line for each")
	for _, line := range log.about("outcome=McpToolError") {
		require.Contains(t, line, "level=INFO")
		require.Regexp(t, `activity=\S{8,}`, line)
		require.Contains(t, line, "attempt=1")
	}
	require.Len(t, log.about("outcome=McpToolError"), 2)
}

func TestOtherNamesAreOneLineOfTheLog(t *testing.T) {
	t.Parallel()

	log := &logLines{}
	s := newServer(t, plainTool, `{"name":"a b","inputSchema":{"type":"object"}}`, `{"name":"c/d","inputSchema":{"type":"object"}}`)
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	release, err := p.Connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(release)
	require.Empty(t, log.about("level=WARN"))
	require.Len(t, log.about("under other names"), 1)
	require.Contains(t, log.about("c_d")[0], "a_b")
}
