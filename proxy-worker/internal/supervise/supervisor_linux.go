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
	pids, ok := descendants(os.Getpid())
	if !ok {
		table := processTable()
		if len(table) == 0 { // no /proc
			_ = syscall.Kill(-pid, s)
		}
		pids = below(table, os.Getpid(), pid)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	return len(pids)
}

// descendants follows the lists of children: proc_pid_task_children(5). That is
// quick, so that processes that fork do not get ahead. It reports whether the
// kernel has the lists.
func descendants(of int) (pids []int, ok bool) {
	seen := map[int]bool{}
	for queue := []int{of}; len(queue) > 0; queue = queue[1:] {
		tasks := "/proc/" + strconv.Itoa(queue[0]) + "/task/"
		threads, _ := os.ReadDir(tasks) // none: it has ended
		for _, thread := range threads {
			list, err := os.ReadFile(tasks + thread.Name() + "/children")
			if err != nil {
				continue
			}
			ok = true
			for field := range bytes.FieldsSeq(list) {
				if pid, err := strconv.Atoi(string(field)); err == nil && !seen[pid] {
					seen[pid] = true
					pids, queue = append(pids, pid), append(queue, pid)
				}
			}
		}
	}
	return pids, ok
}

// processTable reads /proc: proc_pid_stat(5).
func processTable() []entry {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
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
