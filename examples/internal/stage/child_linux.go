package stage

import "syscall"

// childAttributes keep Ctrl-C in a terminal from the children, which are stopped
// in order, and let none outlive a parent that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
