package harness

import (
	"strings"
	"syscall"
	"testing"
)

// Goroutines ends the process and returns the stacks of its goroutines, as the Go
// runtime prints them at SIGQUIT.
func (p *Process) Goroutines(tb testing.TB) []string {
	tb.Helper()
	before := len(p.Stderr.String())
	p.Signal(tb, syscall.SIGQUIT)
	p.Exit(tb)
	var stacks []string
	for stack := range strings.SplitSeq(p.Stderr.String()[before:], "\n\n") {
		if strings.HasPrefix(stack, "goroutine ") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}
