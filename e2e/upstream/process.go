package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// begin is what a process does before it serves.
func (s *server) begin() error {
	if f, ok := s.fault(FaultStderr, "", ""); ok {
		fmt.Fprintln(os.Stderr, f.Text)
	}
	if f, ok := s.fault(FaultExitAtStart, "", ""); ok {
		fmt.Fprintln(os.Stderr, f.Text)
		os.Exit(f.Code)
	}
	if f, ok := s.fault(FaultBanner, "", ""); ok {
		fmt.Fprintln(os.Stdout, f.Text)
	}
	if f, ok := s.fault(FaultChildren, "", ""); ok {
		for range f.Count {
			if err := s.bear(); err != nil {
				return err
			}
		}
	}
	if _, ok := s.fault(FaultIgnoreStop, "", ""); ok {
		s.stubborn = true
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	return nil
}

// bear starts a child that ignores SIGTERM, holds the pipes of its parent, and ends
// with nothing but SIGKILL.
func (s *server) bear() error {
	cmd := exec.Command("/bin/sh", "-c", `trap "" TERM INT HUP; while :; do sleep 3600; done`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s.journal.add(Entry{Event: EventChild, PID: cmd.Process.Pid})
	return nil
}
