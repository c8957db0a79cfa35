// Command agent is an agent as a Workflow: a model asked in activities, tools
// called durably, and a person who approves. README.md says how to run it and
// what to expect.
package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/durable-mcp/durable-mcp/examples/agent/claude"
	"github.com/durable-mcp/durable-mcp/examples/agent/gpt"
	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
)

func main() { os.Exit(loop.Main(providers)) }

// providers have keys that come from the environment of the Worker and stay in
// its process: no input has them, and so Temporal does not.
var providers = map[string]loop.Provider{
	"anthropic": func(name string) (loop.Model, error) {
		key, err := secret("ANTHROPIC_API_KEY")
		return claude.New(key, cmp.Or(name, claude.Default)), err
	},
	"openai": func(name string) (loop.Model, error) {
		key, err := secret("OPENAI_API_KEY")
		return gpt.New(key, cmp.Or(name, gpt.Default)), err
	},
}

func secret(name string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("the environment has no %s", name)
	}
	return value, nil
}
