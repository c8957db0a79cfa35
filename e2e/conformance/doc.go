// Package conformance runs the MCP project's own conformance suite against the
// commands as users start them. What does not pass stands in the directory
// baseline with the reason why; what passes and stands there fails too. The
// suite is one of the peers: ./justw conformance installs it and runs these tests.
//
// For its client scenarios the suite plays an MCP server and starts a client, which
// is this package's test binary: that only tells the test of the server, where a
// proxy is put in front of it and called.
package conformance
