// Command demo tells the story of Durable MCP in about a minute, on real
// programs: ./justw demo.
package main

import (
	"os"

	"github.com/durable-mcp/durable-mcp/examples/internal/demo"
)

func main() {
	os.Exit(demo.Main(os.Args[1:], os.Stdout, os.Stderr))
}
