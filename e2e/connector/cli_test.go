package connector_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

func TestCommandCall(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	service := []string{"--service", kit.Name}
	call := func(stdin string, args ...string) harness.Outcome {
		return temporal.Run(t, stdin, append(append([]string{"call"}, service...), args...)...)
	}
	file := filepath.Join(t.TempDir(), "args.json")
	require.NoError(t, os.WriteFile(file, []byte(oneLine(hard)+"\n"), 0o600))

	for name, c := range map[string]struct {
		stdin  string
		args   []string
		code   int
		stdout string // exact JSON, or text
	}{
		"arguments":       {args: []string{"echo", `{"a":9007199254740993,"b":"<b>"}`}, stdout: `{"a":9007199254740993,"b":"<b>"}`},
		"no arguments":    {args: []string{"echo"}, stdout: `{}`},
		"a file":          {args: []string{"echo", "@" + file}, stdout: hard},
		"standard input":  {stdin: hard, args: []string{"echo", "-"}, stdout: hard},
		"flags behind":    {args: []string{"echo", `{"a":-0}`, "--wait", "20s"}, stdout: `{"a":-0}`},
		"text":            {args: []string{"pick", `{"value":"a <b>\n"}`}, stdout: "a <b>\n"},
		"a long call":     {args: []string{"slow", `{"seconds":2,"value":1e400}`}, stdout: "1e400"},
		"a tool error":    {args: []string{"fail", `{"as":"tool","details":{"content":[{"type":"text","text":"no <way>"}],"isError":true}}`}, code: 1, stdout: "no <way>"},
		"a failure":       {args: []string{"fail", `{"as":"error"}`}, code: 1, stdout: "it does not <work>"},
		"other content":   {args: []string{"content", `{"result":{"content":[{"type":"hologram","n":1.0}]}}`}, stdout: `{"type":"hologram","n":1.0}`},
		"not long enough": {args: []string{"slow", `{"seconds":600}`, "--wait=1s"}, code: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := call(c.stdin, c.args...)
			require.Equal(t, c.code, o.Code, "%s\n%s", o.Stdout, o.Stderr)
			require.Equal(t, 1, strings.Count(o.Stderr, "operation mcp-stdio-stateful-"), "%s", o.Stderr)
			require.True(t, strings.HasPrefix(o.Stderr, "operation mcp-") || strings.Contains(o.Stderr, "\noperation mcp-"), "%s", o.Stderr)
			if strings.HasPrefix(c.stdout, "{") {
				harness.RequireExact(t, c.stdout, o.Stdout)
			} else {
				require.Equal(t, c.stdout, strings.TrimSuffix(o.Stdout, "\n"))
			}
			if c.code == 3 {
				require.Empty(t, o.Stdout)
				require.Contains(t, o.Stderr, "get_operation_result")
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		o := call("", "--json", "echo", `{"a":1.0}`)
		require.Zero(t, o.Code)
		harness.RequireExact(t, `{"content":[{"type":"text","text":"{\"a\":1.0}"}],"structuredContent":{"a":1.0}}`, o.Stdout)
		o = call("", "slow", `{"seconds":600}`, "--json", "--wait", "500ms")
		require.Equal(t, 3, o.Code)
		var r harness.ToolResult
		require.NoError(t, json.Unmarshal([]byte(o.Stdout), &r))
		require.Contains(t, o.Stderr, r.Running(t))
		o = call("", "fail", `{"as":"unknown"}`, "--json")
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stdout, `"io.temporal/outcome":"unknown"`)
	})
	t.Run("protocol error", func(t *testing.T) {
		t.Parallel()
		o := call("", "fail", `{"as":"protocol","details":{"code":-32042,"message":"ask first"}}`)
		require.Equal(t, 1, o.Code)
		require.Empty(t, o.Stdout)
		require.Contains(t, o.Stderr, "ask first")
	})
	t.Run("unknown tool", func(t *testing.T) {
		t.Parallel()
		o := call("", "absent")
		require.Equal(t, 1, o.Code)
		require.Empty(t, o.Stdout)
		require.Contains(t, o.Stderr, `"absent"`)
	})
	t.Run("bad arguments", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{}, {"echo", "[1]"}, {"echo", "{garbage"}, {"echo", "@/no/such/file"}, {"echo", "{}", "{}"}, {"echo", "{}", "--wait", "-1s"}} {
			o := call("", args...)
			require.Equal(t, 2, o.Code, "%v: %s", args, o.Stderr)
			require.Empty(t, o.Stdout)
			require.NotContains(t, o.Stderr, "operation mcp-", "nothing was started")
		}
	})
}

