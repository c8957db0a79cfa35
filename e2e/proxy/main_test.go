// Package proxy_test tests the proxy worker from outside: its binary between the
// connector's and MCP servers that do whatever a test tells them to, on a real
// Temporal dev server.
package proxy_test

import (
	"os"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
