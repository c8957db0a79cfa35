package connector_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// TestLongSilentCallStaysAlive: the headers come at once, and comments while
// there is nothing to say.
func TestLongSilentCallStaysAlive(t *testing.T) {
	t.Parallel()

	server := httpServer(t)
	for _, revision := range harness.Revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			call := server.Speak(revision).StartTool(t, "slow", `{"seconds":18,"value":"done"}`)
			require.Less(t, time.Since(began), 5*time.Second, "the headers wait for the result")
			require.Equal(t, 200, call.Exchange.Status)
			require.Equal(t, "text/event-stream", call.Exchange.Header.Get("Content-Type"))
			require.Equal(t, "no", call.Exchange.Header.Get("X-Accel-Buffering"))
			require.Contains(t, call.Exchange.Header.Get("Cache-Control"), "no-cache")
			require.Equal(t, "done", call.Answer(t).ToolResult(t).Text(t))
			require.Equal(t, 1, call.Exchange.Comments(), "%s", call.Exchange.Body())
			call.AwaitEnd(t)
			require.Len(t, call.All(), 1)
		})
	}
}

// request sends any request and returns status, headers and body.
func request(t *testing.T, method, url, body string, headers map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for k, v := range headers {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(data)
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()

	server := httpServer(t)
	open := httpServer(t, "--allow-host", "tools.example.com", "--allow-host", "other.example.com:8443", "--allow-origin", "https://app.example.com")
	for _, c := range []struct {
		server *harness.HTTP
		name   string
		value  string
		status int
	}{
		{server, "Host", "127.0.0.1", 200},
		{server, "Host", "localhost:1234", 200},
		{server, "Host", "[::1]:80", 200},
		{server, "Host", "evil.example.com", 403},
		{server, "Host", "localhost.evil.example.com", 403},
		{server, "Host", "127.0.0.1.evil.example.com:80", 403},
		{server, "Origin", "http://localhost:3000", 200},
		{server, "Origin", "https://evil.example.com", 403},
		{server, "Origin", "https://app.example.com", 403},
		{server, "Origin", "null", 403},
		{server, "Origin", "file://localhost", 403},
		{open, "Host", "tools.example.com", 200},
		{open, "Host", "TOOLS.example.com:443", 200},
		{open, "Host", "other.example.com:8443", 200},
		{open, "Host", "other.example.com", 403},
		{open, "Host", "evil.example.com", 403},
		{open, "Origin", "https://app.example.com", 200},
		{open, "Origin", "http://app.example.com", 403},
		{open, "Origin", "https://app.example.com.evil.com", 403},
	} {
		e := c.server.Post(t, ping, map[string]string{c.name: c.value})
		e.AwaitEnd(t)
		require.Equal(t, c.status, e.Status, "%s: %s: %s", c.name, c.value, e.Body())
		if c.status == 200 {
			require.Contains(t, e.Body(), `"result":{`)
			if c.name == "Origin" {
				require.Equal(t, c.value, e.Header.Get("Access-Control-Allow-Origin"))
			}
		} else {
			require.Empty(t, e.Header.Get("Access-Control-Allow-Origin"))
		}
	}

	preflight := map[string]string{"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-method, mcp-param-x"}
	status, header, _ := request(t, http.MethodOptions, open.URL, "", preflight)
	require.Equal(t, 204, status)
	require.Equal(t, "https://app.example.com", header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, header.Get("Access-Control-Allow-Headers"), "mcp-param-x")
	status, _, _ = request(t, http.MethodOptions, server.URL, "", preflight)
	require.Equal(t, 403, status)
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()

	server := httpServer(t)
	post := func(body string, headers map[string]string) (int, string) {
		e := server.Post(t, body, headers)
		e.AwaitEnd(t)
		return e.Status, e.Body()
	}
	fits := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 4<<20-200) + `"}}`
	status, body := post(fits, nil)
	require.Equal(t, 200, status, "%.300s", body)
	status, body = post(strings.Replace(fits, "x", strings.Repeat("x", 400), 1), nil)
	require.Equal(t, 413, status, "%.300s", body)
	require.Contains(t, body, "4194304")

	status, _ = post(`{garbage`, nil)
	require.Equal(t, 400, status)
	status, _ = post(`[`+ping+`]`, map[string]string{"MCP-Protocol-Version": harness.Revision2025November})
	require.Equal(t, 400, status, "batches are gone")
	status, _ = post(ping, map[string]string{"Content-Type": "text/plain"})
	require.Equal(t, 415, status)
	status, _ = post(ping, map[string]string{"Accept": "text/html"})
	require.Equal(t, 400, status)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		status, _, _ := request(t, method, server.URL, "", map[string]string{"Accept": "text/event-stream"})
		require.Equal(t, 405, status, method)
	}
	status, _, _ = request(t, http.MethodGet, server.Base+"/nothing", "", nil)
	require.Equal(t, 404, status)
	e := (&harness.HTTP{URL: server.Base + "/"}).Post(t, ping, nil)
	e.AwaitEnd(t)
	require.Equal(t, 200, e.Status, "MCP is at / too")

	p := server.Speak(harness.Revision2026)
	for name, value := range map[string]string{"Mcp-Method": "tools/list", "Mcp-Name": "other", "MCP-Protocol-Version": harness.Revision2025November} {
		p.Headers = map[string]string{name: value}
		call := p.StartTool(t, "echo", `{}`)
		call.AwaitEnd(t)
		require.Equal(t, 400, call.Exchange.Status, "%s: %s", name, call.Exchange.Body())
		require.Equal(t, -32020, call.Answer(t).Error.Code, "%s: %s", name, call.Exchange.Body())
	}
	p.Headers = map[string]string{"MCP-Protocol-Version": "2099-01-01"}
	p.Revision = "2099-01-01"
	call := p.StartTool(t, "echo", `{}`)
	require.Equal(t, 400, call.Exchange.Status)
	require.Equal(t, -32022, call.Answer(t).Error.Code)
}

