package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "pl4nted-s3cret-value"

func TestCheck(t *testing.T) {
	t.Parallel()

	path := file(t, `{"mcpServers": {
		"box": {"command": $SELF, "args": ["scripted-server", "--name", "Box\u001b[2J"], "service": "box-service", "prefix": "b",
			"tool_filters": {"rejected": ["p.y"]}, "policy": {"start_to_close_timeout": "90s", "at_most_once": false},
			"tool_policies": {"put": {"at_most_once": true}, "look": {"retry": {"maximum_attempts": 2}, "heartbeat_timeout": 2.5}}},
		"off": {"disabled": true},
		"shared": {"command": $SELF, "args": ["scripted-server"], "session": "shared", "comand": "x"}
	}}`)
	p := start(t, "", nil, "check", "--config", path)
	require.Equal(t, exitDone, p.wait(t), p.err.String())
	require.Empty(t, p.err.String())
	require.Equal(t, `box (service box-service): Box�[2J 1.2, MCP 2025-11-25
  session: caller (the protocol has session state; "shared" is faster for a server that keeps none)
  TOOL           RUN AGAIN  WHY            ATTEMPTS  ONE ATTEMPT  IN ALL  HEARTBEAT
  b_look (look)  yes        tool_policies  2         10m          1h      2.5s
  b_put (put)    no         tool_policies  5         10m          1h      10s
  b_send (send)  yes        policy         5         1m30s        1h      10s
  b_get_all (get/all)
                 yes        policy         5         1m30s        1h      10s
  left out by tool_filters: pay
  warning: tool "get/all" is served as "b_get_all": its name cannot be that of an operation
shared: scripted 1.2, MCP 2025-11-25
  session: shared (it is set)
  TOOL               RUN AGAIN  WHY                        ATTEMPTS  ONE ATTEMPT  IN ALL  HEARTBEAT
  look               yes        annotation readOnlyHint    5         10m          1h      10s
  put                yes        annotation idempotentHint  5         10m          1h      10s
  send               no         MCP default                5         10m          1h      10s
  pay                no         annotation idempotentHint  5         10m          1h      10s
  get_all (get/all)  no         MCP default                5         10m          1h      10s
  warning: tool "get/all" is served as "get_all": its name cannot be that of an operation
off: DISABLED
warning: mcpServers.shared.comand: unknown key, ignored; the nearest known one is "command" (line 6)
`, p.out.String())
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()

	path := file(t, `{
		"box": {"command": $SELF, "args": ["scripted-server"], "tool_filters": {"allowed": ["look"]}, "policy": {"schedule_to_start_timeout": 3, "retry": {"non_retryable_error_types": ["x"]}}},
		"dead": {"command": $SELF, "args": ["scripted-server", "--exit", "3"], "env": {$SOON}},
		"gone": {"command": "${NOBODY_SETS_THIS}", "continue_on_error": true}
	}`)
	p := start(t, "", nil, "check", "--json", "--config", path)
	require.Equal(t, exitFailed, p.wait(t))
	require.Empty(t, p.err.String())
	const empty = `"resources":false,"prompts":false,"completions":false,"tools":[],"filtered":[],"warnings":[]`
	require.JSONEq(t, `{"ok":false,"warnings":[],"servers":[
		{"key":"box","service":"box","status":"ok","name":"scripted","version":"1.2","protocol":"2025-11-25",
			"session":{"mode":"caller","reason":"the protocol has session state; \"shared\" is faster for a server that keeps none"},
			"resources":false,"prompts":false,"completions":false,
			"tools":[{"name":"look","upstream_name":"look","repeatable":true,"why":"annotation readOnlyHint","policy":{
				"start_to_close_timeout_ms":600000,"schedule_to_close_timeout_ms":3600000,"schedule_to_start_timeout_ms":3000,"heartbeat_timeout_ms":10000,
				"retry":{"initial_interval_ms":1000,"backoff_coefficient":2,"maximum_interval_ms":30000,"maximum_attempts":5,"non_retryable_error_types":["x"]}}}],
			"filtered":["put","send","pay","get/all"],"warnings":[]},
		{"key":"dead","service":"dead","status":"failed","error":"connect: the server process exited with code 3",`+empty+`},
		{"key":"gone","status":"skipped","error":"gone.command: the environment variable NOBODY_SETS_THIS is not set (line 4)",`+empty+`}
	]}`, p.out.String())
}

// What a server says on its way down is shown, and no secret in it.
func TestCheckShowsNoSecret(t *testing.T) {
	t.Parallel()

	path := file(t, `{
		"says": {"command": $SELF, "args": ["scripted-server", "--exit", "7", "--say", "no licence in $LICENCE"], "env": {"LICENCE": "${SECRET}", $SOON}},
		"silent": {"command": $SELF, "args": ["scripted-server", "--silent"], "env": {"LICENCE": "${SECRET}"}, "startup_timeout": 0.5},
		"web": {"url": "http://me:${SECRET}@127.0.0.1:1/${SECRET}?key=${SECRET}", "headers": {"Authorization": "Bearer ${SECRET}"}},
		"oauth": {"url": "http://127.0.0.1:1/", "auth": {"client_id": "i", "client_secret": "${SECRET}"}}
	}`)
	for _, flags := range [][]string{nil, {"--json"}, {"--log-level", "debug"}} {
		p := start(t, "", []string{"SECRET=" + secret}, append([]string{"check", "--config", path}, flags...)...)
		require.Equal(t, exitFailed, p.wait(t))
		require.NotContains(t, p.out.String()+p.err.String(), secret)
		require.Contains(t, p.out.String(), "exited with code 7")
		require.Contains(t, p.out.String(), "no licence in ***")
		require.Contains(t, p.out.String(), "127.0.0.1:1")
		require.Equal(t, flags != nil && flags[0] == "--log-level", p.err.String() != "")
	}
}

func TestCheckOfAWrongFile(t *testing.T) {
	t.Parallel()

	p := start(t, `{"a":{"command":"c","env":{"A":7}},"b":{"url":"http://h","headers":{"Accept":"`+secret+`"}}}`, nil, "--config", "-", "check", "--continue-on-error")
	require.Equal(t, exitUsage, p.wait(t))
	require.Empty(t, p.out.String())
	require.Equal(t, `durable-mcp-proxy: standard input: 2 faults
  a.env.A: want a string, but it is a number (line 1)
  b.headers.Accept: the header is the transport's own; take it out (line 1)
`, p.err.String())
}

// Each server waits for the other to have started: one after the other they would
// wait for ever.
func TestServersAreConnectedAtOnce(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	a, b := quoted(t, filepath.Join(dir, "a")), quoted(t, filepath.Join(dir, "b"))
	path := file(t, `{
		"a": {"command": $SELF, "args": ["scripted-server", "--started", `+a+`, `+b+`]},
		"b": {"command": $SELF, "args": ["scripted-server", "--started", `+b+`, `+a+`]}
	}`)
	p := start(t, "", nil, "check", "--config", "file://"+path)
	require.Equal(t, exitDone, p.wait(t), p.out.String())
	require.Equal(t, 2, strings.Count(p.out.String(), "scripted 1.2"))

	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	require.NoError(t, os.Remove(filepath.Join(dir, "b")))
	p = start(t, "", nil, "--config", path, "--temporal-address", "127.0.0.1:1")
	require.Eventually(t, func() bool { return strings.Contains(p.err.String(), "Temporal cannot be reached") }, 20*time.Second, 10*time.Millisecond)
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return string(raw)
}
