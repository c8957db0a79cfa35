// Command modproxy puts modules of the Git repository in the working directory,
// as HEAD has them, into a module proxy in a directory; see the package release.
package main

import (
	"fmt"
	"os"

	"github.com/durable-mcp/durable-mcp/e2e/release"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: modproxy PROXY VERSION MODULE...")
		os.Exit(2)
	}
	for _, dir := range os.Args[3:] {
		if err := release.Add(os.Args[1], ".", dir, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "modproxy:", err)
			os.Exit(1)
		}
	}
}
