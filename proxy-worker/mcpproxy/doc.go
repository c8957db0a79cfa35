// Package mcpproxy serves the tools of an existing MCP server as a Nexus service,
// so that each call is durable: Temporal keeps it, runs it when the server can be
// reached, and keeps its result.
//
// A [Proxy] is a plugin for the Temporal client of a Worker:
//
//	weather, err := mcpproxy.New("weather", mcpproxy.HTTP("https://weather.example/mcp", mcpproxy.HTTPOptions{}), mcpproxy.Options{})
//	…
//	c, err := client.Dial(client.Options{Plugins: []client.Plugin{weather}})
//	…
//	w := worker.New(c, "mcp-proxy", worker.Options{})
//	err = w.Run(worker.InterruptCh())
//
// It needs no registration beside that. Every tool of the upstream is an operation
// of the service, the ones that appear later too.
//
// # At most once
//
// A tool is called again only where that is safe: where the request was certainly
// not sent, or where the tool is read-only or idempotent by its annotations or by
// a [Policy]. All other calls that may have reached the upstream and have no
// answer end as "outcome unknown", also when the Worker dies.
package mcpproxy
