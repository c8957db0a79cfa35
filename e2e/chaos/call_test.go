package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
)

// kind is what runs behind a call.
type kind int

const (
	syncTool kind = iota
	workflowTool
	activityTool
	readOnly // behind the proxy
	once     // behind the proxy, neither read-only nor idempotent
	kinds
)

func (k kind) String() string {
	return [...]string{"sync", "workflow", "activity", "proxied, read-only", "proxied, not idempotent"}[k]
}

// tool is the tool of the kind.
func (k kind) tool() string {
	return [...]string{toolSync, toolWorkflow, toolActivity, upstream.ToolRead, upstream.ToolPlain}[k]
}

// mayRepeat reports whether a second execution is allowed: a sync operation is
// delivered again by Temporal, and a Workflow repeats the local activity of a task
// that its Worker did not live to report.
func (k kind) mayRepeat() bool { return k != activityTool && k != once }

// outcome is what became of a call.
type outcome int

const (
	// lost: the client neither got an answer nor can read it. It is also that of a
	// call which has not ended.
	lost       outcome = iota
	answered           // with the right answer
	wrong              // with another answer, or with an error that is no "outcome unknown"
	unknown            // with "outcome unknown"
	notStarted         // the client knows that it was never started
)

// call is one call, and what its client has seen of it.
type call struct {
	kind   kind
	key    string // in the journals
	value  json.RawMessage
	millis int
	// named calls have an idempotency key, by which the client may make them again.
	named bool

	sent     chan struct{} // closed once the client has tried to send it
	outcome  outcome
	id       string // of the operation, once it is known
	detail   string // the answer that is none of the right ones
	refused  int    // connections that were refused, so that nothing was sent
	began    time.Time
	took     time.Duration
	messages int // requests that the client made for it
}

// newCall returns a call that takes so many milliseconds, from and to.
func newCall(k kind, takes [2]int, named bool) *call {
	c := &call{kind: k, key: harness.Unique("key"), named: named, sent: make(chan struct{})}
	c.millis = takes[0] + rand.IntN(1+takes[1]-takes[0])
	c.value = fmt.Appendf(nil, `{"key":%q,"exact":9007199254740993.0,"small":-0,"big":1e400}`, c.key)
	return c
}

// arguments are those of the tool.
func (c *call) arguments() string {
	if c.kind == readOnly || c.kind == once {
		return upstream.Script{Key: c.key, Millis: c.millis, Result: fmt.Appendf(nil,
			`{"content":[{"type":"text","text":"done"}],"structuredContent":%s}`, c.value)}.JSON()
	}
	data, err := json.Marshal(work{Key: c.key, Millis: c.millis, Value: c.value})
	if err != nil {
		panic(err)
	}
	return string(data)
}
