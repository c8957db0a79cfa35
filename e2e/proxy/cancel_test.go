package proxy_test

import (
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestCancel: a client's cancellation reaches the upstream about at once, and the
// session serves the next call.
func TestCancel(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, w way, p path) {
		t.Helper()
		for _, stubborn := range []bool{false, true} {
			key := harness.Unique("cancel")
			call := p.start(t, upstream.ToolPlain, upstream.Script{Key: key, Wait: p.upstream.File("never"), Stubborn: stubborn})
			p.upstream.AwaitRun(t, key)
			asked := time.Now()
			p.Stdio.Notify(t, "notifications/cancelled", `{"requestId":`+call.ID+`,"reason":"changed my mind"}`)
			var heard time.Time
			session := ""
			harness.Until(t, func() bool {
				for _, e := range p.upstream.Entries(t, upstream.EventCancelled) {
					if e.Key == key {
						heard, session = e.At, e.Session
					}
				}
				return !heard.IsZero()
			})
			t.Logf("heard after %v", heard.Sub(asked).Round(time.Millisecond))
			require.Less(t, heard.Sub(asked), 5*time.Second)
			p.works(t)
			if !w.modern && !stubborn {
				runs := p.upstream.Entries(t, upstream.EventRun)
				require.Condition(t, func() bool {
					for _, e := range runs {
						if e.At.After(heard) && e.Session == session {
							return true
						}
					}
					return false
				}, "the session is gone")
			}
			require.Equal(t, 1, p.upstream.Runs(t, key))
		}
	})
}

// TestTimeoutOfACall: a call that takes too long ends with its deadline, and the
// upstream is told.
func TestTimeoutOfACall(t *testing.T) {
	t.Parallel()

	p := through(t, harness.PrepareUpstream(t, "--protocols", legacy), harness.ProxyServer{"tool_policies": map[string]any{
		upstream.ToolPlain: map[string]any{"start_to_close_timeout": "2s"},
		upstream.ToolPut:   map[string]any{"schedule_to_close_timeout": "4s"},
	}})
	for tool, most := range map[string]time.Duration{upstream.ToolPlain: 20 * time.Second, upstream.ToolPut: 20 * time.Second} {
		began := time.Now()
		r := p.run(t, tool, upstream.Script{Key: tool, Wait: p.upstream.File("never")})
		t.Logf("%s after %v: %s", tool, time.Since(began), r.Raw)
		require.True(t, r.IsError)
		require.Less(t, time.Since(began), most)
		if tool == upstream.ToolPlain {
			outcomeUnknown(t, r)
			require.Equal(t, 1, p.upstream.Runs(t, tool))
		}
	}
	harness.Until(t, func() bool {
		heard := map[string]bool{}
		for _, e := range p.upstream.Entries(t, upstream.EventCancelled) {
			heard[e.Key] = true
		}
		return len(heard) == 2
	})
	p.works(t)
}
