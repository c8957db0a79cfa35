package mcptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
)

type node struct {
	Children []node `json:"children"`
}

type badTags struct {
	A string `json:"a" mcp:"minimum=1"`
	B struct {
		C int `json:"c" mcp:"maximum=9007199254740993,minimun=1"`
	} `json:"b"`
}

func constant[I, O any](name string) nexus.Operation[I, O] {
	return sync(name, func(context.Context, I) (out O, err error) { return out, nil })
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	t.Parallel()

	tool := readOnly("A tool.")
	s := mcptool.NewService("my-tools", mcptool.ServiceOptions{Exclude: []string{"x"}})
	mcptool.Add(s, constant[nameInput, greeting]("run_report"), mcptool.Tool{ScheduleToCloseTimeout: time.Second})
	mcptool.Add(s, constant[nameInput, greeting]("no spaces"), tool)
	mcptool.Add(s, constant[nameInput, greeting](contract.ToolCancelOperation), tool)
	mcptool.Add(s, constant[nameInput, greeting]("run_report"), tool)
	mcptool.Add(s, constant[string, greeting]("text"), tool)
	mcptool.Add(s, constant[nameInput, chan int]("channel"), tool)
	mcptool.Add(s, constant[node, greeting]("cycle"), tool)
	mcptool.Add(s, constant[badTags, greeting]("tags"), tool)
	mcptool.Add(s, constant[fmt.Stringer, greeting]("stringer"), tool)
	mcptool.Add(s, constant[nameInput, *mcptool.Result]("pointer"), tool)
	mcptool.Add(s, constant[nameInput, contract.Result]("other"), tool)
	mcptool.Add(s, nil, tool)
	with := func(name string, change func(*mcptool.Tool)) {
		changed := tool
		change(&changed)
		mcptool.Add(s, constant[nameInput, greeting](name), changed)
	}
	with("list", func(t *mcptool.Tool) { t.InputSchema = json.RawMessage(`{"type":"array"}`) })
	with("remote", func(t *mcptool.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/schema"}}}`)
	})
	with("default", func(t *mcptool.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}`)
	})
	with("bound", func(t *mcptool.Tool) {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"anyOf":[{"maximum":9007199254740993}]}}}`)
	})
	with("out", func(t *mcptool.Tool) { t.OutputSchema = json.RawMessage(`"x"`) })
	with("kind", func(t *mcptool.Tool) { t.Kind = "magic" })
	with("meta", func(t *mcptool.Tool) {
		t.Meta = map[string]any{contract.MetaKind: "x", "example.com/f": func() {}}
	})
	mcptool.Add(s, mcptool.NewActivityOperation[nameInput, greeting]("act", nil, mcptool.ActivityOptions{
		RetryPolicy: &sdktemporal.RetryPolicy{}, HeartbeatTimeout: time.Millisecond, StartToCloseTimeout: -1,
	}), tool)
	s.AddOperation(constant[string, string](contract.OperationListTools), constant[string, string](""), constant[string, string]("a/b"), nil)

	badList := contract.CheckInputSchema(json.RawMessage(`{"type":"array"}`)).Error()
	badOut := contract.CheckSchema(json.RawMessage(`"x"`)).Error()
	require.Equal(t, strings.TrimSpace(`
mcptool: my-tools: tool "run_report": description: missing
mcptool: my-tools: tool "run_report": ScheduleToCloseTimeout: 1s; the Temporal server cannot keep less than 3s: calls would time out on their way to the Worker
mcptool: my-tools: tool "no spaces": name: the name "no spaces" has ' '; only letters, digits, _ and - of ASCII are allowed
mcptool: my-tools: tool "cancel_operation": name: the name "cancel_operation" is reserved
mcptool: my-tools: tool "run_report": name: another operation of the service has it
mcptool: my-tools: tool "text": inputSchema: the operation takes string, whose JSON is no object
mcptool: my-tools: tool "channel": outputSchema: ForType(chan int): type chan int is unsupported by jsonschema; a raw JSON Schema in the declaration may say what the type cannot
mcptool: my-tools: tool "cycle": inputSchema: ForType(mcptool_test.node): computing element schema: cycle detected for type mcptool_test.node; a raw JSON Schema in the declaration may say what the type cannot
mcptool: my-tools: tool "tags": inputSchema: field A: mcp tag: minimum=1: the field is no number
mcptool: my-tools: tool "tags": inputSchema: field B.C: mcp tag: maximum=9007199254740993: 9007199254740993 cannot be compared exactly; 9007199254740992 can
mcptool: my-tools: tool "tags": inputSchema: field B.C: mcp tag: minimun=1: no such keyword
mcptool: my-tools: tool "stringer": inputSchema: the operation takes the interface fmt.Stringer, and JSON does not say which type stands for it
mcptool: my-tools: tool "pointer": output: the operation returns *mcptool.Result, whose errors would pass for values; return mcptool.Result
mcptool: my-tools: tool "other": output: the operation returns contract.Result, whose errors would pass for values; return mcptool.Result
mcptool: my-tools: operation 11: nil
mcptool: my-tools: tool "list": inputSchema: `+badList+`
mcptool: my-tools: tool "remote": inputSchema: loading https://example.com/schema: the reference leads out of the schema, and nothing is fetched
mcptool: my-tools: tool "default": inputSchema: validating /properties/a: type: x has type "string", want "integer"
mcptool: my-tools: tool "bound": inputSchema: properties: a: anyOf[0]: maximum: 9007199254740993 cannot be compared exactly; 9007199254740992 can
mcptool: my-tools: tool "out": outputSchema: `+badOut+`
mcptool: my-tools: tool "kind": Kind: "magic": no such kind
mcptool: my-tools: tool "meta": _meta: "example.com/f": json: unsupported type: func()
mcptool: my-tools: tool "meta": _meta: "io.temporal/kind": the contract owns this key
mcptool: my-tools: tool "act": activity: the function is nil
mcptool: my-tools: tool "act": RetryPolicy: it needs Repeatable
mcptool: my-tools: tool "act": HeartbeatTimeout: 1ms, want at least 1s
mcptool: my-tools: tool "act": StartToCloseTimeout: -1ns is negative
mcptool: my-tools: operation "list_tools": name: it is reserved
mcptool: my-tools: operation "": name: the name is empty
mcptool: my-tools: operation "a/b": name: the Temporal server refuses a slash
mcptool: my-tools: operation 23: nil
mcptool: my-tools: options: Exclude: it means nothing without ExposeAll
`), fault(t, s))
}

