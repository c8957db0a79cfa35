// Package weatherproxy holds the configuration of durable-mcp-proxy for an MCP
// server that wants a bearer token. README.md says how to run it.
package weatherproxy
