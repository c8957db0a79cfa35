package cli

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// scripted makes the test binary an MCP server of 2025-11-25 over stdio.
const scripted = "scripted-server"

// scriptedTools are one tool for each way to a policy.
const scriptedTools = `[
	{"name":"look","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
	{"name":"put","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}},
	{"name":"send","inputSchema":{"type":"object"}},
	{"name":"pay","inputSchema":{"type":"object"},"annotations":{"idempotentHint":false}},
	{"name":"get/all","inputSchema":{"type":"object"}}
]`

func scriptedServer(args []string) int {
	flags := flag.NewFlagSet(scripted, flag.ContinueOnError)
	exit := flags.Int("exit", -1, "exit at once, with this code")
	say := flags.String("say", "", "write this to standard error; $NAME is a variable")
	name := flags.String("name", "scripted", "the server's name")
	silent := flags.Bool("silent", false, "answer nothing")
	started := flags.String("started", "", "create this file, and wait for the other files")
	if flags.Parse(args) != nil {
		return 2
	}
	if *say != "" {
		fmt.Fprintln(os.Stderr, os.ExpandEnv(*say))
	}
	if *exit >= 0 {
		return *exit
	}
	if *started != "" {
		_ = os.WriteFile(*started, nil, 0o600)
		for _, other := range flags.Args() {
			for {
				if _, err := os.Stat(other); err == nil {
					break
				}
				<-time.After(5 * time.Millisecond)
			}
		}
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil || *silent {
			continue
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch m.Method {
		case "initialize":
			info, _ := json.Marshal(*name)
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":` + string(info) + `,"version":"1.2"}}`
		case "tools/list":
			answer = `"result":{"tools":` + strings.NewReplacer("\n", "", "\t", "").Replace(scriptedTools) + `}`
		case "tools/call":
			if m.Params.Name == "send" { // never ends
				fmt.Fprintln(os.Stderr, "send is called")
				continue
			}
			answer = `"result":{"content":[],"structuredContent":` + string(m.Params.Arguments) + `}`
		case "ping":
			answer = `"result":{}`
		}
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, answer)
	}
	return 0
}
