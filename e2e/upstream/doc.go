// Package upstream is an MCP server that the black-box tests script. It speaks raw
// JSON-RPC over stdio, Streamable HTTP and HTTP+SSE at every revision of the
// protocol, by the book until a [Fault] tells it otherwise; no SDK keeps it from
// being wrong.
//
// A test and its servers meet in one directory, so that what a server has done
// outlives it:
//
//   - journal has one line of JSON for each [Entry]: what ran, what was cancelled,
//     what a client did that the protocol forbids. Lines are synced to disk before
//     anything that follows them.
//   - faults.json has the faults, which may change at any time.
//   - tools.json has further tools; a change is told to every client.
//
// What the tools do is in script.go.
package upstream
