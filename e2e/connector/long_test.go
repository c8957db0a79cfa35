package connector_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// TestRunning: a call that takes longer than the wait budget says so, in the shape
// that is documented, and its result is read by its ID, exact.
func TestRunning(t *testing.T) {
	t.Parallel()

	eachPeer(t, []string{"--wait-budget", "1s"}, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		began := time.Now()
		r := p.Tool(t, "slow", `{"seconds":3,"value":`+hard+`}`)
		took := time.Since(began)
		require.Greater(t, took, 900*time.Millisecond)
		require.Less(t, took, 2900*time.Millisecond)
		id := r.Running(t)
		require.Regexp(t, map[bool]string{
			true: `^mcp-http-stateless-[0-9a-f]{32}$`, false: `^mcp-stdio-stateful-[0-9a-f]{8}-[0-9a-f]{32}$`,
		}[p.HTTP != nil], id)
		require.JSONEq(t, `{"status":"running","operation_id":"`+id+`"}`, string(r.Structured))
		require.JSONEq(t, `"`+id+`"`, string(r.Meta["io.temporal/operationId"]))
		require.Contains(t, r.Text(t), id)
		require.Contains(t, r.Text(t), "get_operation_result")

		again := p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":0}`)
		require.Equal(t, id, again.Running(t))
		for end := time.Now().Add(harness.Patience); ; {
			got := p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`"}`)
			if len(got.Content) == 1 && strings.Contains(string(got.Structured), "int53") {
				harness.RequireExact(t, hard, string(got.Structured))
				harness.RequireExact(t, hard, got.Text(t))
				require.NotContains(t, got.Meta, "io.temporal/operationId", "it is what the call itself would have answered")
				break
			}
			got.Running(t)
			require.True(t, time.Now().Before(end), "no result: %s", got.Raw)
		}
	})
}

// TestResultsReadByID: get_operation_result answers what the call itself would
// have, whatever that is, also from another process with the same caller.
func TestResultsReadByID(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	caller := harness.Unique("reader")
	args := []string{"--service", kit.Name, "--caller", caller, "--wait-budget", "1s"}
	first := temporal.StartStdio(t, args...).Speak(t, harness.Revision2026)
	second := temporal.StartStdio(t, append(args, "--wait-budget", "20s")...).Speak(t, harness.Revision2026)

	const details = `{"content":[{"type":"hologram","n":1.0}],"isError":true,"structuredContent":{"n":9007199254740993}}`
	for _, call := range []struct{ tool, args string }{
		{"slow", `{"seconds":2,"value":"text"}`},
		{"slow", `{"seconds":2,"value":1e400}`},
		{"slow_any", `{"seconds":2,"value":1e400}`}, // structured, by its output schema
		{"slow", `{"seconds":2,"value":null}`},
		{"slow", `{"seconds":2,"fail":"broken <b>"}`},
		{"slow", `{"seconds":2,"fail":"tool","details":` + details + `}`},
		{"brief", `{"seconds":60}`},
	} {
		t.Run(call.tool+" "+call.args, func(t *testing.T) {
			t.Parallel()
			id := first.Tool(t, call.tool, call.args).Running(t)
			direct := second.Tool(t, call.tool, call.args)
			read := second.Tool(t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":20}`)
			a, b := direct, read
			require.Equal(t, a.IsError, b.IsError)
			require.Equal(t, string(a.Structured), string(b.Structured))
			require.Equal(t, a.Content, b.Content)
			require.Equal(t, string(a.Meta["io.temporal/failure"]), string(b.Meta["io.temporal/failure"]))
		})
	}
}

func TestPollToolsRefuseWhatIsNotTheCallersOwn(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args := []string{"--service", kit.Name, "--wait-budget", "1s"}
	mine := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025June)
	theirs := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025June)
	anonymous := temporal.StartHTTP(t, args...).Speak(harness.Revision2025June)
	foreign := theirs.Tool(t, "slow", `{"seconds":3}`).Running(t)
	http := anonymous.Tool(t, "slow", `{"seconds":3}`).Running(t)

	last := foreign[len(foreign)-1]
	changed := foreign[:len(foreign)-1] + map[bool]string{true: "0", false: "1"}[last != '0']
	for _, tool := range []string{"get_operation_result", "cancel_operation"} {
		refused := func(p *harness.Peer, id, why string) {
			t.Helper()
			r := p.Tool(t, tool, `{"operation_id":`+id+`}`)
			require.True(t, r.IsError, "%s", r.Raw)
			require.Contains(t, r.Text(t), why)
		}
		refused(mine, `"`+foreign+`"`, "not the ID of a call of this caller")
		refused(mine, `"`+http+`"`, "not the ID of a call of this caller")
		refused(anonymous, `"`+foreign+`"`, "not the ID of a call of this caller")
		refused(mine, `"slow-1"`, "not the ID of a call of this caller")
		refused(mine, `""`, "operation_id: missing")
		refused(mine, `7`, "operation_id: number, want string")
		refused(theirs, `"`+changed+`"`, "Temporal has no operation")
		refused(anonymous, `"mcp-http-stateless-00000000000000000000000000000000"`, "Temporal has no operation")
		missing := mine.Tool(t, tool, `{}`)
		require.True(t, missing.IsError)
		require.Contains(t, missing.Text(t), "operation_id: missing")
	}
	// Nothing was cancelled by all that.
	harness.Until(t, func() bool {
		r := theirs.Tool(t, "get_operation_result", `{"operation_id":"`+foreign+`"}`)
		require.False(t, r.IsError, "%s", r.Raw)
		return r.Structured == nil
	})
}

