package proxy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// TestCheck: what would be served, for people and for scripts, without a Temporal
// server.
func TestCheck(t *testing.T) {
	t.Parallel()

	u, v := harness.PrepareUpstream(t, "--protocols", legacy, "--odd"), harness.StartUpstream(t)
	config := harness.WriteProxyConfig(t, map[string]harness.ProxyServer{
		"first":  u.Server(harness.ProxyServer{"tool_policies": map[string]any{"destroy": map[string]any{"at_most_once": false, "start_to_close_timeout": "3s"}}, "tool_filters": map[string]any{"rejected": []string{"env"}}}),
		"second": v.Server(harness.ProxyServer{"prefix": "two"}),
		"third":  {"command": "/no/such/program", "disabled": true},
	})
	out := harness.RunProxy(t, "", nil, "check", "--config", config)
	t.Logf("%s\n%s", out.Stdout, out.Stderr)
	require.Zero(t, out.Code)
	for _, want := range []string{"first", "second", "upstream", "1.2.3", "2025-11-25", "2026-07-28", "two_echo", "readOnlyHint", "idempotentHint", "tool_policies", "caller", "shared"} {
		require.Contains(t, out.Stdout, want)
	}
	raw := harness.RunProxy(t, "", nil, "check", "--json", "--config", "file://"+config)
	require.Zero(t, raw.Code)
	require.True(t, json.Valid([]byte(raw.Stdout)), "%s", raw.Stdout)
	require.Contains(t, raw.Stdout, "a.b")

	data, err := os.ReadFile(config)
	require.NoError(t, err)
	one := harness.RunProxy(t, string(data), nil, "check", "--json", "--config", "-", "--server", "second")
	require.Zero(t, one.Code, one.Stderr)
	require.NotContains(t, one.Stdout, "first")
	for _, e := range u.Entries(t, upstream.EventStart) {
		require.False(t, harness.Alive(e.PID))
	}
}

// TestExitCodes: 1 for work that failed, 2 for a file or flags that are wrong.
func TestExitCodes(t *testing.T) {
	t.Parallel()

	good := harness.PrepareUpstream(t)
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "mcp.json")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	missing := harness.WriteProxyConfig(t, map[string]harness.ProxyServer{"good": good.Server(), "bad": {"command": "/no/such/program"}})
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"a server fails":        {[]string{"check", "--config", missing}, 1, []string{"bad"}},
		"the good one alone":    {[]string{"check", "--config", missing, "--server", "good"}, 0, nil},
		"no such server":        {[]string{"check", "--config", missing, "--server", "ugly"}, 2, []string{"ugly"}},
		"no file":               {[]string{"check", "--config", "/no/such/file.json"}, 2, []string{"/no/such/file.json"}},
		"no config":             {[]string{"check"}, 2, []string{"config"}},
		"serve without config":  {nil, 2, []string{"config"}},
		"an unknown flag":       {[]string{"check", "--cofnig", "x"}, 2, nil},
		"an unknown command":    {[]string{"chekc"}, 2, nil},
		"no JSON":               {[]string{"check", "--config", file(`{"mcpServers":`)}, 2, nil},
		"an entry is no object": {[]string{"check", "--config", file(`{"mcpServers":{"a":7}}`)}, 2, []string{"mcpServers.a"}},
		"both":                  {[]string{"check", "--config", file(`{"mcpServers":{"a":{"command":"x","url":"http://x/"}}}`)}, 2, []string{"mcpServers.a", "command", "url"}},
		"neither":               {[]string{"check", "--config", file(`{"mcpServers":{"a":{}}}`)}, 2, []string{"mcpServers.a"}},
		"all faults at once":    {[]string{"check", "--config", file(`{"mcpServers":{"a":{"command":7},"b":{"url":"ftp://x"},"c":{"command":"x","policy":{"retry":{"maximum_attempts":"many"}}}}}`)}, 2, []string{"mcpServers.a.command", "mcpServers.b.url", "mcpServers.c.policy.retry.maximum_attempts"}},
		"owned header":          {[]string{"check", "--config", file(`{"mcpServers":{"a":{"url":"http://x/","headers":{"mcp-SESSION-id":"x"}}}}`)}, 2, []string{"mcpServers.a.headers", "SESSION-id"}},
		"a missing variable":    {[]string{"check", "--config", file(`{"mcpServers":{"a":{"command":"${NO_SUCH_VARIABLE}"}}}`)}, 2, []string{"mcpServers.a", "NO_SUCH_VARIABLE"}},
		"wrong version":         {[]string{"check", "--config", file(`{"mcpServers":{"a":{"command":"x","protocol_version":"2099-01-01"}}}`)}, 2, []string{"2099-01-01"}},
		"version":               {[]string{"--version"}, 0, nil},
		"help":                  {[]string{"--help"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := harness.RunProxy(t, "", nil, c.args...)
			t.Logf("%d\n%s%s", out.Code, out.Stdout, out.Stderr)
			require.Equal(t, c.code, out.Code)
			for _, say := range c.says {
				require.Contains(t, out.Stdout+out.Stderr, say)
			}
			require.NotContains(t, out.Stderr, "goroutine ")
		})
	}
	warned := harness.RunProxy(t, "", nil, "check", "--config", harness.WriteProxyConfig(t, map[string]harness.ProxyServer{
		"good": good.Server(harness.ProxyServer{"tool_filter": map[string]any{}}),
	}))
	require.Zero(t, warned.Code)
	require.Contains(t, warned.Stdout+warned.Stderr, "tool_filters", "an unknown key is a warning with the nearest one")
}

