package connector_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// failure is what goes with an error result that the product made.
type failure struct {
	Type      string
	Retryable bool
}

func failureOf(t *testing.T, r harness.ToolResult) failure {
	t.Helper()
	require.True(t, r.IsError, "%s", r.Raw)
	var f failure
	require.NoError(t, json.Unmarshal(r.Meta["io.temporal/failure"], &f), "%s", r.Raw)
	require.NotEmpty(t, r.Meta["io.temporal/operationId"], "%s", r.Raw)
	return f
}

// TestFailures is the failure table of the wire contract, as an MCP caller sees it.
func TestFailures(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		const details = `{"content":[{"type":"text","text":"no <b>"},{"type":"hologram","n":1.0}],"isError":true,"structuredContent":{"n":9007199254740993},"_meta":{"com.example/z":1.0}}`
		for _, how := range []string{"fail", "slow"} {
			as := map[string]string{"fail": "as", "slow": "fail"}[how]
			r := p.Tool(t, how, `{"`+as+`":"tool","details":`+details+`}`)
			require.True(t, r.IsError)
			harness.RequireExact(t, `{"n":9007199254740993}`, string(r.Structured))
			require.Len(t, r.Content, 2)
			harness.RequireExact(t, `{"type":"hologram","n":1.0}`, string(r.Content[1]))
			harness.RequireExact(t, `1.0`, string(r.Meta["com.example/z"]))
			require.NotContains(t, r.Meta, "io.temporal/failure", "it is the tool's own")
		}

		for _, code := range []int{-32042, -32601, -32602, -32603} {
			e := p.ToolError(t, "fail", fmt.Sprintf(`{"as":"protocol","details":{"code":%d,"message":"ask first <b>","data":{"n":9007199254740993,"b":1.0}}}`, code))
			require.Equal(t, code, e.Code)
			require.Equal(t, "ask first <b>", e.Message)
			harness.RequireExact(t, `{"n":9007199254740993,"b":1.0}`, string(e.Data))
		}

		r := p.Tool(t, "fail", `{"as":"unknown"}`)
		require.Equal(t, failure{Type: "McpOutcomeUnknown"}, failureOf(t, r))
		require.JSONEq(t, `"unknown"`, string(r.Meta["io.temporal/outcome"]))
		require.Contains(t, r.Text(t), "The connection broke after the call was sent.")
		require.Contains(t, r.Text(t), "outcome is unknown")

		r = p.Tool(t, "fail", `{"as":"size"}`)
		require.Equal(t, failure{Type: "McpPayloadTooLarge"}, failureOf(t, r))
		require.Contains(t, r.Text(t), "3000000 bytes")

		r = p.Tool(t, "fail", `{"as":"error"}`)
		require.Equal(t, failure{Type: "failed"}, failureOf(t, r))
		require.Equal(t, "it does not <work>", r.Text(t))

		r = p.Tool(t, "slow", `{"fail":"the disk is <full>"}`)
		require.Equal(t, failure{Type: "Broken"}, failureOf(t, r))
		require.Equal(t, "the disk is <full>", r.Text(t))

		r = p.Tool(t, "fail", `{"as":"canceled"}`)
		require.Equal(t, "canceled", failureOf(t, r).Type)
		require.Contains(t, r.Text(t), "cancel")

		r = p.Tool(t, "fail", `{"as":"nonsense"}`)
		require.Equal(t, failure{Type: "BAD_REQUEST"}, failureOf(t, r))
		require.Contains(t, r.Text(t), `nothing fails as "nonsense"`)
	})
}

func TestTimeoutNamesItself(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November)
	began := time.Now()
	r := p.Tool(t, "brief", `{"seconds":60}`)
	require.Greater(t, time.Since(began), 2*time.Second)
	require.Equal(t, "timed_out", failureOf(t, r).Type)
	require.Contains(t, r.Text(t), "schedule-to-close")
	require.NotContains(t, r.Text(t), "No handler", "one has started it")
}

// TestPayloadsOverTheLimit: nothing is started for arguments that Temporal cannot
// hold, and a result that it cannot hold is an answer too.
func TestPayloadsOverTheLimit(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		line := harness.Unique("line")
		r := p.Tool(t, "note", `{"line":"`+line+`","fat":"`+strings.Repeat("x", 2<<20)+`"}`)
		require.True(t, r.IsError)
		var f failure
		require.NoError(t, json.Unmarshal(r.Meta["io.temporal/failure"], &f))
		require.Equal(t, failure{Type: "McpPayloadTooLarge"}, f)
		require.NotContains(t, r.Meta, "io.temporal/operationId", "nothing was started")
		require.Regexp(t, `would take 2097\d\d\d bytes; one Temporal payload holds at most 2097\d\d\d\.`, r.Text(t))
		require.Zero(t, kit.Effects(t, line))

		fits := p.Tool(t, "note", `{"line":"`+line+`","fat":"`+strings.Repeat("x", 1<<20)+`"}`)
		require.False(t, fits.IsError, "%.300s", fits.Raw)
		require.Equal(t, 1, kit.Effects(t, line))

		big := p.Tool(t, "big", `{"bytes":2500000}`)
		require.Equal(t, failure{Type: "McpPayloadTooLarge"}, failureOf(t, big))
		require.Contains(t, big.Text(t), "at most 2097088 bytes")
		require.Len(t, p.Tool(t, "big", `{"bytes":1500000}`).Text(t), 1500000)
	})
}

