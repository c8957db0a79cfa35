package operation

import "sync"

// runs are the run IDs of operations that this process has started and still waits
// for. Asked by the operation ID alone, Temporal reads its database three times more
// to learn the run; an operation that is not here is found so.
type runs struct {
	mu  sync.Mutex
	ids map[string]string // by operation ID
}

// maxRuns bounds those of calls that nobody waits for any more.
const maxRuns = 1 << 13

func (r *runs) add(id, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) >= maxRuns {
		r.ids = map[string]string{}
	}
	r.ids[id] = run
}

func (r *runs) of(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}

// forget reports whether there was something to forget.
func (r *runs) forget(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.ids[id]
	delete(r.ids, id)
	return known
}
