// Package load has the tests of many at once: calls that wait, clients that vanish,
// and a Temporal that is over its limits. DURABLE_MCP_LOAD_CALLS says how many calls
// wait; ./justw load has 2,000.
package load
