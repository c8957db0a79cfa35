//go:build unix

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec says what to start. Path is resolved; Args begins with the name that the
// process sees. The process gets Env and nothing else, and the three files, which
// stay the caller's to close.
type Spec struct {
	Path                  string
	Args                  []string
	Dir                   string
	Env                   []string
	Stdin, Stdout, Stderr *os.File
}

// Process is a supervised process. It is safe for concurrent use.
type Process struct {
	pid     int
	command *exec.Cmd
	control *os.File
	started chan error
	done    chan struct{}

	stop  sync.Once
	close sync.Once
	exit  string // set before done is closed
}

// Files of the supervisor beside the standard ones, which are /dev/null: what an
// init of the executable prints must not reach the process's pipes.
const (
	fdControl = 3 + iota
	fdStatus
	fdStdin
	fdStdout
	fdStderr
)

// Start starts a process and its supervisor. An error leaves neither behind.
func Start(s Spec) (*Process, error) {
	controlRead, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	status, statusWrite, err := os.Pipe()
	if err != nil {
		_ = controlRead.Close()
		_ = control.Close()
		return nil, err
	}
	env := s.Env
	if env == nil {
		env = []string{} // nil would be the owner's
	}
	p := &Process{control: control, started: make(chan error, 1), done: make(chan struct{})}
	p.command = &exec.Cmd{
		Path:        executable(),
		Args:        append([]string{argv0, s.Path}, s.Args...),
		Dir:         s.Dir,
		Env:         env,
		ExtraFiles:  []*os.File{controlRead, statusWrite, s.Stdin, s.Stdout, s.Stderr},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // an interrupt at the terminal is the owner's to handle
	}
	err = p.command.Start()
	_ = controlRead.Close()
	_ = statusWrite.Close() // the end of the supervisor is the end of the pipe
	if err != nil {
		_ = control.Close()
		_ = status.Close()
		return nil, err
	}
	go p.watch(status)
	if err := p.await(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// startTimeout is what a start takes at most: that of an executable on a file
// system that is away has no end of its own.
const startTimeout = 10 * time.Second

func (p *Process) await() error {
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case err := <-p.started:
		return err
	case <-timer.C:
		return fmt.Errorf("it was not running after %v", startTimeout)
	}
}

// executable works also where the file was replaced while the program runs.
func executable() string {
	if runtime.GOOS == "linux" {
		const self = "/proc/self/exe"
		if _, err := os.Stat(self); err == nil {
			return self
		}
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0] // better than nothing; if it is wrong, the start says so
	}
	return path
}

// Pid returns the process's ID, which is that of its group too.
func (p *Process) Pid() int { return p.pid }

// SupervisorPid returns the supervisor's process ID.
func (p *Process) SupervisorPid() int { return p.command.Process.Pid }

// Done is closed when the process has ended and its descendants with it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the process ended: "exited with code 3", "was killed by signal 9
// (killed)". It is empty before Done is closed.
func (p *Process) Exit() string {
	select {
	case <-p.done:
		return p.exit
	default:
		return ""
	}
}

// Stop begins the end of the process and does not wait for it: it has a second to
// end by itself, which a closed standard input asks for, then SIGTERM and another
// second, then SIGKILL.
func (p *Process) Stop() {
	p.stop.Do(func() { _ = p.control.Close() })
}

// closeTimeout is what Stop takes at most, and a second.
const closeTimeout = 2*grace + 2*killTimeout + time.Second

// Close stops the process and waits for its end, in bounded time.
func (p *Process) Close() {
	p.Stop()
	p.close.Do(func() {
		timer := time.NewTimer(closeTimeout)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
		_ = p.command.Process.Kill() // then it ends as a killed supervisor does
		timer.Reset(time.Second)
		select {
		case <-p.done:
		case <-timer.C:
		}
	})
}

// watch reads what the supervisor reports until it ends.
func (p *Process) watch(status *os.File) {
	defer close(p.done)
	defer func() { _ = status.Close() }()
	reported := false
	for lines := bufio.NewScanner(status); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case wordStarted:
			p.pid, _ = strconv.Atoi(rest)
			p.started <- nil
		case wordFailed:
			p.started <- errors.New(rest)
			reported = true
		case wordExited:
			p.exit, reported = "exited with code "+rest, true
		case wordKilled:
			n, _ := strconv.Atoi(rest)
			p.exit, reported = fmt.Sprintf("was killed by signal %d (%v)", n, syscall.Signal(n)), true
		}
	}
	_ = p.command.Wait() // what counts was reported
	if reported {
		return
	}
	p.exit = "was killed: its supervisor ended first"
	if p.pid > 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // no such group: nothing is left
		return
	}
	select {
	case p.started <- fmt.Errorf("its supervisor ended first (%v)", p.command.ProcessState):
	default:
	}
}
