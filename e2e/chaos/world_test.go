package chaos_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// world is one whole system: every part a process, and a relay on every way between
// two of them.
type world struct {
	temporal  *harness.Temporal
	tools     *tools
	upstream  *harness.Upstream
	proxy     *harness.Proxy
	connector *harness.HTTP

	// The ways between the parts, by who connects.
	clientLink, connectorLink, proxyLink, toolsLink, upstreamLink *harness.Relay

	ledger *ledger
	// proxied is the name of the service behind the proxy.
	proxied string
}

// proxiedPolicy is what an operator may write for an upstream that restarts within
// seconds: a dead Worker is noticed by a heartbeat of four, and an upstream that is
// away is tried for some ten.
var proxiedPolicy = harness.ProxyServer{"policy": map[string]any{
	"heartbeat_timeout": heartbeat.String(),
	"retry":             map[string]any{"initial_interval": "200ms", "maximum_interval": "2s", "maximum_attempts": 12},
}}

// newWorld starts everything. It returns once a call of each kind has been answered.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{temporal: harness.StartDurableTemporal(t), proxied: harness.Unique("up")}
	link := func(to string) *harness.Relay { return harness.StartRelay(t, to) }

	w.toolsLink = link(w.temporal.Address)
	w.tools = &tools{name: harness.Unique("tools"), address: w.toolsLink.Address, journal: t.TempDir() + "/executions"}
	w.temporal.CreateEndpoint(t, w.tools.name, w.tools.name)
	w.tools.Start(t)

	w.upstream = harness.StartUpstream(t)
	address, _ := strings.CutSuffix(strings.TrimPrefix(w.upstream.URL, "http://"), "/mcp")
	w.upstreamLink, w.proxyLink = link(address), link(w.temporal.Address)
	w.proxy = w.temporal.Via(w.proxyLink.Address).StartProxy(t, map[string]harness.ProxyServer{
		w.proxied: w.upstream.Server(proxiedPolicy, harness.ProxyServer{"url": "http://" + w.upstreamLink.Address + "/mcp"}),
	}, "--log-level", logLevel())

	w.connectorLink = link(w.temporal.Address)
	w.connector = w.temporal.Via(w.connectorLink.Address).StartHTTP(t,
		"--service", w.tools.name, "--service", w.proxied, "--log-level", logLevel())
	w.clientLink = link(strings.TrimPrefix(w.connector.Base, "http://"))

	w.ledger = newLedger(w.tools.journal, upstream.JournalPath(w.upstream.Dir))
	w.healthy(t)
	return w
}

// logLevel keeps what the parts say short where they run for an hour.
func logLevel() string {
	if *flagCalls > 0 || *flagSoak > 0 {
		return "info"
	}
	return "debug"
}

// tools is the tool service as a process.
type tools struct {
	name, address, journal string
	process                *harness.Process
}

// Start starts the Worker, also again. It returns when it polls.
func (s *tools) Start(t *testing.T) {
	t.Helper()
	s.process = harness.StartProcess(t, []string{toolsVariable + "=" + s.address + "," + s.name + "," + s.journal}, os.Args[0])
	s.process.Stdout.Await(t, "ready\n")
}

// healthy makes calls of each kind until one has its answer, and returns them all: on
// a machine that is busy with what a fault left to do, a heartbeat may come too late
// and an outcome be unknown.
func (w *world) healthy(t *testing.T) (calls []*call) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for k := range kinds {
		all.Go(func() {
			for again := true; again; {
				c := newCall(k, [2]int{}, true)
				w.newClient(harness.Revision2025November).make(c)
				mu.Lock()
				calls = append(calls, c)
				mu.Unlock()
				again = c.outcome == unknown
			}
		})
	}
	all.Wait()
	for _, c := range calls {
		require.Contains(t, []outcome{answered, unknown}, c.outcome, "a call of kind %v while nothing is broken: %s", c.kind, c.detail)
	}
	return calls
}
