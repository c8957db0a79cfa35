package connector_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

// startNexus serves operations in this process, and returns the service's name,
// which is also its endpoint's.
func startNexus(t *testing.T, operations ...nexus.RegisterableOperation) string {
	t.Helper()
	temporal := harness.Shared(t)
	name := harness.Unique("nexus")
	temporal.CreateEndpoint(t, name, name)
	w := worker.New(temporal.Client(t), name, worker.Options{})
	service := nexus.NewService(name)
	require.NoError(t, service.Register(operations...))
	w.RegisterNexusService(service)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return name
}

// TestBrokenManifests: whoever asks why a service's tools are missing learns
// whether nobody answers, or what is wrong with the answer.
func TestBrokenManifests(t *testing.T) {
	t.Parallel()

	list := func(f func() any) nexus.RegisterableOperation {
		return nexus.NewSyncOperation(contract.OperationListTools, func(context.Context, json.RawMessage, nexus.StartOperationOptions) (any, error) { return f(), nil })
	}
	temporal := harness.Shared(t)
	panics := startNexus(t, list(func() any { panic("no manifest today") }))
	fat := startNexus(t, list(func() any { return map[string]any{"tools": []any{}, "x": strings.Repeat("x", 5<<20)} }))
	odd := startNexus(t, list(func() any { return "tools" }))
	for service, says := range map[string]string{panics: "no manifest today", fat: "its log says why", odd: "a string, want an object"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			o := temporal.Run(t, "", "tools", "--service", service, "--discovery-timeout", "10s")
			require.Equal(t, 1, o.Code)
			require.Contains(t, o.Stdout, says)
			if service == panics {
				return // the harness takes the word on standard error for a panic of the program
			}
			o = temporal.Run(t, "", "call", "--service", service, "--discovery-timeout", "10s", "echo")
			require.Equal(t, 1, o.Code)
			require.NotContains(t, o.Stderr, "there is no tool")
			require.Contains(t, o.Stderr, "no service that answers has it")
		})
	}
	away := &harness.Temporal{Address: "127.0.0.1:1"}
	o := away.Run(t, "", "tools", "--service", "any", "--discovery-timeout", "1s")
	require.Contains(t, o.Stdout, "Temporal does not answer")
	require.NotContains(t, o.Stdout, "recorded")
}
