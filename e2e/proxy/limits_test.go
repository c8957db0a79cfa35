package proxy_test

import (
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestResultsOverTheLimit: a result that Temporal cannot hold, or that is over the
// limit of a message, is an answer with sizes. The tool is not run for it again.
func TestResultsOverTheLimit(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, _ way, p path) {
		t.Helper()
		for _, tool := range []string{upstream.ToolRead, upstream.ToolPlain} {
			key := harness.Unique(tool)
			r := p.run(t, tool, upstream.Script{Key: key, Bytes: 2_500_000})
			require.Equal(t, failure{Type: "McpPayloadTooLarge"}, failureOf(t, r))
			require.Regexp(t, `25\d\d\d\d\d`, r.Text(t))
			require.Equal(t, 1, p.upstream.Runs(t, key))

			key = harness.Unique(tool)
			require.Len(t, p.run(t, tool, upstream.Script{Key: key, Bytes: 1_900_000}).Text(t), 1_900_000)
			require.Equal(t, 1, p.upstream.Runs(t, key))
		}
		p.works(t)
	})
}

// TestMessageLimit: max_message_bytes holds for what comes, and a body without an
// end is not waited for.
func TestMessageLimit(t *testing.T) {
	t.Parallel()

	for _, http := range []bool{true, false} {
		u := harness.PrepareUpstream(t)
		if http {
			u = harness.StartUpstream(t)
		}
		p := through(t, u, harness.ProxyServer{"max_message_bytes": 300_000})
		for tool, repeat := range mayRepeat {
			key := harness.Unique(tool)
			r := p.run(t, tool, upstream.Script{Key: key, Bytes: 400_000})
			t.Logf("%s: %s", tool, r.Raw)
			require.True(t, r.IsError)
			require.Equal(t, 1, u.Runs(t, key), "%s, may repeat %t", tool, repeat)
			p.works(t)
		}
		require.Len(t, p.run(t, upstream.ToolPlain, upstream.Script{Key: "fits", Bytes: 250_000}).Text(t), 250_000)
		if http {
			u.Fault(t, upstream.Fault{Name: upstream.FaultEndless, Method: "tools/call", Times: 1})
			began := time.Now()
			r := p.run(t, upstream.ToolPlain, upstream.Script{Key: "endless"})
			t.Logf("endless, after %v: %s", time.Since(began), r.Raw)
			require.True(t, r.IsError)
			require.Equal(t, 1, u.Runs(t, "endless"))
			p.works(t)
		}
	}
}
