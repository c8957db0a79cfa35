// Command proxy-library is the proxy as a part of your own Worker: two MCP servers
// beside a tool service of your own. README.md says how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var s settings
	flag.StringVar(&s.weather, "weather", "http://127.0.0.1:8070/mcp", "the `URL` of the weather server")
	flag.StringVar(&s.tokenFile, "token-file", "", "the `FILE` with the weather server's token")
	flag.StringVar(&s.almanac, "almanac", "bin/almanac", "the `COMMAND` of the almanac")
	flag.BoolVar(&s.ensureEndpoints, "ensure-endpoints", false, "create the Nexus endpoints that are missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "proxy-library:", err)
		os.Exit(1)
	}
}
