// Package stdio reaches an MCP server that is a child process: one JSON-RPC
// message a line on its standard input and output (MCP, basic/transports, stdio).
package stdio
