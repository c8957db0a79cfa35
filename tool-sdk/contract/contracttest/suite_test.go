package contracttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/stretchr/testify/require"
)

var (
	errStop    = errors.New("stop")
	errRefused = errors.New("not found")
)

// answers is a service in memory: an operation without an answer is refused, and
// so is input that is none of the list operation's.
type answers map[string]string

func (a answers) call(_ context.Context, operation string, input json.RawMessage) (json.RawMessage, error) {
	answer, ok := a[operation]
	if operation == contract.OperationListTools {
		cursor, err := contract.DecodeListInput(input)
		if err != nil {
			return nil, err
		}
		if cursor != "" {
			answer, ok = a[operation+" "+cursor]
		}
	}
	if !ok {
		return nil, errRefused
	}
	return json.RawMessage(answer), nil
}

const goodTool = `{"name":"look_up","description":"Looks a key up.","inputSchema":{"type":"object"}}`

func manifest(tool, meta string) string { return `{"tools":[` + tool + `],"_meta":` + meta + `}` }

const goodMeta = `{"io.temporal/contract":1}`

func TestServiceFindsFaults(t *testing.T) {
	t.Parallel()

	list := contract.OperationListTools
	for name, c := range map[string]struct {
		service answers
		want    []string
	}{
		"none": {answers{list: manifest(goodTool, goodMeta)}, nil},
		"none with methods": {answers{
			list:                           manifest(goodTool, `{"io.temporal/contract":1,"io.temporal/capabilities":{"prompts":{},"resources":{}}}`),
			"mcp:prompts.list":             `{"prompts":[]}`,
			"mcp:resources.list":           `{"resources":[]}`,
			"mcp:resources.templates.list": `{"resourceTemplates":[]}`,
		}, nil},
		"none of a later version": {answers{list: manifest(
			`{"name":"a","description":"A.","inputSchema":{"type":"object"},"_meta":{"io.temporal/kind":"dream","io.temporal/later":1}}`,
			`{"io.temporal/contract":2}`)}, []string{"the service speaks contract version 2"}},
		"nothing there": {answers{}, []string{"list_tools with null: not found", "list_tools: not found", "list_tools: not found"}},
		"no tool":       {answers{list: `{"tools":[],"_meta":` + goodMeta + `}`}, []string{"there is no tool"}},
		"no version":    {answers{list: `{"tools":[` + goodTool + `]}`}, []string{"_meta: io.temporal/contract is missing, want 1"}},
		"bad tool":      {answers{list: manifest(`{"name":"list_tools"}`, goodMeta)}, []string{`tools[0] "list_tools" is left out: name: the name "list_tools" is reserved`, "there is no tool"}},
		"late tool": {answers{list: manifest(`{"name":"a","description":"A.","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":1000}}`, goodMeta)},
			[]string{`tools[0] "a": io.temporal/scheduleToCloseTimeoutMs: 1s is shorter`}},
		"tool without words": {answers{list: manifest(`{"name":"a","description":" ","inputSchema":{"type":"object"},"_meta":{"io.temporal/kind":"dream","io.temporal/timeout":1}}`,
			`{"io.temporal/contract":1,"io.temporal/instruction":"x"}`)}, []string{
			`_meta: io.temporal/instruction is no key of contract version 1`,
			`tools[0] "a": description: missing`,
			`tools[0] "a": _meta: io.temporal/kind: "dream", want one of ["sync" "workflow" "activity" "update"]`,
			`tools[0] "a": _meta: io.temporal/timeout is no key of contract version 1`,
		}},
		"pages that end in nothing": {answers{list: `{"tools":[` + goodTool + `],"nextCursor":"2","_meta":` + goodMeta + `}`},
			[]string{"list_tools: not found", "list_tools: not found"}},
		"a page over the limit": {answers{list: manifest(strings.Replace(goodTool, "Looks", strings.Repeat("x", contract.PayloadLimit), 1), goodMeta)},
			[]string{"page 1 has 2097", "page 1 has 2097"}},
		"methods that are not in the manifest": {answers{list: manifest(goodTool, goodMeta), "mcp:prompts.list": `{"prompts":[]}`, "no_such_tool_contracttest": `1`},
			[]string{`no_such_tool_contracttest with {} answers 1, want an error`, `mcp:prompts.list with {} answers {"prompts":[]}, want an error`}},
		"methods that are only in the manifest": {answers{
			list:                           manifest(goodTool, `{"io.temporal/contract":1,"io.temporal/capabilities":{"prompts":{},"resources":{}}}`),
			"mcp:resources.list":           `[]`,
			"mcp:resources.templates.list": `{"templates":[]}`,
		}, []string{
			"mcp:resources.list: an array, want an object",
			"mcp:resources.templates.list: resourceTemplates: empty, want JSON",
			"mcp:prompts.list: the manifest has the capability prompts: not found",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			requireFaults(t, c.want, contracttest.ServiceFaults(t.Context(), c.service.call))
		})
	}
}

