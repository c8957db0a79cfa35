//go:build unix && !linux

package supervise

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// adopts: an orphan becomes a child of process 1.
const adopts = false

func adopt() {}

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// known are the descendants that have been seen: one whose parent ends would be
// lost from the tree.
var known = map[int]bool{}

// remember notes the descendants while the process still is their ancestor.
func remember(pid int) {
	for _, p := range below(processTable(), os.Getpid(), pid) {
		known[p] = true
	}
}

// signalAll signals the process group and every descendant, and returns how many
// are left.
func signalAll(pid int, s syscall.Signal) int {
	_ = syscall.Kill(-pid, s) // no such group: none of it is left
	remember(pid)
	for p := range known {
		if err := syscall.Kill(p, s); err != nil {
			delete(known, p)
		}
	}
	return len(known)
}

// processTable asks ps, which is on every system of this kind.
func processTable() []entry {
	ps := exec.Command("/bin/ps", "-axo", "pid=,ppid=,pgid=") //nolint:noctx // it ends by itself, and the supervisor has no context
	out, _ := ps.Output()                                     // reap may have taken its status
	var table []entry
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var e entry
		if n, _ := fmt.Sscan(lines.Text(), &e.pid, &e.parent, &e.group); n == 3 && e.pid != ps.Process.Pid {
			table = append(table, e)
		}
	}
	return table
}
