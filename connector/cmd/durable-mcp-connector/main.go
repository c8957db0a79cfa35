// Command durable-mcp-connector serves Temporal Nexus services as an MCP server.
package main

import (
	"os"

	"github.com/durable-mcp/durable-mcp/connector/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
