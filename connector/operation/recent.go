package operation

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// recent are the calls that this process started a moment ago, oldest first:
// visibility lags, and may not have them yet.
type recent struct {
	mu    sync.Mutex
	calls []recentCall
}

type recentCall struct {
	Description
	owner string
}

const (
	maxRecent     = 256
	visibilityLag = 10 * time.Second
)

func (r *recent) add(id string, c Call) {
	owner := c.Caller.Owner()
	if owner == "" || strings.HasPrefix(c.Tool.Name, contract.MethodOperation("")) {
		return // nobody can list it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls[max(0, len(r.calls)+1-maxRecent):], recentCall{owner: owner, Description: Description{
		ID: id, Endpoint: c.Endpoint, Service: c.Service, Tool: c.Tool, Status: Running, Started: time.Now(),
	}})
}

// of returns the caller's latest, newest first; of the filter, the status does not
// count.
func (r *recent) of(caller Caller, f Filter) []Description {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Description
	for _, c := range slices.Backward(r.calls) {
		if time.Since(c.Started) > visibilityLag || len(calls) == f.Limit {
			break
		}
		if c.owner == caller.Owner() && f.wants(c.Description) {
			calls = append(calls, c.Description)
		}
	}
	return calls
}