// TestListOperations: the caller's own calls, newest first, found by a process
// that did not start them.
func TestListOperations(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args := []string{"--service", kit.Name, "--wait-budget", "1s", "--caller", harness.Unique("lister")}
	p := temporal.StartStdio(t, args...).Speak(t, harness.Revision2025June)
	p.Tool(t, "echo", `{"n":1.0,"html":"<b>"}`)
	p.Tool(t, "fail", `{"as":"error"}`)
	slow := p.Tool(t, "slow", `{"seconds":60,"fat":"`+strings.Repeat("é", 500)+`"}`).Running(t)

	p = temporal.StartStdio(t, args...).Speak(t, harness.Revision2026)
	var calls []harness.Operation
	harness.Until(t, func() bool {
		calls = p.Operations(t, `{}`)
		return len(calls) == 3 && calls[1].Status == "failed" && calls[2].Status == "completed"
	})
	require.Equal(t, "slow", calls[0].Tool)
	require.Equal(t, slow, calls[0].OperationID)
	require.Equal(t, "running", calls[0].Status)
	require.Empty(t, calls[0].Closed)
	require.True(t, strings.HasPrefix(calls[0].Arguments, `{"seconds":60,"fat":"éé`), calls[0].Arguments)
	require.True(t, strings.HasSuffix(calls[0].Arguments, "…"), calls[0].Arguments)
	require.Equal(t, "fail", calls[1].Tool)
	require.Equal(t, kit.Name, calls[2].Service)
	require.Equal(t, `{"n":1.0,"html":"<b>"}`, calls[2].Arguments)
	for i, c := range calls {
		at, err := time.Parse(time.RFC3339Nano, c.Started)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
		if i > 0 {
			require.NotEmpty(t, c.Closed)
			require.GreaterOrEqual(t, calls[i-1].Started, c.Started)
		}
	}
	require.Len(t, p.Operations(t, `{"limit":1}`), 1)
	require.Equal(t, slow, p.Operations(t, `{"status":"running"}`)[0].OperationID)
	require.Len(t, p.Operations(t, `{"tool":"echo"}`), 1)
	require.Empty(t, p.Operations(t, `{"tool":"echo","status":"failed"}`))
	for bad, why := range map[string]string{
		`{"limit":0}`: "limit", `{"status":"lost"}`: "status", `{"tool":"absent"}`: "absent", `{"limit":"x"}`: "limit",
	} {
		r := p.Tool(t, "list_operations", bad)
		require.True(t, r.IsError, bad)
		require.Contains(t, r.Text(t), why)
	}
}

