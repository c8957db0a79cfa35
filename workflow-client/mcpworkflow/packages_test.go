package mcpworkflow_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Workflow code links no MCP transport and no client of anything that the
// Temporal SDK does not link by itself.
func TestLinkedPackages(t *testing.T) {
	t.Parallel()
	list := func(packages ...string) []string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
		require.NoError(t, err)
		return strings.Fields(string(out))
	}
	const module = "github.com/durable-mcp/durable-mcp/"
	sdk := list("go.temporal.io/sdk/workflow", "go.temporal.io/sdk/interceptor", "go.temporal.io/sdk/activity")
	var own []string
	for _, p := range list(".") {
		if !slices.Contains(sdk, p) {
			own = append(own, strings.TrimPrefix(p, module))
		}
	}
	require.Equal(t, []string{"tool-sdk/contract", "tool-sdk/resultmap", "workflow-client/mcpworkflow"}, slices.Sorted(slices.Values(own)))
}
