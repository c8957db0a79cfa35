//go:build !unix

package supervise

import (
	"errors"
	"os"
)

// Spec says what to start.
type Spec struct {
	Path                  string
	Args                  []string
	Dir                   string
	Env                   []string
	Stdin, Stdout, Stderr *os.File
}

// Process is a supervised process.
type Process struct{}

// Start fails: nothing here can keep the promise of the package.
func Start(Spec) (*Process, error) {
	return nil, errors.New("child processes need Linux, macOS or another Unix")
}

// Pid returns 0.
func (*Process) Pid() int { return 0 }

// SupervisorPid returns 0.
func (*Process) SupervisorPid() int { return 0 }

// Done returns nil.
func (*Process) Done() <-chan struct{} { return nil }

// Exit returns nothing.
func (*Process) Exit() string { return "" }

// Stop does nothing.
func (*Process) Stop() {}

// Close does nothing.
func (*Process) Close() {}
