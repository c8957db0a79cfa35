// Command almanac is an MCP server over stdio as there are many: it knows nothing
// of Temporal.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "almanac:", err)
		os.Exit(1)
	}
}