// TestListOperationsIsNewestFirst, though the server lists first what closed last.
func TestListOperationsIsNewestFirst(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November)
	older := p.StartTool(t, "slow", `{"seconds":3}`, `"progressToken":1`)
	older.Await(t, "progress", harness.IsNotification("notifications/progress"))
	harness.Until(t, func() bool { return len(p.Operations(t, `{}`)) == 1 })
	p.Tool(t, "echo", `{"n":1}`)
	p.Tool(t, "echo", `{"n":2}`)
	older.Answer(t)
	harness.Until(t, func() bool { return len(p.Operations(t, `{"status":"completed"}`)) == 3 })
	var arguments []string
	for _, call := range p.Operations(t, `{}`) {
		arguments = append(arguments, call.Arguments)
	}
	require.Equal(t, []string{`{"n":2}`, `{"n":1}`, `{"seconds":3}`}, arguments)
	require.Equal(t, `{"n":2}`, p.Operations(t, `{"limit":1}`)[0].Arguments)
	require.Equal(t, `{"n":1}`, p.Operations(t, `{"limit":2}`)[1].Arguments)
}

func TestCancelOperation(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	p := stdioPeer(t, harness.Revision2025June, "--wait-budget", "1s")
	line := harness.Unique("line")
	id := p.Tool(t, "slow", `{"seconds":600,"line":"`+line+`"}`).Running(t)
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	r := p.Tool(t, "cancel_operation", `{"operation_id":"`+id+`"}`)
	require.False(t, r.IsError, "%s", r.Raw)
	require.Contains(t, r.Text(t), "recorded")
	require.JSONEq(t, `{"status":"cancel_requested","operation_id":"`+id+`"}`, string(r.Structured))
	var ended harness.ToolResult
	harness.Until(t, func() bool {
		ended = p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`"}`)
		return ended.IsError
	})
	require.Equal(t, "canceled", failureOf(t, ended).Type)
	require.Contains(t, ended.Text(t), "canceled")
	harness.Until(t, func() bool { return kit.Effects(t, "cancelled "+line) == 1 })

	again := p.Tool(t, "cancel_operation", `{"operation_id":"`+id+`"}`)
	require.False(t, again.IsError)
	require.Contains(t, again.Text(t), "ended already")

	// What ignores the request goes on to its end.
	id = p.Tool(t, "stubborn", `{"seconds":3,"value":"done"}`).Running(t)
	for range 2 {
		require.False(t, p.Tool(t, "cancel_operation", `{"operation_id":"`+id+`"}`).IsError)
	}
	harness.Until(t, func() bool {
		r := p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`"}`)
		return !r.IsError && r.Structured == nil && r.Text(t) == "done"
	})
}

// progress is the params of notifications/progress.
type progress struct {
	ProgressToken json.RawMessage
	Progress      float64
	Message       string
	Meta          map[string]string `json:"_meta"`
}

func progressOf(t *testing.T, m harness.Message) progress {
	t.Helper()
	var p progress
	require.NoError(t, json.Unmarshal(m.Params, &p), "%s", m.Raw)
	return p
}

// TestProgress: the first notification names the operation at once, the others
// tell the time, and none comes without a token or after the answer.
func TestProgress(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		began := time.Now()
		call := p.StartTool(t, "slow", `{"seconds":7}`, `"progressToken":"tok-7"`)
		first := call.Await(t, "progress", harness.IsNotification("notifications/progress"))
		require.Less(t, first.At.Sub(began), 4*time.Second, "it comes as soon as the operation exists")
		got := progressOf(t, first)
		require.JSONEq(t, `"tok-7"`, string(got.ProgressToken))
		require.Regexp(t, `mcp-(http-stateless|stdio-stateful-[0-9a-f]{8})-[0-9a-f]{32}`, got.Message)
		id := got.Meta["io.temporal/operationId"]
		require.Contains(t, got.Message, id)

		answer := call.Answer(t)
		require.Nil(t, answer.ToolResult(t).Structured)
		var all []progress
		for _, m := range call.All() {
			if m.Method == "notifications/progress" {
				require.True(t, m.At.Before(answer.At))
				all = append(all, progressOf(t, m))
			}
		}
		require.Len(t, all, 2)
		require.Greater(t, all[1].Progress, all[0].Progress)
		require.Contains(t, all[1].Message, "5s")
		require.Contains(t, all[1].Message, id)

		silent := p.StartTool(t, "echo", `{}`)
		silent.Answer(t)
		for _, m := range silent.All() {
			if m.Method == "notifications/progress" {
				require.JSONEq(t, `"tok-7"`, string(progressOf(t, m).ProgressToken))
			}
		}
	})
}
