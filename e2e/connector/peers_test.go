package connector_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// eachPeer runs a test over both transports at every revision, with connectors
// to the shared tool service.
func eachPeer(t *testing.T, args []string, test func(t *testing.T, p *harness.Peer)) {
	t.Helper()
	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args = append([]string{"--service", kit.Name}, args...)
	http := temporal.StartHTTP(t, args...)
	for _, revision := range harness.Revisions {
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			test(t, http.Speak(revision))
		})
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			test(t, temporal.StartStdio(t, args...).Speak(t, revision))
		})
	}
}

// stdioPeer starts a connector to the shared tool service.
func stdioPeer(t *testing.T, revision string, args ...string) *harness.Peer {
	t.Helper()
	kit := harness.SharedService(t)
	return harness.Shared(t).StartStdio(t, append([]string{"--service", kit.Name}, args...)...).Speak(t, revision)
}

// httpServer starts a connector to the shared tool service.
func httpServer(t *testing.T, args ...string) *harness.HTTP {
	t.Helper()
	kit := harness.SharedService(t)
	return harness.Shared(t).StartHTTP(t, append([]string{"--service", kit.Name}, args...)...)
}

// tools is the result of tools/list.
type tools struct {
	Tools      []json.RawMessage          `json:"tools"`
	NextCursor string                     `json:"nextCursor"`
	TTL        *int                       `json:"ttlMs"`
	Scope      string                     `json:"cacheScope"`
	ResultType string                     `json:"resultType"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

func listTools(t *testing.T, p *harness.Peer) tools {
	t.Helper()
	var list tools
	p.Call(t, "tools/list", `{}`).Decode(t, &list)
	return list
}

func (l tools) names(t *testing.T) []string {
	t.Helper()
	names := make([]string, len(l.Tools))
	for i := range l.Tools {
		var tool struct{ Name string }
		require.NoError(t, json.Unmarshal(l.Tools[i], &tool))
		names[i] = tool.Name
	}
	return names
}

// find returns a tool as its members.
func (l tools) find(t *testing.T, name string) (raw json.RawMessage, members map[string]json.RawMessage) {
	t.Helper()
	for i, n := range l.names(t) {
		if n == name {
			require.NoError(t, json.Unmarshal(l.Tools[i], &members))
			return l.Tools[i], members
		}
	}
	require.FailNow(t, fmt.Sprintf("there is no tool %q", name), "%v", l.names(t))
	return nil, nil
}
