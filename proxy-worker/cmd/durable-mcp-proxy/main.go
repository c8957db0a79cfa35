// Command durable-mcp-proxy serves the tools of MCP servers as Nexus services.
package main

import (
	"os"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
