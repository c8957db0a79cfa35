package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestKeyOfACall: the upstream gets one key for a call, the same over all attempts,
// that of the client where it gave one.
func TestKeyOfACall(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t))
	keys := func(key string) (list []string) {
		for _, e := range p.upstream.Entries(t, upstream.EventRequest) {
			if e.Tool == "" || !strings.Contains(string(e.Params), key) {
				continue
			}
			var params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
			require.NoError(t, json.Unmarshal(e.Params, &params))
			list = append(list, string(params.Meta["io.temporal/idempotencyKey"]))
		}
		return list
	}
	require.False(t, p.run(t, upstream.ToolRead, upstream.Script{Key: "again", After: "cut", Times: 2}).IsError)
	made := keys("again")
	require.Len(t, made, 3)
	require.NotEmpty(t, made[0])
	require.Equal(t, []string{made[0], made[0], made[0]}, made)
	p.run(t, upstream.ToolRead, upstream.Script{Key: "other"})
	require.NotEqual(t, made[0], keys("other")[0])

	// With a key of the client's, one execution for two calls.
	script := upstream.Script{Key: "named"}.JSON()
	for range 2 {
		r := p.Tool(t, upstream.ToolPlain, script, `"io.temporal/idempotencyKey":"order 66"`)
		require.Equal(t, "done named", r.Text(t))
	}
	require.Len(t, keys("named"), 1)
	require.Equal(t, 1, p.upstream.Runs(t, "named"))
}

// TestHeadersOfRequests: what the file gives goes with every request, and nothing of
// the connector's client does.
func TestHeadersOfRequests(t *testing.T) {
	t.Parallel()

	for _, protocol := range []string{legacy, "2026-07-28"} {
		u := harness.StartUpstream(t, "--protocols", protocol)
		service := harness.Unique("up")
		harness.Shared(t).StartProxy(t, map[string]harness.ProxyServer{service: u.Server(quick, harness.ProxyServer{
			"headers": map[string]string{"X-Api-Key": "from the file"}, "session_idle_timeout": "1s",
		})})
		h := harness.Shared(t).StartHTTP(t, "--service", service)
		p := path{Peer: h.Speak(harness.Revision2026), service: service, upstream: u}
		p.Headers = map[string]string{"Authorization": "Bearer of the client", "Cookie": "the client's", "X-Other": "the client's"}
		awaitTools(t, p.Peer)
		p.works(t)
		if protocol == legacy { // a session that nobody uses is ended
			harness.Until(t, func() bool { return len(u.Entries(t, upstream.EventDelete)) > 0 })
		}
		for _, e := range append(u.Entries(t, upstream.EventRequest), u.Entries(t, upstream.EventDelete)...) {
			require.Equal(t, []string{"from the file"}, e.Headers["X-Api-Key"], "%s %s", e.Event, e.Method)
			require.NotContains(t, fmt.Sprint(e.Headers), "the client")
		}
		u.NoViolation(t)
	}
}

// TestParameterInAHeader: x-mcp-header is kept, also for what no header can hold.
func TestParameterInAHeader(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t))
	for _, region := range []string{"eu", "", " padded ", "ünï", "=?base64?eA==?=", "two\nlines"} {
		args, err := json.Marshal(map[string]string{"region": region})
		require.NoError(t, err)
		r := p.Tool(t, "mirror", string(args))
		require.False(t, r.IsError, "%q: %s", region, r.Raw)
	}
	require.NotContains(t, string(p.Tool(t, "mirror", `{}`).Structured), "Mcp-Param")
	p.upstream.NoViolation(t)
}

// TestClientCredentials: a token is fetched once, kept, and fetched anew when it is
// no longer good.
func TestClientCredentials(t *testing.T) {
	t.Parallel()

	for _, protocol := range []string{legacy, "2026-07-28"} {
		u := harness.StartUpstream(t, "--client-secret", "open sesame", "--protocols", protocol)
		started := time.Now()
		p := through(t, u, harness.ProxyServer{"auth": map[string]any{"client_id": "me", "client_secret": "open sesame"}})
		p.works(t)
		p.works(t)
		lives := int(time.Since(started) / (upstream.TokenLife / 2)) // a token is replaced before its end
		require.LessOrEqual(t, len(u.Entries(t, upstream.EventToken)), 2+lives, "it is kept")
		began, calls := time.Now(), 0
		harness.Until(t, func() bool {
			p.works(t)
			calls++
			return time.Since(began) > 2*upstream.TokenLife
		})
		tokens := len(u.Entries(t, upstream.EventToken))
		t.Logf("%d tokens for %d calls in %v", tokens, calls+2, time.Since(began))
		require.Greater(t, tokens, 1)
		require.Less(t, tokens, 12)
	}
	wrong := harness.StartUpstream(t, "--client-secret", "open sesame")
	out := harness.RunProxy(t, "", nil, "check", "--config", harness.WriteProxyConfig(t, map[string]harness.ProxyServer{
		"up": wrong.Server(harness.ProxyServer{"auth": map[string]any{"client_id": "me", "client_secret": "closed sesame"}}),
	}))
	require.Equal(t, 1, out.Code)
	require.NotContains(t, out.Stdout+out.Stderr, "closed sesame")
	t.Log(out.Stdout, out.Stderr)
}

// TestRequestForInput: a tool that asks back reaches a client that can answer.
func TestRequestForInput(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t))
	able := peer(t, harness.Revision2026, p.service)
	able.Capabilities = `{"elicitation":{"form":{}}}`
	awaitTools(t, able)
	asked := able.Call(t, "tools/call", harness.ToolParams("ask", `{}`))
	t.Logf("%s", asked.Raw)
	var request struct {
		ResultType    string
		RequestState  string
		InputRequests map[string]struct{ Method string }
	}
	asked.Decode(t, &request)
	require.Equal(t, "input_required", request.ResultType)
	require.Equal(t, "elicitation/create", request.InputRequests["name"].Method)
	params := `{"name":"ask","arguments":{},"requestState":` + quoted(request.RequestState) + `,"inputResponses":{"name":{"action":"accept","content":{"name":"Ann","n":1.0}}}}`
	r := able.Call(t, "tools/call", params).ToolResult(t)
	harness.RequireExact(t, `{"inputResponses":{"name":{"action":"accept","content":{"name":"Ann","n":1.0}}},"requestState":`+quoted(request.RequestState)+`}`, string(r.Structured))

	unable := p.Call(t, "tools/call", harness.ToolParams("ask", `{}`))
	t.Logf("%s", unable.Raw)
	require.NotContains(t, string(unable.Raw), `"input_required"`)
	p.works(t)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
