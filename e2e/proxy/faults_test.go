package proxy_test

import (
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestWrongAnswers: an answer that is none is never taken for one, and never waited
// for without an end; what is merely odd is read. The tool has run either way.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()

	type fault struct {
		upstream.Fault
		harmless bool // the answer is right all the same
		http     bool // only over HTTP
		silent   bool // over stdio there is nothing to tell it from a slow answer
	}
	faults := []fault{
		{Fault: upstream.Fault{Name: upstream.FaultStrayAnswer}, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultInterleaved}, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultFragments}, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultPing}, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultWrongID}, silent: true},
		{Fault: upstream.Fault{Name: upstream.FaultJSONRPC1}},
		{Fault: upstream.Fault{Name: upstream.FaultBoth}},
		{Fault: upstream.Fault{Name: upstream.FaultNeither}},
		{Fault: upstream.Fault{Name: upstream.FaultGarbage}, silent: true},
		{Fault: upstream.Fault{Name: upstream.FaultHalf}},
		{Fault: upstream.Fault{Name: upstream.FaultCutAfter}},
		{Fault: upstream.Fault{Name: upstream.FaultStatusAfter, Status: 500, Text: "oops"}, http: true},
		{Fault: upstream.Fault{Name: upstream.FaultStatusAfter, Status: 202}, http: true},
		{Fault: upstream.Fault{Name: upstream.FaultStatusAfter, Status: 204}, http: true},
		{Fault: upstream.Fault{Name: upstream.FaultContentType, Text: "text/html"}, http: true},
		{Fault: upstream.Fault{Name: upstream.FaultAs, Text: "sse"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultSSE, Text: "crlf"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultSSE, Text: "cr"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultSSE, Text: "lines"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultSSE, Text: "bare"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultSSE, Text: "noise"}, http: true, harmless: true},
		{Fault: upstream.Fault{Name: upstream.FaultContentType, Text: "application/json; charset=utf-8"}, http: true, harmless: true},
	}
	for _, w := range ways {
		if w.name == "sse 2024-11-05" || w.name == "stdio 2024-11-05" || w.name == "http 2025-03-26" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			u := w.upstream(t)
			p := through(t, u, w.more, harness.ProxyServer{"tool_policies": map[string]any{
				upstream.ToolPlain: map[string]any{"start_to_close_timeout": "12s"},
			}})
			p.works(t)
			for _, f := range faults {
				if f.http && !w.http {
					continue
				}
				f.Tool, f.Times = upstream.ToolPlain, 1
				u.Fault(t, f.Fault)
				key := harness.Unique(f.Name)
				began := time.Now()
				r := p.run(t, upstream.ToolPlain, upstream.Script{Key: key})
				t.Logf("%s %s %d, after %v: %.300s", f.Name, f.Text, f.Status, time.Since(began).Round(time.Millisecond), r.Raw)
				require.Len(t, u.Entries(t, upstream.EventFault), faultsUntil(t, u), "the fault has not taken place")
				require.Equal(t, 1, u.Runs(t, key), "%s: a tool that runs at most once", f.Name)
				if f.harmless {
					require.False(t, r.IsError, "%s: %s", f.Name, r.Raw)
					require.Equal(t, "done "+key, r.Text(t))
				} else {
					outcomeUnknown(t, r)
				}
				if !f.silent || w.http {
					require.Less(t, time.Since(began), 9*time.Second, "%s: it is known at once", f.Name)
				}
				u.Fault(t)
				p.works(t)
			}
			u.NoViolation(t)
		})
	}
}

// faultsUntil is the number of entries there are, once there is one at all.
func faultsUntil(t *testing.T, u *harness.Upstream) int {
	t.Helper()
	n := len(u.Entries(t, upstream.EventFault))
	require.NotZero(t, n)
	return n
}