// TestDeadServices: no worker, no endpoint, no service. Each has its own words,
// and its neighbour is served.
func TestDeadServices(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	idle := temporal.PrepareService(t)
	p := temporal.StartStdio(t, "--service", "absent=no-such-endpoint", "--service", idle.Name, "--service", kit.Name,
		"--service", "wrong="+kit.Name, "--discovery-timeout", "5s").Speak(t, harness.Revision2025November)
	began := time.Now()
	list := p.ListTools(t)
	require.Less(t, time.Since(began), 10*time.Second)
	require.Contains(t, list.Names(t), "echo")
	var text string
	harness.Until(t, func() bool {
		var warnings []string
		require.NoError(t, json.Unmarshal(p.ListTools(t).Meta["io.temporal/warnings"], &warnings))
		text = strings.Join(warnings, "\n")
		return strings.Contains(text, "no worker polls")
	})
	require.Contains(t, text, `There is no Nexus endpoint "no-such-endpoint"`)
	require.Contains(t, text, `"wrong"`)
	require.Contains(t, text, "not found")

	e := p.ToolError(t, "theirs", `{}`)
	require.Equal(t, -32602, e.Code)
	require.Contains(t, e.Message, "no worker polls", "the reader learns why it may be unknown")
	require.JSONEq(t, `{"a":1}`, string(p.Tool(t, "echo", `{"a":1}`).Structured))
}

// TestFeatureOff: a server without the settings says so, with the remedy.
func TestFeatureOff(t *testing.T) {
	t.Parallel()

	temporal := harness.StartTemporal(t)
	service := temporal.StartService(t)
	p := temporal.StartStdio(t, "--service", service.Name).Speak(t, harness.Revision2026)
	list := p.ListTools(t)
	require.Equal(t, []string{"cancel_operation", "get_operation_result", "list_operations"}, list.Names(t))
	require.Contains(t, string(list.Meta["io.temporal/warnings"]), "nexusoperation.enableStandalone=true")
	require.NotNil(t, list.TTL)
	require.Equal(t, 1000, *list.TTL, "more may come soon")
}

// TestCallbacksOff: an activity tool on a server without callbacks fails at once,
// with the server's words and the remedy.
func TestCallbacksOff(t *testing.T) {
	t.Parallel()

	temporal := harness.StartTemporal(t, harness.ServerFlags[:2]...)
	service := temporal.StartService(t)
	p := temporal.StartStdio(t, "--service", service.Name).Speak(t, harness.Revision2026)
	require.JSONEq(t, `{"a":1}`, string(p.Tool(t, "echo", `{"a":1}`).Structured))
	r := p.Tool(t, "act", `{"value":1}`)
	t.Logf("%s", r.Raw)
	require.True(t, r.IsError)
	require.Contains(t, r.Text(t), "callbacks are not enabled")
	require.Contains(t, r.Text(t), "activity.enableCallbacks=true")
}

// TestNoWorkerTakesTheCall: a call to a service whose worker has died ends with
// the likely cause in its words.
func TestNoWorkerTakesTheCall(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.StartService(t)
	service.SetManifest(t, `{"tools":[
		{"name":"echo","description":"x","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":3000}},
		{"name":"note","description":"x","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":15000}},
		{"name":"pick","description":"x","inputSchema":{"type":"object"}}]}`)
	p := temporal.StartStdio(t, "--service", service.Name, "--wait-budget", "20s").Speak(t, harness.Revision2025November)
	p.ListTools(t)
	service.Kill()
	short, long, endless := p.StartTool(t, "echo", `{}`), p.StartTool(t, "note", `{}`), p.StartTool(t, "pick", `{}`)
	for _, call := range []*harness.Pending{short, long} {
		r := call.Answer(t).ToolResult(t)
		t.Log(r.Text(t))
		require.Equal(t, "timed_out", failureOf(t, r).Type)
		require.Contains(t, r.Text(t), "schedule-to-close")
		require.Contains(t, r.Text(t), service.Name)
		require.Regexp(t, `A worker polled the endpoint's task queue \d+s ago: it has stopped since`, r.Text(t))
	}
	r := endless.Answer(t).ToolResult(t)
	r.Running(t)
	t.Log(r.Text(t))
}
