//go:build unix

package supervise

// entry is one line of the process table.
type entry struct{ pid, parent, group int }

// below returns the descendants of a process, and whoever is in the group.
func below(table []entry, ancestor, group int) []int {
	children := map[int][]int{}
	found := map[int]bool{}
	var pids []int
	add := func(pid int) {
		if !found[pid] {
			found[pid] = true
			pids = append(pids, pid)
		}
	}
	for _, e := range table {
		children[e.parent] = append(children[e.parent], e.pid)
		if e.group == group {
			add(e.pid)
		}
	}
	for _, pid := range children[ancestor] {
		add(pid)
	}
	for i := 0; i < len(pids); i++ {
		for _, pid := range children[pids[i]] {
			add(pid)
		}
	}
	return pids
}
