package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Alive reports whether a process runs and is no zombie. Where there is no /proc
// none does.
func Alive(pid int) bool {
	_, state := Parent(pid)
	return state != "" && state != "Z" && state != "X"
}

// Parent returns the parent and the state of a process, as /proc has them.
func Parent(pid int) (ppid int, state string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	ppid, _ = strconv.Atoi(fields[1])
	return ppid, fields[0]
}
