// Package bench measures the connector, the proxy and the Workflow client against
// the raw Temporal SDK on the same server, all in one run and in turns, since the
// server is the bottleneck and machines are noisy: read the ratios.
// docs/benchmarks.md has figures.
package bench
