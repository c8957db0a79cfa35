// An MCP server of somebody who has the module connector alone.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

func main() {
	// Nobody listens there: the server serves what needs no service.
	temporal, err := client.NewLazyClient(client.Options{
		HostPort:     "127.0.0.1:1",
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer temporal.Close()
	server, err := mcpserver.New(temporal, mcpserver.Options{
		Services:         []catalog.Service{{Name: "greetings"}},
		DiscoveryTimeout: 100 * time.Millisecond,
		Caller:           "ada@example",
		Logger:           slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go server.Run(ctx)

	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := server.MCP().Connect(ctx, ours, nil); err != nil {
		log.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(ctx, theirs, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name)
	}
}
