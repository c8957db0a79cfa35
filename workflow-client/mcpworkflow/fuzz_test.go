package mcpworkflow_test

import (
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
)

// FuzzSnapshot: a list of tools comes out of continue-as-new as it went in, whatever a
// Workflow, or somebody who starts one, hands to it.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		`{"services":[{"Name":"one","manifest":{"tools":[{"name":"a","inputSchema":{"type":"object","x":1.0}}]},"warnings":["w"]}]}`,
		`{"services":[{"Name":"one","Prefix":"p","manifest":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}},{"Name":"two","error":"away"}]}`,
		`{"services":[{"Name":"a","manifest":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}},{"Name":"b","manifest":{"tools":[{"name":"a","inputSchema":{"type":"object"}},7]}}]}`,
		`{"services":[{"Name":"a","manifest":null},{"manifest":{"tools":null,"_meta":{"io.temporal/contract":9}}}]}`, `{}`, `null`, `{"services":7}`, `{"services":[{"manifest":7}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first mcpworkflow.Snapshot
		if json.Unmarshal(data, &first) != nil {
			return
		}
		names := map[string]bool{}
		for i, e := range first.Entries {
			require.NoError(t, contract.CheckToolName(e.Name))
			require.False(t, names[e.Name])
			names[e.Name] = true
			if i > 0 {
				require.Greater(t, e.Name, first.Entries[i-1].Name)
			}
			found, ok := first.Find(e.Name)
			require.True(t, ok)
			require.Equal(t, e, found)
		}
		before := &first
		for range 2 { // from run to run
			carried, err := json.Marshal(before)
			require.NoError(t, err)
			var after mcpworkflow.Snapshot
			require.NoError(t, json.Unmarshal(carried, &after))
			require.Equal(t, before.Hash(), after.Hash())
			require.Equal(t, before.Instructions(), after.Instructions())
			require.Len(t, after.Services, len(before.Services))
			require.Equal(t, before.Warnings(), after.Warnings())
			before = &after
		}
	})
}