// TestCommandCallInterrupted: a signal ends the wait, not the call, and what is
// printed is the way back to it.
func TestCommandCallInterrupted(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	line, caller := harness.Unique("line"), harness.Unique("caller")
	args := []string{"--service", kit.Name, "--caller", caller}
	p := temporal.Command(t, append([]string{"call"}, append(args, "slow", `{"seconds":4,"line":"`+line+`","value":"done"}`)...)...)
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	p.Signal(t, syscall.SIGINT)
	require.Equal(t, 3, p.Exit(t))
	require.Empty(t, p.Stdout.String())
	id := strings.Fields(p.Stderr.String()[strings.Index(p.Stderr.String(), "operation mcp-"):])[1]
	o := temporal.Run(t, "", append([]string{"call"}, append(args, "get_operation_result", `{"operation_id":"`+id+`"}`)...)...)
	require.Zero(t, o.Code, "%s", o.Stderr)
	require.Equal(t, "done\n", o.Stdout)
	require.Zero(t, kit.Effects(t, "cancelled "+line))
}

func TestCommandTools(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	o := temporal.Run(t, "", "tools", "--service", kit.Name+",prefix=kit")
	require.Zero(t, o.Code, "%s", o.Stderr)
	require.Contains(t, o.Stdout, kit.Name)
	require.Regexp(t, `kit_slow +workflow +no timeout +Takes its time\.`, o.Stdout)
	require.Regexp(t, `kit_brief +- +8s +Has eight seconds\.`, o.Stdout)
	require.Contains(t, o.Stdout, "Bad Name")

	o = temporal.Run(t, "", "tools", "--json", "--service", kit.Name, "--service", "absent=no-such-endpoint")
	require.Equal(t, 1, o.Code, "a service failed")
	var reports struct {
		Services []struct {
			Service  string
			Error    string
			Warnings []string
			Tools    []struct {
				Name, Kind string
				TimeoutMS  int `json:"timeout_ms"`
				Tool       json.RawMessage
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(o.Stdout), &reports))
	require.Len(t, reports.Services, 2)
	require.Len(t, reports.Services[0].Tools, 15)
	require.Len(t, reports.Services[0].Warnings, 1)
	for _, tool := range reports.Services[0].Tools {
		if tool.Name == "echo" {
			require.Contains(t, string(tool.Tool), "9007199254740993")
			require.Equal(t, "sync", tool.Kind)
		}
	}
	require.Contains(t, reports.Services[1].Error, "no-such-endpoint")
	require.Empty(t, reports.Services[1].Tools)
}

func TestCommandDoctor(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	clean := temporal.StartService(t)
	clean.SetManifest(t, manifest("echo"))
	type checks struct {
		OK     bool
		Checks []struct {
			Check, Service, Detail, Remedy string
			OK                             bool
		}
	}
	doctor := func(s *harness.Temporal, args ...string) (checks, map[string]bool) {
		o := s.Run(t, "", append([]string{"doctor", "--json"}, args...)...)
		var c checks
		require.NoError(t, json.Unmarshal([]byte(o.Stdout), &c), "%s\n%s", o.Stdout, o.Stderr)
		require.Equal(t, c.OK, o.Code == 0)
		require.LessOrEqual(t, o.Code, 1)
		ok := map[string]bool{}
		for _, k := range c.Checks {
			ok[strings.TrimSpace(k.Check+" "+k.Service)] = k.OK
			require.Equal(t, k.OK, k.Remedy == "", "%+v: what fails has a remedy", k)
		}
		return c, ok
	}
	c, ok := doctor(temporal, "--service", clean.Name)
	require.True(t, c.OK, "%+v", c)
	require.Equal(t, map[string]bool{
		"address": true, "namespace": true, "standalone operations": true, "services": true, "endpoint " + clean.Name: true,
		"activity callbacks": true, "worker " + clean.Name: true, "manifest " + clean.Name: true, "names": true,
	}, ok)

	idle := temporal.PrepareService(t)
	_, ok = doctor(temporal, "--service", kit.Name, "--service", idle.Name, "--service", "absent=no-such-endpoint", "--discovery-timeout", "10s")
	require.True(t, ok["worker "+kit.Name])
	require.True(t, ok["manifest "+kit.Name])
	require.False(t, ok["names"], "Bad Name")
	require.True(t, ok["endpoint "+idle.Name])
	require.False(t, ok["worker "+idle.Name])
	require.False(t, ok["manifest "+idle.Name])
	require.False(t, ok["endpoint absent"])

	bare := harness.StartTemporal(t)
	service := bare.StartService(t)
	_, ok = doctor(bare, "--service", service.Name)
	require.True(t, ok["address"])
	require.False(t, ok["standalone operations"])
	require.False(t, ok["activity callbacks"])
	require.True(t, ok["worker "+service.Name])

	_, ok = doctor(&harness.Temporal{Address: "127.0.0.1:1"}, "--service", "any")
	require.Equal(t, map[string]bool{"address": false}, ok)

	o := temporal.Run(t, "", "doctor", "--service", idle.Name, "--discovery-timeout", "2s")
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stdout, "FAIL  worker "+idle.Name)
	require.Contains(t, o.Stdout, "→ Start a worker")
	require.Contains(t, o.Stdout, "ok    address")

	_, ok = doctor(temporal, "--service", clean.Name, "--temporal-namespace", "no-such-namespace")
	require.False(t, ok["namespace"])
}

