package conformance_test

import (
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

// clientRuns are the suite's runs against the proxy, as a client of the servers
// that the suite plays.
var clientRuns = []run{
	{"client", "proxy", client, harness.Revision2026, 32},
	{"client", "proxy", client, harness.Revision2025November, 18},
}

// TestClient: the suite plays an MCP server, the proxy makes a Nexus service of it,
// and a Temporal client calls the service's operations.
//
//nolint:paralleltest // one of the scenarios takes the time to the tenth of a second
func TestClient(t *testing.T) {
	peers.Dir(t)
	for _, r := range clientRuns {
		t.Run(r.revision, func(t *testing.T) {
			stage := newStage(t)
			t.Cleanup(func() {
				for scenario, err := range stage.played() {
					if t.Failed() && err != nil && !refusals[scenario] {
						t.Logf("%s, the client: %v", scenario, err)
					}
				}
			})
			// The suite starts all of its servers at once, and this takes a few at a time.
			r.test(t, "--command", stage.command(t), "--timeout", "200000")
			known := map[string]bool{}
			for _, e := range r.baseline(t) {
				known[e.scenario] = true
			}
			played, scenarios := stage.played(), r.requirements(t).all(client)
			require.Len(t, played, len(scenarios))
			for _, scenario := range scenarios {
				require.Contains(t, played, scenario)
				if err := played[scenario]; refusals[scenario] {
					require.Error(t, err, "%s: the proxy serves a server that it should not trust", scenario)
				} else if !known[scenario] {
					require.NoError(t, err, scenario)
				}
			}
		})
	}
}

// refusals are the scenarios in which the server is one that a client must not go
// on with, so that no call comes to pass.
var refusals = map[string]bool{
	"auth/scope-retry-limit":        true,
	"auth/resource-mismatch":        true,
	"auth/iss-supported-missing":    true,
	"auth/iss-wrong-issuer":         true,
	"auth/iss-unexpected":           true,
	"auth/iss-normalized":           true,
	"auth/metadata-issuer-mismatch": true,
}
