// Package e2e is the module of the black-box tests: whatever needs more than one
// module of Durable MCP, or a real Temporal server, is tested below it. It is
// never tagged, and nothing imports it.
//
//   - harness starts and stops what the tests need.
//   - connector tests the connector from outside; toolservice has its tools.
//   - proxy tests the proxy worker from outside, with the connector in front.
//   - upstream is an MCP server that tests script, for what calls one.
//   - clients tests the connector with MCP clients of other makers, and servers the
//     proxy worker with their servers; peers pins both; ./justw peers.
//   - containers runs the product in Docker; ./justw e2e.
//   - bench measures it beside its baselines; ./justw bench.
//   - repo tests the repository itself.
package e2e
