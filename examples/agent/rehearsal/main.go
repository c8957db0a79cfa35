// Command rehearsal is the agent with the scripted model alone. It links no SDK
// of a provider, so it builds in seconds: for the demo and the tests.
package main

import (
	"os"

	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
)

func main() { os.Exit(loop.Main(nil)) }
