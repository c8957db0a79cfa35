package proxy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// mayRepeat are the scripted tools, and what MCP says of repeating them.
var mayRepeat = map[string]bool{
	upstream.ToolPlain: false, upstream.ToolDestroy: false, upstream.ToolHarmless: false,
	upstream.ToolRead: true, upstream.ToolPut: true,
}

// TestAtMostOnce: a tool has its effect, and its answer is lost. One that may be
// repeated is; with another the outcome is unknown, and it has run once.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, w way, p path) {
		t.Helper()
		losses := []string{"cut"}
		if !w.http {
			losses = append(losses, "exit")
		}
		for _, loss := range losses {
			for tool, repeat := range mayRepeat {
				key := harness.Unique(tool + "-" + loss)
				r := p.run(t, tool, upstream.Script{Key: key, After: loss, Times: 1})
				if repeat {
					require.False(t, r.IsError, "%s", r.Raw)
					require.Equal(t, "done "+key, r.Text(t))
					require.Equal(t, 2, p.upstream.Runs(t, key), key)
				} else {
					outcomeUnknown(t, r)
					require.Equal(t, 1, p.upstream.Runs(t, key), key)
				}
			}
		}
	})
}

// TestPolicies: the operator's word is above the annotations'.
func TestPolicies(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t), harness.ProxyServer{
		"policy": map[string]any{"at_most_once": false, "retry": map[string]any{"initial_interval": "100ms"}},
		"tool_policies": map[string]any{
			upstream.ToolRead:    map[string]any{"at_most_once": true},
			upstream.ToolDestroy: map[string]any{"retry": map[string]any{"initial_interval": "100ms", "maximum_attempts": 2}},
		},
	})
	for tool, want := range map[string]struct{ losses, runs int }{
		upstream.ToolPlain:    {2, 3},  // the server's policy speaks for those that say nothing
		upstream.ToolHarmless: {1, -1}, // its annotations speak for themselves
		upstream.ToolPut:      {2, 3},
		upstream.ToolRead:     {1, -1},
		upstream.ToolDestroy:  {1, 2},
	} {
		r := p.run(t, tool, upstream.Script{Key: tool, After: "cut", Times: want.losses})
		if want.runs < 0 {
			outcomeUnknown(t, r)
			require.Equal(t, 1, p.upstream.Runs(t, tool), tool)
			continue
		}
		require.False(t, r.IsError, "%s: %s", tool, r.Raw)
		require.Equal(t, want.runs, p.upstream.Runs(t, tool), tool)
	}

	// An end to the attempts.
	r := p.run(t, upstream.ToolDestroy, upstream.Script{Key: "twice", After: "cut", Times: 9})
	require.True(t, r.IsError)
	t.Log(r.Text(t))
	require.Equal(t, 2, p.upstream.Runs(t, "twice"))
}

// TestNotSent: what was certainly not acted upon is tried again, whatever the tool.
func TestNotSent(t *testing.T) {
	t.Parallel()

	t.Run("the server comes up", func(t *testing.T) {
		t.Parallel()
		u := harness.StartUpstream(t)
		p := through(t, u)
		awaitTools(t, p.Peer)
		u.Kill()
		call := p.start(t, upstream.ToolPlain, upstream.Script{Key: "patient"})
		_, early := call.Find(time.Second, harness.IsAnswer(call.ID))
		require.False(t, early)
		u.Start(t)
		require.Equal(t, "done patient", call.Answer(t).ToolResult(t).Text(t))
		require.Equal(t, 1, u.Runs(t, "patient"))
	})
	t.Run("the server stays away", func(t *testing.T) {
		t.Parallel()
		p := through(t, harness.StartUpstream(t), harness.ProxyServer{"policy": map[string]any{
			"retry": map[string]any{"initial_interval": "100ms", "maximum_attempts": 3},
		}})
		p.works(t)
		p.upstream.Kill()
		began := time.Now()
		r := p.run(t, upstream.ToolPlain, upstream.Script{Key: "lost"})
		t.Logf("after %v: %s", time.Since(began), r.Text(t))
		require.True(t, r.IsError)
		require.NotEqual(t, "McpOutcomeUnknown", failureOf(t, r).Type)
		require.NotContains(t, r.Text(t), "127.0.0.1", "addresses are for logs")
		p.upstream.Start(t)
		p.works(t)
	})
	for _, refusal := range []upstream.Fault{
		{Name: upstream.FaultStatus, Status: 429, Headers: map[string]string{"Retry-After": "2"}, Times: 1},
		{Name: upstream.FaultStatus, Status: 401, Times: 1},
		{Name: upstream.FaultStatus, Status: 403, Times: 1},
		{Name: upstream.FaultStatus, Status: 503, Headers: map[string]string{"Retry-After": "1"}, Times: 1},
		{Name: upstream.FaultStatus, Status: 500, Times: 1},
		{Name: upstream.FaultStatus, Status: 307, Headers: map[string]string{"Location": "http://127.0.0.1:1/"}, Times: 1},
	} {
		t.Run(httpStatus(refusal.Status), func(t *testing.T) {
			t.Parallel()
			p := through(t, harness.StartUpstream(t))
			p.works(t)
			refusal.Method, refusal.Text = "tools/call", "an answer that is no JSON-RPC"
			for tool, repeat := range mayRepeat {
				p.upstream.Fault(t, refusal)
				began := time.Now()
				key := harness.Unique(tool)
				r := p.run(t, tool, upstream.Script{Key: key})
				p.upstream.Fault(t)
				t.Logf("%s, after %v: %s", tool, time.Since(began).Round(time.Millisecond), r.Raw)
				require.NotContains(t, string(r.Raw), refusal.Text, "bodies are for logs")
				switch refusal.Status {
				case 429: // it refuses, and says when
					require.False(t, r.IsError, "%s", r.Raw)
					require.Greater(t, time.Since(began), 1900*time.Millisecond)
					require.Equal(t, 1, p.upstream.Runs(t, key))
				case 401, 403, 307:
					require.True(t, r.IsError)
					require.NotEqual(t, "McpOutcomeUnknown", failureOf(t, r).Type, "it refused")
				default: // it may have run
					require.Equal(t, !repeat, r.IsError, "%s", r.Raw)
					if !repeat {
						outcomeUnknown(t, r)
					}
				}
			}
			p.works(t)
		})
	}
}

func httpStatus(code int) string { return fmt.Sprint("status ", code) }
