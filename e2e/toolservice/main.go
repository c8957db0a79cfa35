// Command toolservice is the tool service of the black-box tests: a Worker whose
// tools do what a test tells them to. It spells the wire contract out, so that
// the tests notice when the product's own idea of it changes.
//
// Usage: toolservice TEMPORAL SERVICE MANIFEST EFFECTS. The service's name is that
// of its task queue too. MANIFEST, a file that may appear and change at any time,
// replaces the manifest. EFFECTS is the file that tools append lines to.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: toolservice TEMPORAL SERVICE MANIFEST EFFECTS")
		os.Exit(2)
	}
	if err := run(kit{service: os.Args[2], manifest: os.Args[3], effects: os.Args[4]}, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "toolservice:", err)
		os.Exit(1)
	}
}
