// A proxy of somebody who has the module proxy-worker alone.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "now", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, string, error) {
			return nil, "noon", nil
		})
	clock, err := mcpproxy.New("clock", mcpproxy.Transport(func(ctx context.Context) (mcp.Transport, error) {
		ours, theirs := mcp.NewInMemoryTransports()
		_, err := server.Connect(context.WithoutCancel(ctx), theirs, nil)
		return ours, err
	}), mcpproxy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.NewLazyClient(client.Options{Plugins: []client.Plugin{clock}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	worker.New(c, "clock", worker.Options{})

	report, err := clock.Inspect(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, tool := range report.Tools {
		fmt.Println(tool.Name, tool.Repeatable)
	}
}