func TestCommandVersionAndHelp(t *testing.T) {
	t.Parallel()

	o := harness.RunConnector(t, "", nil, "--version")
	require.Zero(t, o.Code)
	require.Regexp(t, `^durable-mcp-connector version (v\S+|\(devel\)( [0-9a-f]{7}( dirty)?)?)\n$`, o.Stdout)
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"tools", "--help"}, {"call", "--help"}, {"doctor", "-h"}} {
		o := harness.RunConnector(t, "", nil, args...)
		require.Zero(t, o.Code, "%v %s", args, o.Stderr)
		require.Empty(t, o.Stderr)
		require.Contains(t, o.Stdout, "--service")
		require.Contains(t, o.Stdout, "DURABLE_MCP_SERVICE")
		require.Contains(t, o.Stdout, "default: 5s")
	}
}

// TestCommandUsage: what is wrong with the command line is exit 2, says where, and
// reaches no server. Standard output stays clean.
func TestCommandUsage(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "--service"},
		{[]string{"serve"}, "--service"},
		{[]string{"--nonsense"}, "nonsense"},
		{[]string{"nonsense"}, "nonsense"},
		{[]string{"--service", "a", "--transport", "carrier-pigeon"}, "--transport"},
		{[]string{"--service", "a", "--wait-budget", "soon"}, "wait-budget"},
		{[]string{"--service", "a", "--wait-budget", "0s"}, "--wait-budget"},
		{[]string{"--service", "a", "--refresh-interval", "-1s"}, "--refresh-interval"},
		{[]string{"--service", "a", "--tasks", "maybe"}, "--tasks"},
		{[]string{"--service", "a", "--poll-tools", "maybe"}, "--poll-tools"},
		{[]string{"--service", "a", "--log-level", "loud"}, "--log-level"},
		{[]string{"--service", "a", "--log-format", "xml"}, "--log-format"},
		{[]string{"--service", "=x"}, "--service"},
		{[]string{"--service", "a="}, "--service"},
		{[]string{"--service", "a,prefix=ä"}, "prefix"},
		{[]string{"--service", "a,suffix=b"}, "suffix"},
		{[]string{"--service", "a", "--service", "a"}, "twice"},
		{[]string{"--service", "a", "--transport", "http", "--listen", "0.0.0.0:0"}, "--allow-host"},
		{[]string{"--service", "a", "--transport", "http", "--listen", "nonsense"}, "--listen"},
		{[]string{"--service", "a", "--temporal-profile", "no-such-profile"}, "no-such-profile"},
		{[]string{"tools", "--service", "a", "extra"}, "extra"},
		{[]string{"doctor", "--service", "a", "extra"}, "extra"},
		{[]string{"call", "--service", "a"}, "TOOL"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			o := harness.RunConnector(t, "", []string{"TEMPORAL_ADDRESS=127.0.0.1:1"}, c.args...)
			require.Equal(t, 2, o.Code, "%s", o.Stderr)
			require.Empty(t, o.Stdout)
			require.Contains(t, o.Stderr, c.says)
			require.Less(t, time.Since(began), 20*time.Second)
		})
	}
	t.Run("all faults at once", func(t *testing.T) {
		t.Parallel()
		o := harness.RunConnector(t, "", nil, "--service", "a", "--tasks", "maybe", "--transport", "pigeon", "--wait-budget", "0s")
		require.Equal(t, 2, o.Code)
		for _, flag := range []string{"--tasks", "--transport", "--wait-budget"} {
			require.Contains(t, o.Stderr, flag)
		}
	})
}

