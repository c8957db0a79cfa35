// Package harness starts what black-box tests need and stops it again: Temporal
// dev servers, tool services, connectors, proxy workers and upstreams, and clients
// that send and read bytes.
//
// A test package hands its TestMain to [Run]. What [Shared] returns lives as long
// as the package's tests; everything else ends with the test that started it.
// A child's output shows when the test fails, and a data race or a panic in a
// child fails it.
package harness
