// Package bench measures the connector, the proxy and the Workflow client against
// the raw Temporal SDK on the same server, and against programs of other makers, all
// in one run and in turns, since the server is the bottleneck and machines are noisy:
// read the ratios. The package report keeps what they measured.
package bench
