package containers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// deaths kills parts of the stack in the middle of calls.
func (s *stack) deaths(t *testing.T) {
	t.Run("of a connector", func(t *testing.T) { t.Parallel(); s.connectorDies(t) })
	t.Run("of the proxy", func(t *testing.T) { t.Parallel(); s.proxyDies(t) })
}

// connectorDies: the result of a call is read through the other replica, and through
// the one that died when it is back.
func (s *stack) connectorDies(t *testing.T) {
	t.Helper()
	p, q := s.peer(t, connectorOne, harness.Revision2025November), s.peer(t, connectorTwo, harness.Revision2026)
	pending, id := startWithID(t, p, "brew_report", `{"topic":"the dead","seconds":8}`)
	awaitStarted(t, q, id)
	s.kill(t, connectorOne)
	pending.AwaitEnd(t)
	_, answered := pending.Find(0, harness.IsAnswer(pending.ID))
	require.False(t, answered, "it was killed in the middle")

	read := func(p *harness.Peer) string {
		r := readCall(t, p, id)
		require.Contains(t, string(r.Structured), "the leaves say of the dead")
		return string(r.Structured)
	}
	first := read(q)
	s.restart(t, connectorOne)
	s.awaitAll(t, connectorOne)
	harness.RequireExact(t, first, read(s.peer(t, connectorOne, harness.Revision2026)))
}

// proxyDies: a call of a tool that only reads runs again on the proxy that is back,
// one of a tool that must not run twice ends as outcome unknown.
func (s *stack) proxyDies(t *testing.T) {
	t.Helper()
	const reads, books = "reads of barley", "booked a trip to Porto for Grace"
	p := s.peer(t, connectorTwo, harness.Revision2025November)
	booking := p.StartTool(t, "book_trip", `{"traveller":"Grace","place":"Porto"}`)
	reading := p.StartTool(t, "outlook", `{"crop":"barley","seconds":6}`)
	s.awaitLog(t, upstream, books, 1)
	s.awaitLog(t, proxy, reads, 1)
	s.kill(t, proxy)
	s.restart(t, proxy)

	r := outcome(t, p, reading)
	require.False(t, r.IsError, "%s", r.Raw)
	require.Contains(t, string(r.Structured), "as good a year for barley as any")
	require.Equal(t, 2, strings.Count(s.log(contextOf(t), proxy), reads), "it ran again")

	r = outcome(t, p, booking)
	require.True(t, r.IsError, "%s", r.Raw)
	require.JSONEq(t, `"unknown"`, string(r.Meta["io.temporal/outcome"]), "%s", r.Raw)
	var booked struct{ Trips []json.RawMessage }
	require.NoError(t, json.Unmarshal(p.Tool(t, "trips", `{"traveller":"Grace"}`).Structured, &booked))
	require.Len(t, booked.Trips, 1)
	require.Equal(t, 1, strings.Count(s.log(contextOf(t), upstream), books), "it did not run again")
	s.awaitReady(t, proxy, proxyPort)
}

// outcome is that of a call, also if it takes longer than the connector waits.
func outcome(t *testing.T, p *harness.Peer, pending *harness.Pending) harness.ToolResult {
	t.Helper()
	r := pending.Answer(t).ToolResult(t)
	if id := isRunning(r); id != "" {
		return readCall(t, p, id)
	}
	return r
}

// secrets: the token comes to the proxy by its environment, and goes no further than
// to the server. No container writes it down, also where it is wrong.
func (s *stack) secrets(t *testing.T) {
	const wrong = "another0token"
	code, log := s.once(t, proxy, "check-with-a-wrong-token", map[string]string{"WEATHER_TOKEN": wrong}, "check", "--log-level=debug")
	require.Equal(t, 1, code, log)
	require.Contains(t, log, "the server does not accept the credentials")
	for _, name := range s.names() {
		log := s.log(contextOf(t), name)
		for _, secret := range []string{s.token, wrong} {
			require.NotContains(t, log, secret, name)
		}
		about, err := s.containers[name].Inspect(contextOf(t))
		require.NoError(t, err)
		if strings.HasPrefix(name, "connector") {
			require.NotContains(t, strings.Join(about.Config.Env, " "), s.token)
		}
	}
}

// end stops our containers as a scheduler does, by a signal: each ends in order.
func (s *stack) end(t *testing.T) {
	for _, name := range []string{connectorOne, connectorTwo, proxy, toolService, upstream} {
		require.Equal(t, 0, s.stop(t, name), name)
	}
}
