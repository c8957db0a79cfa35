// A tool service of somebody who has the module tool-sdk alone.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

type greeting struct {
	Name string `json:"name" jsonschema:"whom to greet" mcp:"minLength=1"`
}

func main() {
	greet := nexus.NewSyncOperation("greet", func(_ context.Context, in greeting, _ nexus.StartOperationOptions) (string, error) {
		return "Hello, " + in.Name, nil
	})
	tools := mcptool.NewService("greetings")
	mcptool.Add(tools, greet, mcptool.Tool{Description: "Greets.", Annotations: mcptool.Annotations{ReadOnlyHint: true}})

	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := tools.Register(worker.New(c, "greetings", worker.Options{})); err != nil {
		log.Fatal(err)
	}
	fmt.Println("registered", tools.Warnings())
}
