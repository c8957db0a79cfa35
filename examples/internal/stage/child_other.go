//go:build !linux

package stage

import "syscall"

// childAttributes keep Ctrl-C in a terminal from the children, which are stopped
// in order.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