func TestAServiceWithoutAName(t *testing.T) {
	t.Parallel()

	require.Equal(t, "mcptool: service: the name is empty", fault(t, mcptool.NewService("")))
	require.Equal(t, "mcptool: x: options: given more than once", fault(t, mcptool.NewService("x", silent, silent)))
	require.Equal(t, "mcptool: x: options: Capabilities: an array, want an object",
		fault(t, mcptool.NewService("x", mcptool.ServiceOptions{Capabilities: json.RawMessage(`[]`)})))
}

func TestAServiceWithoutOperationsHasAManifest(t *testing.T) {
	t.Parallel()

	r := offline(t, mcptool.NewService("empty", mcptool.ServiceOptions{Capabilities: json.RawMessage(`{"prompts":{}}`)}))
	data, err := r.call(t, contract.OperationListTools, "null")
	require.NoError(t, err)
	require.Equal(t, `{"tools":[],"_meta":{"io.temporal/contract":1,"io.temporal/capabilities":{"prompts":{}}}}`, data)
}

func TestExposeAll(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("all", mcptool.ServiceOptions{ExposeAll: true, Exclude: []string{"internal"}, Logger: silent.Logger})
	s.AddOperation(
		constant[nameInput, greeting]("run_report"),
		constant[string, string]("internal"),
		constant[json.RawMessage, json.RawMessage](contract.MethodOperation("resources/list")),
	)
	mcptool.Add(s, constant[nameInput, greeting]("declared"), readOnly("A declared tool."))
	r := offline(t, s)
	tools := r.manifest(t)
	require.Len(t, tools, 2)
	require.Equal(t, "Run report.", tools["run_report"].Description)
	require.Equal(t, "A declared tool.", tools["declared"].Description)
	require.NotNil(t, r.service.Operation("internal"))
	require.NotNil(t, r.service.Operation("mcp:resources.list"))
	require.Len(t, s.Warnings(), 2)
	require.Contains(t, s.Warnings()[0], `tool "run_report": it is exposed without a declaration`)
	require.Contains(t, s.Warnings()[1], `tool "run_report": it is synchronous and neither read-only nor idempotent`)

	s = mcptool.NewService("all", mcptool.ServiceOptions{ExposeAll: true, Exclude: []string{"intrenal"}})
	s.AddOperation(constant[nameInput, greeting]("internal"))
	require.Contains(t, fault(t, s), `mcptool: all: options: Exclude: there is no operation "intrenal"`)
}

