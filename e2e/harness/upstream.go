package harness

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// Upstream is a scripted MCP server: the directory that its processes share, and
// one process where it serves HTTP. Over stdio its clients start the processes.
type Upstream struct {
	Dir string
	// URL is that of Streamable HTTP, SSE that of the older transport; empty over
	// stdio.
	URL, SSE string

	path    string
	args    []string
	process *Process
}

// PrepareUpstream returns a server that no process serves yet.
func PrepareUpstream(tb testing.TB, args ...string) *Upstream {
	tb.Helper()
	u := &Upstream{Dir: tb.TempDir(), path: Program(tb, "upstream")}
	u.args = append([]string{"--dir", u.Dir}, args...)
	tb.Cleanup(func() {
		// What served it ends a moment after its client, and writes until then.
		Until(tb, func() bool {
			return !slices.ContainsFunc(append(u.Entries(tb, upstream.EventStart), u.Entries(tb, upstream.EventChild)...),
				func(e upstream.Entry) bool { return Alive(e.PID) })
		})
		if tb.Failed() {
			journal, _ := os.ReadFile(filepath.Join(u.Dir, "journal"))
			tb.Logf("upstream, its journal:\n%s", journal[max(0, len(journal)-(8<<10)):])
		}
	})
	return u
}

// PrepareHTTPUpstream is [PrepareUpstream] with an address to listen on.
func PrepareHTTPUpstream(tb testing.TB, args ...string) *Upstream {
	tb.Helper()
	ports, err := freePorts(1)
	require.NoError(tb, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	u := PrepareUpstream(tb, append([]string{"--listen", address}, args...)...)
	u.URL, u.SSE = "http://"+address+"/mcp", "http://"+address+"/sse"
	return u
}

// StartUpstream starts a server over HTTP.
func StartUpstream(tb testing.TB, args ...string) *Upstream {
	tb.Helper()
	u := PrepareHTTPUpstream(tb, args...)
	u.Start(tb)
	return u
}

// Start starts the process of a server over HTTP. It returns when it listens.
func (u *Upstream) Start(tb testing.TB) {
	tb.Helper()
	p, err := start(command{name: "upstream", path: u.path, args: u.args})
	require.NoError(tb, err)
	u.process = p.own(tb)
	p.Stdout.Await(tb, "url=")
}

// PID is that of the process over HTTP.
func (u *Upstream) PID() int { return u.process.PID() }

// Kill is kill -9 of the process.
func (u *Upstream) Kill() { u.process.Kill() }

// Child is the process of a server over HTTP.
func (u *Upstream) Child() *Process { return u.process }

// Command is what starts a process over stdio.
func (u *Upstream) Command() (path string, args []string) { return u.path, u.args }

// Fault replaces the faults.
func (u *Upstream) Fault(tb testing.TB, faults ...upstream.Fault) {
	tb.Helper()
	require.NoError(tb, upstream.WriteFaults(u.Dir, faults...))
}

// SetTools replaces the further tools, JSON objects.
func (u *Upstream) SetTools(tb testing.TB, tools ...string) {
	tb.Helper()
	require.NoError(tb, upstream.WriteTools(u.Dir, tools...))
}

// Entries returns what the journal has of an event.
func (u *Upstream) Entries(tb testing.TB, event string) (list []upstream.Entry) {
	tb.Helper()
	all, err := upstream.ReadJournal(u.Dir)
	require.NoError(tb, err)
	for _, e := range all {
		if e.Event == event {
			list = append(list, e)
		}
	}
	return list
}

// Runs counts how often calls with a key have had their effect.
func (u *Upstream) Runs(tb testing.TB, key string) int {
	tb.Helper()
	n := 0
	for _, e := range u.Entries(tb, upstream.EventRun) {
		if e.Key == key {
			n++
		}
	}
	return n
}

// Requests counts the requests of a method.
func (u *Upstream) Requests(tb testing.TB, method string) int {
	tb.Helper()
	n := 0
	for _, e := range u.Entries(tb, upstream.EventRequest) {
		if e.Method == method {
			n++
		}
	}
	return n
}

// AwaitRun waits until a call with a key has had its effect.
func (u *Upstream) AwaitRun(tb testing.TB, key string) {
	tb.Helper()
	Until(tb, func() bool { return u.Runs(tb, key) > 0 })
}

// Release makes the file that scripts wait for.
func (u *Upstream) Release(tb testing.TB, name string) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(u.File(name), []byte(time.Now().String()), 0o600))
}

// File is the path of a file for scripts to wait for.
func (u *Upstream) File(name string) string { return filepath.Join(u.Dir, name) }

// NoViolation wants the client to have kept the rules.
func (u *Upstream) NoViolation(tb testing.TB) {
	tb.Helper()
	for _, e := range u.Entries(tb, upstream.EventViolation) {
		require.Fail(tb, "the client broke a rule", "%s %s: %s", e.Method, e.Tool, e.Text)
	}
}
