// Package stage starts the programs that a story needs, each as a child process
// with a log file of its own, and stops them all again: a Temporal dev server, a
// tool service, connectors.
package stage
