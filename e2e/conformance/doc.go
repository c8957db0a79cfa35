// Package conformance runs the MCP project's own conformance suite against the
// commands as users start them. What does not pass stands in the directory
// baseline with the reason why; what passes and stands there fails too. The
// suite is one of the peers: ./justw conformance installs it and runs these tests.
package conformance
