// Package temporaltest is a Temporal frontend in memory, as much of it as
// standalone Nexus operations take. It speaks gRPC, so that tests and examples
// use a real Temporal client; handlers stand for workers.
package temporaltest
