package loop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// Provider makes a model by the provider's name for it; empty is a usual one.
type Provider func(name string) (Model, error)

// Main is the main function of a command that offers these providers beside the
// scripted model. It returns the exit code.
func Main(providers map[string]Provider) int {
	if err := run(os.Args[1:], providers); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return 1
	}
	return 0
}

const usage = `usage:
  agent worker [--provider NAME] [--model NAME]
  agent ask [--service NAME]... [--budget TURNS] [--allow] QUESTION`

func run(args []string, providers map[string]Provider) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("agent "+args[0], flag.ExitOnError)
	var with func(client.Client) error
	switch args[0] {
	case "worker":
		names := []string{"scripted"}
		for name := range providers {
			names = append(names, name)
		}
		slices.Sort(names)
		provider := flags.String("provider", "scripted", "whose model: "+strings.Join(names, ", "))
		name := flags.String("model", "", "the provider's name of the model; empty for a usual one")
		_ = flags.Parse(args[1:])
		var model Model = Rehearsed
		if *provider != "scripted" {
			newModel, ok := providers[*provider]
			if !ok {
				return fmt.Errorf("there is no provider %q among %s", *provider, strings.Join(names, ", "))
			}
			var err error
			if model, err = newModel(*name); err != nil {
				return err
			}
		}
		with = func(c client.Client) error { return work(c, model, os.Stdout) }
	case "ask":
		var input Input
		flags.Func("service", "the `NAME` of a tool service; may be repeated; lucky-number without one", func(name string) error {
			input.Services = append(input.Services, mcpworkflow.Service{Name: name})
			return nil
		})
		flags.IntVar(&input.Budget, "budget", 20, "how many `TURNS` the model may have")
		allow := flags.Bool("allow", false, "approve every call")
		_ = flags.Parse(args[1:])
		if flags.NArg() != 1 {
			return errors.New(usage)
		}
		if input.Question = flags.Arg(0); len(input.Services) == 0 {
			input.Services = []mcpworkflow.Service{{Name: "lucky-number"}}
		}
		with = func(c client.Client) error { return ask(context.Background(), c, input, *allow, os.Stdin, os.Stdout) }
	default:
		return errors.New(usage)
	}
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	c, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer c.Close()
	return with(c)
}