func TestServiceFindsCarelessLists(t *testing.T) {
	t.Parallel()

	n := 0
	faults := contracttest.ServiceFaults(t.Context(), func(_ context.Context, operation string, _ json.RawMessage) (json.RawMessage, error) {
		if operation != contract.OperationListTools {
			return nil, errRefused
		}
		n++
		return json.RawMessage(manifest(strings.Replace(goodTool, "look_up", strings.Repeat("x", n), 1), goodMeta)), nil
	})
	requireFaults(t, []string{
		"list_tools with null answers otherwise than at first", "list_tools with {} answers otherwise than at first",
		`list_tools with {"cursor":null} answers otherwise`,
		`list_tools with {"cursor":"no such cursor, contracttest"} answers {"tools":`, `list_tools with {"cursor":7} answers`, `list_tools with [] answers`,
	}, faults)
}

func requireFaults(t *testing.T, want, got []string) {
	t.Helper()

	require.Len(t, got, len(want), "%q", got)
	for i := range want {
		require.True(t, strings.HasPrefix(got[i], want[i]), "want %q…, got %q", want[i], got[i])
	}
}

func TestCallerFindsFaults(t *testing.T) {
	t.Parallel()

	outcome := func(result string) contracttest.Outcome { return contracttest.Outcome{Result: json.RawMessage(result)} }
	protocol := func(code int64, data string) contracttest.Outcome {
		return contracttest.Outcome{Protocol: &contract.ProtocolError{Code: code, Message: "Unknown key <7>", Data: json.RawMessage(data)}}
	}
	const object = `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`
	const data = `{"key":9007199254740993,"z":1.0,"a":"\ud800"}`
	for _, c := range []struct {
		tool string
		got  contracttest.Outcome
		want []string
	}{
		{"value_object", outcome(object), nil},
		{"value_object", outcome(`{"structuredContent":{"\u006e":1},"_meta":{"io.temporal/operationId":"x","io.modelcontextprotocol/serverInfo":{}},` +
			`"resultType":"complete","isError":false,"content":[{"type":"text","text":"{\u0022n\u0022:1}"}]}`), nil},
		{"value_object", outcome(strings.Replace(object, "t\":{\"n\":1}", "t\":{\"n\":1.0}", 1)), []string{"result.structuredContent.n: want 1, got 1.0"}},
		{"value_object", outcome(strings.Replace(object, "text\",", "text\",\"later\":1,", 1)), []string{`result.content[0]: want {"type":"text",`}},
		{"value_object", outcome(`{"content":[]}`), []string{"result.content: want", `result.structuredContent: want {"n":1}, got `}},
		{"value_object", outcome(strings.TrimSuffix(object, "}") + `,"isError":true,"more":1,"_meta":{"io.temporal/failure":{},"x":1}}`), []string{
			"result.isError: want none, got true", "result.more: want none, got 1",
			"result._meta.io.temporal/failure: want none, got {}", "result._meta.x: want none, got 1",
		}},
		{"value_object", outcome(`[]`), []string{"result: an array, want an object"}},
		{"value_object", contracttest.Outcome{}, []string{"want the result " + object + ", got nothing"}},
		{"value_object", contracttest.Outcome{Canceled: true}, []string{"want the result " + object + ", got canceled"}},
		{"value_object", contracttest.Outcome{Err: errStop}, []string{`call of "value_object": stop`}},
		{"value_null_declared", outcome(`{"content":[]}`), []string{"result.structuredContent: want null, got "}},
		{"value_array", outcome(`{"content":[{"type":"text","text":"[{\"a\":-0,\"b\":1.0},\"<b>\",null]"}]}`), []string{"result.content[0].text: want"}},
		{"mcp_error_result", outcome(`{"content":[{"type":"text","text":"There is no key <7>."},{"type":"hologram","n":1.0}],"isError":true,` +
			`"later":{"a":2,"z":9007199254740993},"_meta":{"example.com/k":0}}`), []string{"result.later: want", "result._meta.example.com/k: want -0, got 0"}},
		{"protocol_error", protocol(-32602, data), nil},
		{"protocol_error", protocol(-32603, data), []string{"error.code: want -32602, got -32603"}},
		{"protocol_error", protocol(-32602, `{"key":9007199254740992,"z":1.0,"a":"\ufffd"}`), []string{
			"error.data.key: want 9007199254740993, got 9007199254740992", `error.data.a: want "\ud800", got "\ufffd"`}},
		{"protocol_error", protocol(-32602, ``), []string{`error: want`}},
		{"protocol_error", outcome(object), []string{"want the JSON-RPC error"}},
		{"canceled", contracttest.Outcome{Canceled: true}, nil},
		{"canceled", contracttest.Outcome{Err: errStop}, []string{`call of "canceled": stop`}},
		{"canceled", protocol(-1, ``), []string{"want canceled, got the JSON-RPC error"}},
		{"timed_out", outcome(`{"content":[{"type":"text","text":"It timed out: schedule-to-close."}],"isError":true,"_meta":{"io.temporal/failure":{"type":"timed_out","retryable":true}}}`), nil},
		{"timed_out", outcome(`{"content":[{"type":"text","text":"No."}],"_meta":{"io.temporal/failure":{"type":"failed"}}}`), []string{
			"isError: want true", "_meta: io.temporal/failure: want the type \"timed_out\"", `text: want "timed out" in it, got "No."`, `text: want "schedule-to-close"`}},
		{"timed_out", protocol(-1, ``), []string{`want an error result of the type "timed_out", got the JSON-RPC error`}},
		{"no_operation", protocol(-1, ``), nil},
		{"no_operation", contracttest.Outcome{}, []string{`want an error result of the type "unavailable", got nothing`}},
	} {
		faults := contracttest.CallerFaults(t.Context(), c.tool, func(_ context.Context, tool string, _ json.RawMessage) contracttest.Outcome {
			require.Equal(t, c.tool, tool)
			return c.got
		})
		requireFaults(t, c.want, faults)
	}
}

func TestCallerSendsTheBytes(t *testing.T) {
	t.Parallel()

	var sent []string
	contracttest.CallerFaults(t.Context(), "echo", func(_ context.Context, _ string, arguments json.RawMessage) contracttest.Outcome {
		if arguments == nil {
			arguments = json.RawMessage("none")
		}
		sent = append(sent, string(arguments))
		return contracttest.Outcome{}
	})
	require.Len(t, sent, 7)
	require.Equal(t, []string{"none", "{}"}, sent[:2])
	require.Contains(t, sent[2], "123456789012345678901234567890")
}

// TestScriptedService: the service is what it says, without a server.
func TestScriptedService(t *testing.T) {
	t.Parallel()

	service := contracttest.NewService("scripted")
	require.Equal(t, "scripted", service.Name)
	require.NotNil(t, service.Operation(contract.OperationListTools))
	require.NotNil(t, service.Operation("timed_out"))
	require.Nil(t, service.Operation("no_operation"))
}
