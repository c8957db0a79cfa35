// Package mcpserver serves Nexus services as an MCP server: every tool call is a
// standalone Nexus operation that outlives the client and this process. It joins
// a catalog of tools and an operation client to the MCP Go SDK.
//
// The SDK does what it is made for: transports, protocol revisions, listing and
// paging, list_changed, header checks. One receiving middleware does what the
// SDK cannot: results as bytes, tasks, and the rules of durable calls.
//
// A [Server] is a library first: bring a Temporal client, a transport, and
// middleware of your own.
package mcpserver