// TestSettingsFromTheEnvironment: each flag has a variable, and a flag wins.
func TestSettingsFromTheEnvironment(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	a, b := temporal.StartService(t), temporal.StartService(t)
	a.SetManifest(t, manifest("echo"))
	b.SetManifest(t, manifest("note"))
	o := harness.RunConnector(t, "", []string{
		"TEMPORAL_ADDRESS=127.0.0.1:1", "DURABLE_MCP_TEMPORAL_ADDRESS=" + temporal.Address, "DURABLE_MCP_SERVICE=" + a.Name + " " + b.Name,
	}, "tools")
	require.Zero(t, o.Code, "%s\n%s", o.Stdout, o.Stderr)
	require.Contains(t, o.Stdout, "echo")
	require.Contains(t, o.Stdout, "note")
	o = harness.RunConnector(t, "", []string{"DURABLE_MCP_TEMPORAL_ADDRESS=127.0.0.1:1", "DURABLE_MCP_SERVICE=" + a.Name},
		"tools", "--temporal-address", temporal.Address, "--service", b.Name)
	require.Zero(t, o.Code, "%s\n%s", o.Stdout, o.Stderr)
	require.NotContains(t, o.Stdout, "echo")

	p := temporal.StartStdio(t, "--service", a.Name)
	require.NoError(t, p.Stdin.Close())
	require.Zero(t, p.Exit(t))
	o = temporal.Run(t, "", "serve", "--service", a.Name)
	require.Zero(t, o.Code, "%s", o.Stderr)
	o = harness.RunConnector(t, "", []string{"DURABLE_MCP_SERVICE=" + a.Name}, "serve", "--temporal-address", temporal.Address)
	require.Zero(t, o.Code, "%s", o.Stderr)
	o = harness.RunConnector(t, "", nil, "--service", a.Name, "serve", "--temporal-address", temporal.Address)
	require.Zero(t, o.Code, "%s", o.Stderr)
}
