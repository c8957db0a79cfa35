// Package connector_test tests the connector from outside: its binary, over real
// pipes and real HTTP, on a real Temporal dev server.
package connector_test

import (
	"os"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
