// Command tasktools is an MCP server of the Go SDK with the tools that the suite's
// task scenarios call. The MCP project's own server has none of them; this one
// stands beside it behind the proxy. It knows nothing of tasks.
//
// Usage: tasktools ADDRESS.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tasktools ADDRESS")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tasktools:", err)
		os.Exit(1)
	}
}
