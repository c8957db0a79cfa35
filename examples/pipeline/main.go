// Command pipeline is a Workflow that calls a tool a hundred times at once.
// README.md says how to run it and what to expect.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	calls := flag.Int("calls", 100, "how many calls to make")
	flag.Parse()
	if err := run(*calls, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}
