package harness

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Files is how many file descriptors the process has open, 0 where the system does
// not tell.
func (p *Process) Files() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	return len(entries)
}

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
