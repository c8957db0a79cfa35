package mcpproxy_test

import (
	"context"
	"fmt"
	"log"
	"regexp"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// A Worker serves two MCP servers: one behind HTTP, one that is a child process.
// Each is a Nexus service under its name.
func Example() {
	weather, err := mcpproxy.New("weather", mcpproxy.HTTP("https://weather.example/mcp", mcpproxy.HTTPOptions{
		Auth: &mcpproxy.ClientCredentials{ClientID: "durable", ClientSecret: "from a vault"},
	}), mcpproxy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	files, err := mcpproxy.New("files", mcpproxy.Stdio("mcp-server-files", mcpproxy.StdioOptions{Args: []string{"/srv"}}),
		mcpproxy.Options{
			Reject: []*regexp.Regexp{regexp.MustCompile("delete_.*")},
			ToolPolicies: map[string]mcpproxy.Policy{
				"write_file": {Retry: &mcpproxy.RetryPolicy{MaximumAttempts: 3}}, // writing the same twice does no harm
			},
		})
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(client.Options{Plugins: []client.Plugin{weather, files}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, "mcp-proxy", worker.Options{})
	if err := w.Run(worker.InterruptCh()); err != nil {
		log.Fatal(err)
	}
}

// Inspect needs no Temporal: it says what would be served, and how.
func ExampleProxy_Inspect() {
	server := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	now := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, string, error) {
		return nil, time.Now().String(), nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "now", Description: "The time.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, now)
	mcp.AddTool(server, &mcp.Tool{Name: "alarm/set", Description: "Set the alarm."}, now)

	proxy, err := mcpproxy.New("clock", mcpproxy.Transport(func(ctx context.Context) (mcp.Transport, error) {
		ours, theirs := mcp.NewInMemoryTransports()
		_, err := server.Connect(context.WithoutCancel(ctx), theirs, nil)
		return ours, err
	}), mcpproxy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	report, err := proxy.Inspect(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range report.Tools {
		fmt.Printf("%s: repeatable %t (%s), %s\n", t.Name, t.Repeatable, t.Why, t.Policy.ScheduleToCloseTimeout)
	}
	// Output:
	// alarm_set: repeatable false (MCP default), 1h0m0s
	// now: repeatable true (annotation readOnlyHint), 1h0m0s
}
