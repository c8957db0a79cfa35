package conformance_test

import (
	"os"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
