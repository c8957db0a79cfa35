// Package clients tests the connector with MCP clients of other makers: the SDKs
// for Python and TypeScript in both of their generations, Strands Agents, and the
// MCP Inspector, each over stdio and over HTTP. The small programs in python and
// node let a test drive them; ./justw peers installs what they import.
package clients
