//go:build !race

package harness

// Race reports whether the tests, and the programs that they start, have the race
// detector.
const Race = false
