package supervise

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// adopts: orphans among the descendants become children of the supervisor.
const adopts = true

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

func adopt() {
	// It fails on no kernel that Go runs on.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0, 0, 0, 0)
}

// remember has nothing to do: no descendant gets lost.
func remember(int) {}

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalAll signals every descendant and returns how many there were.
func signalAll(pid int, s syscall.Signal) int {
	table := processTable()
	if len(table) == 0 { // no /proc
		_ = syscall.Kill(-pid, s)
	}
	pids := below(table, os.Getpid(), pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	return len(pids)
}

// processTable reads /proc: proc_pid_stat(5).
func processTable() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	table := make([]entry, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The command's name, in parentheses, may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		group, _ := strconv.Atoi(string(fields[2]))
		table = append(table, entry{pid, parent, group})
	}
	return table
}