func TestWarningsGoToTheLogger(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer
	s := mcptool.NewService("warned", mcptool.ServiceOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mcptool.Add(s, constant[nameInput, greeting]("risky"), mcptool.Tool{Description: "Risk it."})
	mcptool.Add(s, constant[nameInput, greeting]("safe"), readOnly("Look."))
	mcptool.Add(s, constant[nameInput, greeting]("same"), mcptool.Tool{Description: "Set.", Annotations: mcptool.Annotations{IdempotentHint: true}})
	mcptool.Add(s, mcptool.NewActivityOperation("once", greet, mcptool.ActivityOptions{}), mcptool.Tool{Description: "Act."})
	r := offline(t, s)
	require.Len(t, s.Warnings(), 1)
	require.Contains(t, s.Warnings()[0], "mcptool.NewActivityOperation runs at most once")
	require.Contains(t, log.String(), `level=WARN`)
	require.Contains(t, log.String(), `mcptool: warned: tool \"risky\"`)
	require.Equal(t, []string{"warned.once"}, r.activities)
}

func TestAWorkerThatHasTheNameIsAnError(t *testing.T) {
	t.Parallel()

	w := worker.New(temporal(t), "names", worker.Options{})
	s := mcptool.NewService("twice")
	require.NoError(t, s.Register(w))
	require.ErrorContains(t, s.Register(w), `mcptool: twice: `)
}

// TestKindsShowInTypes pins the unexported types of the SDKs that tell what runs
// behind an operation.
func TestKindsShowInTypes(t *testing.T) {
	t.Parallel()

	tool := readOnly("A tool.")
	require.Equal(t, contract.KindSync, only(t, constant[nameInput, greeting]("x"), tool).Kind)
	require.Equal(t, contract.KindWorkflow, only(t, reportOperation("x"), tool).Kind)
	require.Equal(t, contract.KindActivity, only(t, mcptool.NewActivityOperation("x", greet, mcptool.ActivityOptions{}), tool).Kind)
	require.Empty(t, only(t, signalOperation("x"), tool).Kind)
	run, err := temporalnexus.NewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[nameInput, greeting]{
		Name: "x",
		Handler: func(context.Context, nameInput, nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[greeting], error) {
			return nil, errBoom
		},
	})
	require.NoError(t, err)
	require.Equal(t, contract.KindWorkflow, only(t, run, tool).Kind)
	tool.Kind = contract.KindUpdate
	require.Equal(t, contract.KindUpdate, only(t, signalOperation("x"), tool).Kind)
}

func TestADeclarationInFull(t *testing.T) {
	t.Parallel()

	tool := only(t, constant[nexus.NoValue, nexus.NoValue]("full"), mcptool.Tool{
		Title:       "Full",
		Description: "Say <all> & more.",
		Annotations: mcptool.Annotations{
			Title: "Old", ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false),
		},
		Icons:                  []mcptool.Icon{{Source: "https://example.com/i.png?a=1&b=2", MIMEType: "image/png", Sizes: []string{"any"}, Theme: "dark"}},
		ScheduleToCloseTimeout: 90 * time.Second,
		OutputSchema:           json.RawMessage(`{"description":"<nothing>"}`),
		Meta:                   map[string]any{"example.com/n": json.RawMessage(`1e400`), "example.com/a": "<a>"},
	})
	require.Equal(t, `{"name":"full","title":"Full","description":"Say <all> & more.","inputSchema":{"type":"object"},`+
		`"outputSchema":{"description":"<nothing>"},`+
		`"annotations":{"title":"Old","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},`+
		`"icons":[{"src":"https://example.com/i.png?a=1&b=2","mimeType":"image/png","sizes":["any"],"theme":"dark"}],`+
		`"_meta":{"example.com/a":"<a>","example.com/n":1e400,"io.temporal/scheduleToCloseTimeoutMs":90000,"io.temporal/kind":"sync"}}`,
		string(tool.Raw))
}
