// Command standin takes the place of the go command in an image that has no Go, so
// that the tests build the Dockerfile as it is: it puts programs that were compiled
// outside to where the compiler would have put them.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}