// TestEndpointsAreNeverChanged: --ensure-endpoints creates what is missing, and
// refuses what leads elsewhere.
func TestEndpointsAreNeverChanged(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	name := harness.Unique("taken")
	temporal.CreateEndpoint(t, name, "another-queue")
	p := temporal.PrepareProxy(t, map[string]harness.ProxyServer{name: harness.PrepareUpstream(t).Server()})
	p.Launch(t)
	require.NotZero(t, p.Exit(t))
	require.Contains(t, p.Stderr.String(), "another-queue")
}

// TestStartFails: a server that is away keeps the worker from starting, unless the
// file says that it may go on.
func TestStartFails(t *testing.T) {
	t.Parallel()

	u := harness.PrepareUpstream(t)
	u.Fault(t, upstream.Fault{Name: upstream.FaultExitAtStart, Code: 3, Text: "no licence found"})
	p := harness.Shared(t).PrepareProxy(t, map[string]harness.ProxyServer{harness.Unique("up"): u.Server()})
	p.Launch(t)
	require.Equal(t, 1, p.Exit(t))
	require.Contains(t, p.Stderr.String(), "no licence found")
	require.Empty(t, p.Stdout.String())
}

// TestTemporalComesUp: a Temporal that is away is waited for, and a signal ends that.
func TestTemporalComesUp(t *testing.T) {
	t.Parallel()

	away := &harness.Temporal{Address: "127.0.0.1:1"}
	p := away.PrepareProxy(t, map[string]harness.ProxyServer{"up": harness.PrepareUpstream(t).Server()})
	p.Launch(t)
	p.Stderr.Await(t, "Temporal cannot be reached")
	require.False(t, p.Ready())
	p.Signal(t, syscall.SIGTERM)
	p.Exit(t)
}

// TestShutdown: calls under way are answered, and a second signal ends at once.
func TestShutdown(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t))
	p.works(t)
	call := p.start(t, upstream.ToolPlain, upstream.Script{Key: "k", Wait: p.upstream.File("go")})
	p.upstream.AwaitRun(t, "k")
	p.proxy.Signal(t, syscall.SIGTERM)
	time.AfterFunc(500*time.Millisecond, func() { p.upstream.Release(t, "go") })
	require.Equal(t, "done k", call.Answer(t).ToolResult(t).Text(t))
	require.Zero(t, p.proxy.Exit(t))
	require.Equal(t, 1, p.upstream.Runs(t, "k"))
	require.Empty(t, p.proxy.Stdout.String(), "logs go to standard error")
}

// TestEnvironment: a child has what the file gives it, what is on the list, and no
// more; its arguments as they are.
func TestEnvironment(t *testing.T) {
	t.Parallel()

	u := harness.PrepareUpstream(t)
	_, args := u.Command()
	odd := []string{"a b", `"quoted"`, "", "ünï", "$HOME", "back\\slash", "*", "--flag"}
	args = append(append(append([]string{}, args...), "idle"), odd...)
	dir := t.TempDir()
	service := harness.Unique("up")
	proxy := harness.Shared(t).PrepareProxy(t, map[string]harness.ProxyServer{service: u.Server(harness.ProxyServer{
		"args": escaped(args), "cwd": dir, "env": map[string]string{"GIVEN": "${FROM} $$HOME", "EMPTY": ""}, "inherit_env": []string{"PATH", "LISTED"},
	})}).WithEnv("FROM=proxy", "LISTED=yes", "SECRET_TOKEN=no", "AWS_SECRET_ACCESS_KEY=no")
	proxy.Start(t)
	p := path{Peer: peer(t, legacy, service)}
	awaitTools(t, p.Peer)
	var got struct {
		Env, Args []string
		Dir       string
	}
	require.NoError(t, json.Unmarshal(p.Tool(t, "env", `{}`).Structured, &got))
	require.Equal(t, args, got.Args)
	require.Equal(t, dir, got.Dir)
	names := map[string]string{}
	for _, v := range got.Env {
		name, value, _ := strings.Cut(v, "=")
		names[name] = value
	}
	require.Equal(t, os.Getenv("PATH"), names["PATH"])
	delete(names, "PATH")
	delete(names, "PWD") // of the child's own making
	require.Equal(t, map[string]string{"GIVEN": "proxy $HOME", "EMPTY": "", "LISTED": "yes"}, names)
}

func escaped(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "$", "$$")
	}
	return out
}
