package servers_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

// TestServers puts all the servers behind one proxy worker. What it answers is
// what the servers answered when they were asked themselves, and it leaves none of
// them behind, be it stopped or killed.
func TestServers(t *testing.T) {
	t.Parallel()

	peers.Dir(t)
	temporal := harness.Shared(t)
	base, token := t.TempDir(), harness.Unique("mark")
	type asked struct {
		server
		service, dir, url string
		tools             harness.Message
		answers           []harness.Message
	}
	var list []*asked
	entries := map[string]harness.ProxyServer{}
	for _, s := range servers { //nolint:paralleltest // the proxy starts when all have answered
		if strings.Contains(s.name, "binary") && (runtime.GOOS != "linux" || runtime.GOARCH != "amd64") {
			continue // its maker's packages for other systems are not installed
		}
		a := &asked{server: s, service: harness.Unique("srv"), dir: s.dir(t, base)}
		if s.url != "" {
			a.url = s.listen(t, a.dir)
		}
		t.Run("itself: "+s.name, func(t *testing.T) {
			p := s.direct(t, a.dir, a.url)
			a.tools = p.Call(t, "tools/list", `{}`)
			require.Nil(t, a.tools.Error)
			a.answers = s.send(t, p, a.dir)
			require.Len(t, a.answers, len(s.calls))
			require.False(t, a.answers[0].ToolResult(t).IsError, "%s", a.answers[0].Raw)
		})
		require.False(t, t.Failed())
		s.dir(t, base)
		entries[a.service] = s.entry(t, a.dir, a.url, token)
		list = append(list, a)
	}
	proxy := temporal.StartProxy(t, entries)
	through := func(t *testing.T, a *asked) *harness.Peer {
		t.Helper()
		return temporal.StartStdio(t, "--service", a.service, "--wait-budget", harness.Patience.String(), "--poll-tools", "off").
			Speak(t, harness.Revision2025November)
	}

	t.Run("through the proxy", func(t *testing.T) {
		for _, a := range list {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				p := through(t, a)
				requireTools(t, a.server, a.tools, p.Call(t, "tools/list", `{}`))
				for i, answer := range a.send(t, p, a.dir) {
					requireSame(t, a.calls[i].method+" "+a.calls[i].params, a.answers[i], answer)
				}
			})
		}
	})
	t.Run("check", func(t *testing.T) { //nolint:paralleltest // the proxy ends after it
		out := harness.RunProxy(t, "", nil, "check", "--json", "--config", proxy.Config)
		require.Zero(t, out.Code, "%s\n%s", out.Stdout, out.Stderr)
		for _, a := range list {
			requireReport(t, out.Stdout, a.service, a.server, a.tools)
		}
	})

	if runtime.GOOS == "linux" {
		require.NotZero(t, marked(t, token), "the test would prove nothing")
	}
	proxy.Signal(t, syscall.SIGTERM)
	require.Zero(t, proxy.Exit(t))
	require.Zero(t, marked(t, token), "processes of a stopped proxy")

	proxy.Start(t)
	p := through(t, list[0])
	require.False(t, p.Tool(t, "echo", `{"message":"again"}`).IsError)
	proxy.Kill()
	harness.Until(t, func() bool { return marked(t, token) == 0 })
}

// requireTools wants the tools to be served as the server lists them. What the
// connector adds is _meta, and to an output schema that of a call which runs on.
func requireTools(t *testing.T, s server, want, got harness.Message) {
	t.Helper()
	tools := func(m harness.Message) map[string]json.RawMessage {
		var list struct{ Tools []json.RawMessage }
		m.Decode(t, &list)
		require.NotEmpty(t, list.Tools)
		byName := map[string]json.RawMessage{}
		for _, raw := range list.Tools {
			var tool struct{ Name string }
			require.NoError(t, json.Unmarshal(raw, &tool))
			byName[tool.Name] = raw
		}
		require.Len(t, byName, len(list.Tools))
		return byName
	}
	direct, proxied := tools(want), tools(got)
	for name, raw := range direct {
		require.Contains(t, proxied, name)
		w, g := members(t, raw), members(t, proxied[name])
		require.Equal(t, w["outputSchema"] != nil, g["outputSchema"] != nil, name)
		if s.fickle {
			delete(w, "inputSchema")
			delete(g, "inputSchema")
		}
		requireMembers(t, name, w, g, "_meta", "outputSchema", "execution")
	}
	require.Len(t, proxied, len(direct))
}

// requireReport wants the check to say of a server what is true.
func requireReport(t *testing.T, out, service string, s server, tools harness.Message) {
	t.Helper()
	var report struct {
		OK      bool
		Servers []struct {
			Service, Status, Name, Version, Protocol string
			Tools                                    []struct {
				Name       string
				Repeatable bool
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report), "%s", out)
	require.True(t, report.OK)
	var list struct{ Tools []struct{ Name string } }
	tools.Decode(t, &list)
	for _, r := range report.Servers {
		if r.Service != service {
			continue
		}
		require.Equal(t, "ok", r.Status)
		require.Equal(t, s.reported, r.Name)
		require.NotEmpty(t, r.Version)
		require.Len(t, r.Tools, len(list.Tools))
		repeatable := map[string]bool{}
		for _, tool := range r.Tools {
			repeatable[tool.Name] = tool.Repeatable
		}
		for _, tool := range list.Tools {
			require.Contains(t, repeatable, tool.Name)
		}
		for _, name := range s.repeatable {
			require.True(t, repeatable[name], "%s: %s", s.name, name)
		}
		for _, name := range s.once {
			require.False(t, repeatable[name], "%s: %s", s.name, name)
		}
		if s.revision != "" {
			require.Equal(t, s.revision, r.Protocol)
		}
		return
	}
	require.Fail(t, "the check does not know "+s.name, "%s", out)
}

// TestNegotiation: the newest revision is found without being pinned, unless the
// server takes too long to start; the log says so then.
func TestNegotiation(t *testing.T) {
	t.Parallel()

	s := servers[slices.IndexFunc(servers, func(s server) bool { return s.name == "time, Python" })]
	s.revision = ""
	config := harness.WriteProxyConfig(t, map[string]harness.ProxyServer{"time": s.entry(t, t.TempDir(), "", "")})
	out := harness.RunProxy(t, "", nil, "check", "--json", "--config", config)
	require.Zero(t, out.Code, "%s\n%s", out.Stdout, out.Stderr)
	if strings.Contains(out.Stderr, "silent on the modern probe") {
		require.Contains(t, out.Stdout, harness.Revision2025November)
		return
	}
	require.Contains(t, out.Stdout, harness.Revision2026)
}