// TestHandshakes: what a server does in the handshake decides whether it is served,
// and nothing is left of one that failed.
func TestHandshakes(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		flags  []string
		faults []upstream.Fault
		more   harness.ProxyServer
		http   bool
		fails  string // what check says; empty: it works
	}{
		"silent on server/discover": {
			flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultSilent, Method: "server/discover"}},
		},
		"dies of server/discover": {
			flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultExit, Method: "server/discover", Code: 1}},
		},
		"takes six seconds": {
			flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultDelay, Method: "initialize", Millis: 6000}},
		},
		"takes six seconds, pinned": {
			faults: []upstream.Fault{{Name: upstream.FaultDelay, Method: "server/discover", Millis: 6000}},
			more:   harness.ProxyServer{"protocol_version": "2026-07-28"},
		},
		"takes longer than it may": {
			faults: []upstream.Fault{{Name: upstream.FaultDelay, Millis: 60_000}},
			more:   harness.ProxyServer{"startup_timeout": "2s"}, fails: "2s",
		},
		"banner":                      {faults: []upstream.Fault{{Name: upstream.FaultBanner, Text: "Welcome!\n{\"version\": 1}"}}},
		"JSON-RPC on standard error":  {faults: []upstream.Fault{{Name: upstream.FaultStderr, Text: `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`}}},
		"exits at once":               {faults: []upstream.Fault{{Name: upstream.FaultExitAtStart, Code: 3, Text: "no licence found"}}, fails: `(?s)3.*no licence found|no licence found.*3`},
		"half an answer":              {faults: []upstream.Fault{{Name: upstream.FaultHalf}}, fails: "."},
		"an unknown version":          {flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultVersion, Text: "2099-01-01"}}, fails: "2099-01-01"},
		"wrong id":                    {flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultWrongID}}, more: harness.ProxyServer{"startup_timeout": "8s"}, fails: "."},
		"jsonrpc 1.0":                 {faults: []upstream.Fault{{Name: upstream.FaultJSONRPC1}}, more: harness.ProxyServer{"startup_timeout": "8s"}, fails: "."},
		"no tools":                    {flags: []string{"--without", "tools"}},
		"HTTP 500":                    {http: true, faults: []upstream.Fault{{Name: upstream.FaultStatus, Status: 500, Text: "secret body"}}, fails: "500"},
		"HTTP 401":                    {http: true, faults: []upstream.Fault{{Name: upstream.FaultStatus, Status: 401, Text: "secret body"}}, fails: "401"},
		"HTTP 404 of discover":        {http: true, flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultStatus, Method: "server/discover", Status: 404}}},
		"HTTP 405 of discover":        {http: true, flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultStatus, Method: "server/discover", Status: 405}}},
		"HTTP 400 of discover, HTML":  {http: true, flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultStatus, Method: "server/discover", Status: 400, Text: "<html>"}}},
		"HTTP 405 of the GET":         {http: true, flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultStatus, Method: "GET", Status: 405}}},
		"HTTP 500 of the GET":         {http: true, flags: []string{"--protocols", legacy}, faults: []upstream.Fault{{Name: upstream.FaultStatus, Method: "GET", Status: 500}}},
		"HTTP: hangs on server/disco": {http: true, faults: []upstream.Fault{{Name: upstream.FaultSilent}}, more: harness.ProxyServer{"startup_timeout": "3s"}, fails: "3s"},
		"pinned":                      {more: harness.ProxyServer{"protocol_version": "2025-06-18"}},
		"pinned to another":           {flags: []string{"--protocols", legacy}, more: harness.ProxyServer{"protocol_version": "2025-06-18"}, fails: "2025-11-25"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := harness.PrepareUpstream(t, c.flags...)
			if c.http {
				u = harness.StartUpstream(t, c.flags...)
			}
			u.Fault(t, c.faults...)
			service := harness.Unique("up")
			config := harness.WriteProxyConfig(t, map[string]harness.ProxyServer{service: u.Server(quick, c.more)})
			began := time.Now()
			out := harness.RunProxy(t, "", nil, "check", "--config", config)
			t.Logf("after %v: %s%s", time.Since(began).Round(time.Millisecond), out.Stdout, out.Stderr)
			for _, e := range append(u.Entries(t, upstream.EventStart), u.Entries(t, upstream.EventChild)...) {
				require.True(t, c.http || !harness.Alive(e.PID), "process %d is left", e.PID)
			}
			u.NoViolation(t)
			if c.fails == "" {
				require.Zero(t, out.Code)
				return
			}
			require.Equal(t, 1, out.Code)
			require.Regexp(t, c.fails, out.Stdout+out.Stderr)
			require.NotContains(t, out.Stdout, "secret body")
		})
	}
}
