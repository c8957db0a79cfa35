package connector_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

type nothing struct {
	N int `json:"n"`
}

// TestNilResults: nothing from a tool that declares what it returns is null, where
// the revision has a place for it.
func TestNilResults(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	name := harness.Unique("nil")
	temporal.CreateEndpoint(t, name, name)
	s := mcptool.NewService(name)
	tool := mcptool.Tool{Description: "Returns nil.", Annotations: mcptool.Annotations{ReadOnlyHint: true}}
	mcptool.Add(s, nexus.NewSyncOperation("pointer", func(context.Context, nexus.NoValue, nexus.StartOperationOptions) (*nothing, error) {
		return nil, nil
	}), tool)
	mcptool.Add(s, nexus.NewSyncOperation("map", func(context.Context, nexus.NoValue, nexus.StartOperationOptions) (map[string]int, error) {
		return nil, nil
	}), tool)
	mcptool.Add(s, mcptool.NewActivityOperation("activity", func(context.Context, nexus.NoValue) (*nothing, error) { return nil, nil },
		mcptool.ActivityOptions{}), tool)
	w := worker.New(temporal.Client(t), name, worker.Options{})
	require.NoError(t, s.Register(w))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	http := temporal.StartHTTP(t, "--service", name)
	for _, revision := range harness.Revisions {
		p := http.Speak(revision)
		for _, tool := range []string{"pointer", "map", "activity"} {
			r := p.Tool(t, tool, `{}`)
			require.False(t, r.IsError, "%s", r.Raw)
			require.Empty(t, r.Content)
			_, members := p.ListTools(t).Find(t, tool)
			if !p.Modern() {
				require.Empty(t, r.Structured)
				require.NotContains(t, members, "outputSchema", "it would promise structured content")
				continue
			}
			require.Equal(t, "null", string(r.Structured))
			var schema jsonschema.Schema
			require.NoError(t, json.Unmarshal(members["outputSchema"], &schema))
			resolved, err := schema.Resolve(nil)
			require.NoError(t, err)
			require.NoError(t, resolved.Validate(nil), "%s", members["outputSchema"])
		}
	}
}