// TestHealth: the process is healthy without Temporal, and ready once a service
// has answered.
func TestHealth(t *testing.T) {
	t.Parallel()

	get := func(server *harness.HTTP, path string) (int, string) {
		status, _, body := request(t, http.MethodGet, server.Base+path, "", nil)
		return status, body
	}
	server := httpServer(t)
	harness.Until(t, func() bool { status, _ := get(server, "/readyz"); return status == 200 })

	away := &harness.Temporal{Address: "127.0.0.1:1"}
	lost := away.StartHTTP(t, "--service", "any")
	status, _ := get(lost, "/healthz")
	require.Equal(t, 200, status)
	status, body := get(lost, "/readyz")
	require.Equal(t, 503, status)
	require.Contains(t, body, "temporal does not answer")
	require.NotContains(t, body, "127.0.0.1:1", "addresses are for logs")

	idle := harness.Shared(t).StartHTTP(t, "--service", "absent=no-such-endpoint")
	status, body = get(idle, "/readyz")
	require.Equal(t, 503, status)
	require.Contains(t, body, "no service has answered")
}

// TestWithoutTemporal: the connector serves what it can, and says why it is so
// little.
func TestWithoutTemporal(t *testing.T) {
	t.Parallel()

	away := &harness.Temporal{Address: "127.0.0.1:1"}
	p := away.StartStdio(t, "--service", "any", "--discovery-timeout", "1s").Speak(t, harness.Revision2025November)
	began := time.Now()
	list := p.ListTools(t)
	require.Less(t, time.Since(began), 10*time.Second)
	require.Equal(t, []string{"cancel_operation", "get_operation_result", "list_operations"}, list.Names(t))
	harness.Until(t, func() bool {
		return strings.Contains(string(p.ListTools(t).Meta["io.temporal/warnings"]), "Temporal does not answer")
	})
	r := p.Tool(t, "list_operations", `{}`)
	require.True(t, r.IsError)
	require.Contains(t, r.Text(t), "Temporal does not answer")
}
