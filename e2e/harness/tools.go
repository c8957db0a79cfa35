package harness

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// ToolList is the result of tools/list.
type ToolList struct {
	Tools      []json.RawMessage          `json:"tools"`
	NextCursor string                     `json:"nextCursor"`
	TTL        *int                       `json:"ttlMs"`
	Scope      string                     `json:"cacheScope"`
	ResultType string                     `json:"resultType"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

// ListTools returns the first page of the tools.
func (p *Peer) ListTools(tb testing.TB) ToolList {
	tb.Helper()
	var list ToolList
	p.Call(tb, "tools/list", `{}`).Decode(tb, &list)
	return list
}

// Names are those of the tools, in their order.
func (l ToolList) Names(tb testing.TB) []string {
	tb.Helper()
	names := make([]string, len(l.Tools))
	for i := range l.Tools {
		var tool struct{ Name string }
		require.NoError(tb, json.Unmarshal(l.Tools[i], &tool))
		names[i] = tool.Name
	}
	return names
}

// Find returns a tool, and its members.
func (l ToolList) Find(tb testing.TB, name string) (raw json.RawMessage, members map[string]json.RawMessage) {
	tb.Helper()
	names := l.Names(tb)
	for i, n := range names {
		if n == name {
			require.NoError(tb, json.Unmarshal(l.Tools[i], &members))
			return l.Tools[i], members
		}
	}
	require.FailNow(tb, "there is no tool "+name, "%v", names)
	return nil, nil
}
