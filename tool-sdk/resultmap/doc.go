// Package resultmap joins the contract to the Temporal and Nexus SDKs: payloads
// that carry JSON as bytes, and the failure table in both directions. A service
// turns a [contract.Failure] into the error that it returns; a caller turns the
// error that it got back into a [contract.Failure], by type, never by matching
// text. It links no MCP transport, so Workflow code can import it.
//
// All functions are safe for concurrent use.
package resultmap
