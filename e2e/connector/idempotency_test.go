package connector_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

func key(k string) string { return fmt.Sprintf(`"io.temporal/idempotencyKey":%q`, k) }

// TestOneKeyIsOneCall: together, one after the other, and from another process
// with the same caller, two calls with one key are one execution and one result.
func TestOneKeyIsOneCall(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args := []string{"--service", kit.Name, "--caller", harness.Unique("keys")}
	server := httpServer(t)
	for name, peers := range map[string][]*harness.Peer{
		"stdio": {
			temporal.StartStdio(t, args...).Speak(t, harness.Revision2025June),
			temporal.StartStdio(t, args...).Speak(t, harness.Revision2026),
		},
		"http": {server.Speak(harness.Revision2025November), server.Speak(harness.Revision2026), httpServer(t).Speak(harness.Revision2026)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, k := harness.Unique("line"), harness.Unique("key")
			call := `{"seconds":1,"line":"` + line + `","value":{"n":1.0}}`
			var together []*harness.Pending
			for range 3 {
				for _, p := range peers {
					together = append(together, p.StartTool(t, "slow", call, key(k)))
				}
			}
			for _, c := range together {
				require.Equal(t, `{"n":1.0}`, string(c.Answer(t).ToolResult(t).Structured))
			}
			require.Equal(t, 1, kit.Effects(t, line))
			for _, p := range peers { // long closed
				spaced := `{ "seconds": 1, "line": "` + line + `", "value": {"n":1.0}}`
				require.Equal(t, `{"n":1.0}`, string(p.Tool(t, "slow", spaced, key(k)).Structured))
			}
			require.Equal(t, 1, kit.Effects(t, line))

			p := peers[0]
			p.Tool(t, "slow", call, key(k+"-other"))
			require.Equal(t, 2, kit.Effects(t, line), "another key is another call")
			p.Tool(t, "slow", call)
			p.Tool(t, "slow", call)
			require.Equal(t, 4, kit.Effects(t, line), "a call without a key never attaches")
			p.Tool(t, "note", call, key(k))
			require.Equal(t, 5, kit.Effects(t, line), "a key belongs to its tool")

			other := strings.Replace(call, `1.0`, `1`, 1)
			r := p.Tool(t, "slow", other, key(k))
			require.True(t, r.IsError, "%s", r.Raw)
			require.Contains(t, r.Text(t), "with other arguments")
			require.Contains(t, r.Text(t), k)
			require.Equal(t, "invalid", failureOf(t, r).Type)
			require.Equal(t, 5, kit.Effects(t, line))
		})
	}
}

// TestKeysBelongToTheirCaller: nobody reaches another's call by guessing its key.
func TestKeysBelongToTheirCaller(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	line, k := harness.Unique("line"), harness.Unique("key")
	call := `{"line":"` + line + `"}`
	server := httpServer(t)
	for i, p := range []*harness.Peer{
		stdioPeer(t, harness.Revision2026), stdioPeer(t, harness.Revision2026), server.Speak(harness.Revision2026),
	} {
		p.Tool(t, "note", call, key(k))
		require.Equal(t, i+1, kit.Effects(t, line))
	}
}

// TestKeyAfterKill: the client's key finds the call that a killed connector
// started, without its ID.
func TestKeyAfterKill(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	line, k := harness.Unique("line"), harness.Unique("key")
	call := `{"seconds":3,"line":"` + line + `","value":"done"}`
	args := []string{"--service", kit.Name, "--caller", harness.Unique("killed")}
	first := temporal.StartStdio(t, args...).Speak(t, harness.Revision2026)
	first.StartTool(t, "slow", call, key(k))
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	first.Stdio.Kill()
	second := temporal.StartStdio(t, args...).Speak(t, harness.Revision2026)
	require.Equal(t, "done", second.Tool(t, "slow", call, key(k)).Text(t))
	require.Equal(t, 1, kit.Effects(t, line))
}

func TestBadKeys(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		line := harness.Unique("line")
		for _, bad := range []string{`""`, `7`, `null`, `["k"]`, `"a\nb"`, `"` + strings.Repeat("k", 2000) + `"`} {
			e := p.ToolError(t, "note", `{"line":"`+line+`"}`, `"io.temporal/idempotencyKey":`+bad)
			require.Equal(t, -32602, e.Code, bad)
			require.Contains(t, e.Message, "io.temporal/idempotencyKey")
		}
		require.Zero(t, kit.Effects(t, line))
	})
}

// TestHeadersThatTravel: the trace, the caller's hash and the key reach the
// handler, and nothing else of what a client sends.
func TestHeadersThatTravel(t *testing.T) {
	t.Parallel()

	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		headers := func(meta ...string) map[string]string {
			var h map[string]string
			require.NoError(t, json.Unmarshal(p.Tool(t, "headers", `{}`, meta...).Structured, &h))
			return h
		}
		plain := headers()
		caller := plain["mcp-caller"]
		if p.HTTP == nil {
			require.Regexp(t, `^[0-9a-f]{16}$`, caller)
		} else {
			require.NotContains(t, plain, "mcp-caller", "nobody is known to call")
		}

		p.Headers = map[string]string{
			"Authorization": "Bearer planted-secret", "Cookie": "planted-secret", "X-Custom": "planted-secret",
			"Nexus-Request-Id": "planted-secret", "Mcp-Caller": "planted-secret", "Mcp-Idempotency-Key": "planted-secret",
			"Content-Encoding-X": "planted-secret", "Operation-Timeout": "1s", "Request-Timeout": "1s",
		}
		k := harness.Unique("key")
		full := headers(`"traceparent":"`+trace+`"`, `"tracestate":"a=1"`, `"baggage":"b=2,c=é"`, key(k),
			`"com.example/secret":"planted-secret"`, `"mcp-caller":"planted-secret"`, `"authorization":"planted-secret"`)
		want := maps.Clone(plain)
		want["traceparent"], want["tracestate"], want["baggage"], want["mcp-idempotency-key"] = trace, "a=1", "b=2,c=é", k
		for _, own := range []map[string]string{want, full} { // Temporal's, and not the same each time
			for name := range own {
				require.NotContains(t, own[name], "planted-secret", name)
				switch strings.ToLower(name) {
				case "nexus-link", "nexus-request-id", "request-timeout":
					delete(own, name)
				}
			}
		}
		require.Equal(t, want, full, "without: %v", slices.Sorted(maps.Keys(plain)))

		broken := headers(`"traceparent":"a\nb"`, `"tracestate":"`+strings.Repeat("x", 9000)+`"`, `"baggage":"kept=1"`)
		require.NotContains(t, broken, "traceparent", "no call fails for its trace")
		require.NotContains(t, broken, "tracestate")
		require.Equal(t, "kept=1", broken["baggage"])

		if p.HTTP != nil {
			p.Headers = map[string]string{"Traceparent": trace, "Tracestate": "h=1", "Baggage": "h=2"}
			byHeader := headers(`"tracestate":"meta=1"`)
			require.Equal(t, trace, byHeader["traceparent"])
			require.Equal(t, "meta=1", byHeader["tracestate"], "the request's own _meta is nearer")
			require.Equal(t, "h=2", byHeader["baggage"])
		}
	})
}
