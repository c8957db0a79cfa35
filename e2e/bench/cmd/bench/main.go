// Command bench runs the benchmarks and makes docs/benchmarks.md of what they
// measured. Its arguments are flags of go test; ./justw bench runs it.
package main

import (
	"os"

	"github.com/durable-mcp/durable-mcp/e2e/bench/report"
)

func main() { os.Exit(report.Main(".", os.Args[1:])) }
