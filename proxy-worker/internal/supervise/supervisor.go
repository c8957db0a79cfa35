//go:build unix

package supervise

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// argv0 is the name by which the executable knows that it is to be a supervisor.
const argv0 = "durable-mcp-supervisor"

// What a supervisor reports, a word and a value a line.
const (
	wordStarted = "started" // process ID
	wordFailed  = "failed"  // why
	wordExited  = "exited"  // code
	wordKilled  = "killed"  // signal
)

const (
	// grace is what a process has to end by itself, and again after SIGTERM.
	grace = time.Second
	// killTimeout bounds the wait for what got SIGKILL; a process that hangs in
	// the kernel must not hold its supervisor for ever.
	killTimeout = 2 * time.Second
	killPause   = time.Millisecond // what forks meanwhile must not get ahead
)

func init() {
	if len(os.Args) > 2 && os.Args[0] == argv0 {
		// The process's parent-death signal is about the thread that started it.
		runtime.LockOSThread()
		os.Exit(supervise(os.Args[1], os.Args[2:]))
	}
}

func supervise(path string, args []string) int {
	status := os.NewFile(fdStatus, "status")
	report := func(word, value string) { _, _ = status.WriteString(word + " " + value + "\n") } // the owner may be gone
	for fd := range fdStderr + 1 {
		syscall.CloseOnExec(fd) // the process gets copies of its three
	}
	adopt()
	// Signals are the owner's to act upon. They are caught, not ignored: what is
	// ignored here the process would ignore too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)

	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{ //nolint:gosec // the owner names the command
		Env:   os.Environ(),
		Files: []uintptr{fdStdin, fdStdout, fdStderr},
		Sys:   processAttributes(),
	})
	for fd := fdStdin; fd <= fdStderr; fd++ {
		_ = syscall.Close(fd)
	}
	if err != nil {
		report(wordFailed, err.Error())
		return 1
	}
	report(wordStarted, strconv.Itoa(pid))

	exited := make(chan syscall.WaitStatus, 1)
	gone := make(chan struct{})
	go reap(pid, exited, gone)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		var b [1]byte
		for {
			if _, err := syscall.Read(fdControl, b[:]); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	}()

	var end syscall.WaitStatus
	select {
	case end = <-exited:
	case <-stop:
		end = endProcess(pid, exited)
	}
	killRest(pid, gone)
	if end.Signaled() {
		report(wordKilled, strconv.Itoa(int(end.Signal())))
	} else {
		report(wordExited, strconv.Itoa(end.ExitStatus()))
	}
	return 0
}

// reap waits for all children, those that were adopted too.
func reap(pid int, exited chan<- syscall.WaitStatus, gone chan<- struct{}) {
	defer close(gone)
	for {
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // no child is left
		case got == pid:
			exited <- ws
		}
	}
}

// endProcess ends the process itself, and asks its descendants to end too.
func endProcess(pid int, exited <-chan syscall.WaitStatus) syscall.WaitStatus {
	remember(pid)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case end := <-exited:
		return end
	case <-timer.C:
	}
	signalAll(pid, syscall.SIGTERM)
	timer.Reset(grace)
	select {
	case end := <-exited:
		return end
	case <-timer.C:
	}
	signalAll(pid, syscall.SIGKILL)
	timer.Reset(killTimeout)
	select {
	case end := <-exited:
		return end
	case <-timer.C:
		return syscall.WaitStatus(syscall.SIGKILL)
	}
}

// killRest kills what the process has left behind, and what that leaves behind.
func killRest(pid int, gone <-chan struct{}) {
	timeout := time.NewTimer(killTimeout)
	defer timeout.Stop()
	for {
		if signalAll(pid, syscall.SIGKILL) == 0 {
			return
		}
		pause := time.NewTimer(killPause)
		select {
		case <-gone:
			pause.Stop()
			if adopts {
				return
			}
			gone = nil // the tree has to tell
		case <-timeout.C:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
