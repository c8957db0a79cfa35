// Command upstream is the MCP server of the black-box tests; see the package
// upstream. It serves stdio unless --listen says where to serve HTTP.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/durable-mcp/durable-mcp/e2e/upstream"
)

func main() {
	var o upstream.Options
	var protocols, without string
	flag.StringVar(&o.Dir, "dir", "", "the directory of journal, faults.json and tools.json")
	flag.StringVar(&o.Listen, "listen", "", "HOST:PORT of HTTP; the URL is written to standard output")
	flag.StringVar(&protocols, "protocols", "", "revisions, comma-separated, newest first; all that there are by default")
	flag.StringVar(&without, "without", "", "capabilities to lack, comma-separated")
	flag.IntVar(&o.Page, "page", 50, "tools on a page")
	flag.IntVar(&o.Generated, "generated", 0, "how many more tools to have")
	flag.BoolVar(&o.Odd, "odd", false, "have tools with odd names")
	flag.StringVar(&o.Secret, "client-secret", "", "want a token that this secret gets")
	flag.Parse()
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	o.Protocols, o.Without = split(protocols), split(without)
	if o.Dir == "" || flag.NArg() > 0 && flag.Arg(0) != "idle" {
		fmt.Fprintln(os.Stderr, "usage: upstream --dir DIR [flags]")
		os.Exit(2)
	}
	if err := upstream.Run(o); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}
