// Package servers tests the proxy worker with MCP servers of other makers, as
// users have them in their files: what reaches a client through proxy, Temporal
// and connector is what a session with the server itself gets. ./justw peers
// installs them.
package servers
