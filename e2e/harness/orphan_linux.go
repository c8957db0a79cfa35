package harness

import "syscall"

// childAttributes let no child outlive a test binary that is killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
