// Package mcpclient is an MCP client for a proxy: results are the bytes that the
// server sent, and an error says whether the request can have taken effect.
package mcpclient
