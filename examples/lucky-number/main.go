// Command lucky-number is a tool service: a Temporal Worker whose Nexus
// operations are tools. README.md says how to run it and what to expect.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var s settings
	flag.BoolVar(&s.ensureEndpoint, "ensure-endpoint", false, "create the Nexus endpoint "+serviceName+" if it is missing")
	flag.DurationVar(&s.idle, "idle", 30*time.Minute, "the `TIME` after which a topic list that nobody uses ends")
	flag.Parse()
	if err := run(s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lucky-number:", err)
		os.Exit(1)
	}
}
