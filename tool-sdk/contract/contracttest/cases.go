package contracttest

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/temporal"
)

// Values that decoding to Go, or to JavaScript, and back would change.
const (
	exactNumbers = `{"integer":9007199254740993,"id":1917043659912705296,"fraction":1.0,"huge":1e400,"minusZero":-0,` +
		`"thirtyDigits":123456789012345678901234567890}`
	exactStrings = `{"nul":"a\u0000b","html":"<b>&amp;</b>","line":"\u2028","lone":"\ud800A","pair":"\ud83d\ude00"}`
	exactOrder   = `{"z":1,"a":2,"m":{"y":1,"b":2},"10":3,"9":4,"unknown":{"later":[]}}`
	exactTwice   = `{"a":1,"b":2,"a":3}`
)

// exactDeep is 900 levels deep.
var exactDeep = strings.Repeat(`{"a":[`, 450) + "1.0" + strings.Repeat(`]}`, 450)

// mcpResult has parts that no revision of the protocol knows.
const mcpResult = `{"content":[{"type":"text","text":"<b>\u2028","annotations":{"priority":1.0,"later":{"z":1,"a":2}}},` +
	`{"type":"hologram","frames":[9007199254740993,-0],"text":"\ud800"},{"type":"image","data":"aGk=","mimeType":"image/png"}],` +
	`"structuredContent":{"z":1e400,"a":null},"later":{"z":[1.0],"a":"x"},"_meta":{"example.com/k":{"z":1,"a":2.0}}}`

const mcpErrorResult = `{"content":[{"type":"text","text":"There is no key <7>."},{"type":"hologram","n":1.0}],` +
	`"isError":true,"later":{"z":9007199254740993,"a":2},"_meta":{"example.com/k":-0}}`

var protocolError = contract.ProtocolError{
	Code: -32602, Message: "Unknown key <7>", Data: json.RawMessage(`{"key":9007199254740993,"z":1.0,"a":"\ud800"}`),
}

// madeResult is the error result of the contract for a failure.
func madeResult(typ, text, more string) json.RawMessage {
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(contract.Quote(text)) + `}],"isError":true,` +
		`"_meta":{"` + contract.MetaFailure + `":{"type":"` + typ + `","retryable":false}` + more + `}}`)
}

// testCase is one call and what comes of it.
type testCase struct {
	scripted
	// label tells the cases of one tool apart.
	label string
	// arguments are absent where this is empty.
	arguments string
	want      expectation
}

func tools() []scripted {
	var all []scripted
	seen := map[string]bool{}
	for _, c := range cases() {
		if !seen[c.name] {
			seen[c.name] = true
			all = append(all, c.scripted)
		}
	}
	return all
}

func cases() []testCase {
	all := append(valueCases(), echoCases()...)
	all = append(all, mcpCases()...)
	return append(all, failureCases()...)
}

func answer(output string) func(json.RawMessage) (json.RawMessage, error) {
	return func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(output), nil }
}

func fail(err error) func(json.RawMessage) (json.RawMessage, error) {
	return func(json.RawMessage) (json.RawMessage, error) { return nil, err }
}

func result(raw string) expectation {
	return expectation{outcome: Outcome{Result: json.RawMessage(raw)}}
}

// text is a content array of one text block.
func text(s string) string {
	return `"content":[{"type":"text","text":` + string(contract.Quote(s)) + `}]`
}

// valueCases are the rows of value → result, without and with an output schema.
func valueCases() []testCase {
	var all []testCase
	add := func(name, what, value, schema, plain, declared string) {
		for suffix, v := range map[string]struct{ schema, want string }{"": {"", plain}, "_declared": {schema, declared}} {
			all = append(all, testCase{
				scripted: scripted{
					name: "value_" + name + suffix, description: "Returns " + what + ".", outputSchema: v.schema, run: answer(value),
				},
				want: result("{" + v.want + "}"),
			})
		}
	}
	object := func(name, what, value string) {
		want := text(value) + `,"structuredContent":` + value
		add(name, what, value, `{"type":"object"}`, want, want)
	}
	scalar := func(name, what, value, schema, content string) {
		add(name, what, value, schema, content, content+`,"structuredContent":`+value)
	}
	object("object", "an object", `{"n":1}`)
	object("numbers", "numbers with every digit", exactNumbers)
	object("strings", "strings with every code unit", exactStrings)
	object("order", "an object with its keys in this order", exactOrder)
	object("duplicates", "an object that has a key twice", exactTwice)
	object("deep", "900 levels", exactDeep)
	scalar("array", "an array", `[{"b":1.0,"a":-0},"<b>",null]`, `{"type":"array"}`, text(`[{"b":1.0,"a":-0},"<b>",null]`))
	scalar("string", "a string", `"<b>\n\ud83d\ude00 {\"a\":1}"`, `{"type":"string"}`, text("<b>\n😀 {\"a\":1}"))
	scalar("empty_string", "a string of nothing", `""`, `{"type":"string"}`, text(""))
	scalar("number", "a number", `123456789012345678901234567890`, `{"type":"number"}`, text(`123456789012345678901234567890`))
	scalar("boolean", "a boolean", `false`, `{"type":"boolean"}`, text(`false`))
	scalar("null", "null", `null`, `{"type":"null"}`, `"content":[]`)
	return sorted(all)
}

// echoCases send arguments and get them back.
func echoCases() []testCase {
	value := scripted{name: "echo", description: "Returns its arguments.", run: func(input json.RawMessage) (json.RawMessage, error) {
		return input, nil
	}}
	mcp := scripted{
		name: "echo_mcp", description: "Returns its arguments as structured content.", encoding: contract.EncodingMCP,
		run: func(input json.RawMessage) (json.RawMessage, error) {
			call, err := contract.DecodeCall(contract.EncodingMCP, input)
			if err != nil {
				return nil, resultmap.OperationError(&contract.Failure{Code: contract.CodeFailed, Message: err.Error()})
			}
			var o contract.Object
			o.Set("content", json.RawMessage("[]"))
			o.Set("structuredContent", call.Arguments)
			return o.JSON(), nil
		},
	}
	var all []testCase
	for _, a := range []struct{ label, arguments string }{
		{"no_arguments", ""}, {"empty", "{}"}, {"numbers", exactNumbers}, {"strings", exactStrings},
		{"order", exactOrder}, {"duplicates", exactTwice}, {"deep", exactDeep},
	} {
		back := a.arguments
		if back == "" {
			back = "{}"
		}
		all = append(all,
			testCase{
				scripted: value, label: a.label, arguments: a.arguments,
				want: result("{" + text(back) + `,"structuredContent":` + back + "}"),
			},
			testCase{
				scripted: mcp, label: a.label, arguments: a.arguments,
				want: result(`{"content":[],"structuredContent":` + back + "}"),
			},
		)
	}
	return all
}

// mcpCases are results of the mcp encoding, whole.
func mcpCases() []testCase {
	mcp := func(name, what, output string, want expectation) testCase {
		return testCase{
			scripted: scripted{name: "mcp_" + name, description: "Returns " + what + ".", encoding: contract.EncodingMCP, run: answer(output)},
			want:     want,
		}
	}
	all := []testCase{
		mcp("result", "a result with blocks and members that nobody knows", mcpResult, result(mcpResult)),
		mcp("empty", "a result without content", `{"content":[]}`, result(`{"content":[]}`)),
		mcp("structured_null", "null as structured content", `{"content":[],"structuredContent":null}`, result(`{"content":[],"structuredContent":null}`)),
		mcp("error_result", "an error result, as an operation that completes", mcpErrorResult, result(mcpErrorResult)),
		mcp("no_result", "something that is no MCP result", `[1.0]`, expectation{failure: contract.CodeFailed, words: []string{"mcp"}}),
	}
	declared := mcp("declared", "an error result where a schema is declared", mcpErrorResult, result(mcpErrorResult))
	declared.outputSchema = `{"type":"object","required":["key"]}`
	return append(all, declared)
}

// failureCases are the rows of the failure table.
func failureCases() []testCase {
	failing := func(name, what string, err error, want expectation) testCase {
		return testCase{scripted: scripted{name: name, description: what, run: fail(err)}, want: want}
	}
	made := func(typ, message, more string) expectation {
		return expectation{outcome: Outcome{Result: madeResult(typ, message, more)}}
	}
	failure := func(code contract.Code, typ, message string) error {
		return resultmap.OperationError(&contract.Failure{
			Code: code, Type: typ, Message: message, Cause: errors.New("dial 10.0.0.1:443: this must not travel"),
		})
	}
	errorResult, _ := contract.DecodeResult(json.RawMessage(mcpErrorResult))
	toolError := resultmap.ToolError(errorResult)

	const unknown, tooLarge, stock = "The connection broke.", "The result would take 3000000 bytes.", "Only <2> are left."
	const advice = " The outcome is unknown: the call may or may not have taken effect. Find out before you repeat it."
	all := []testCase{
		failing("tool_error", "Reports an error.", resultmap.OperationError(toolError), result(mcpErrorResult)),
		failing("tool_error_of_handler", "Reports an error by an application error.", resultmap.ApplicationError(toolError), result(mcpErrorResult)),
		failing("protocol_error", "Answers with a JSON-RPC error.", resultmap.OperationError(resultmap.ProtocolError(&protocolError)),
			expectation{outcome: Outcome{Protocol: &protocolError}}),
		failing("outcome_unknown", "May have taken effect.", failure(contract.CodeOutcomeUnknown, "", unknown),
			made(contract.TypeOutcomeUnknown, unknown+advice, `,"`+contract.MetaOutcome+`":"`+contract.OutcomeUnknown+`"`)),
		failing("payload_too_large", "Has a result that is too large.", failure(contract.CodePayloadTooLarge, "", tooLarge),
			made(contract.TypePayloadTooLarge, tooLarge, "")),
		failing("failed", "Fails with a type.", failure(contract.CodeFailed, "OutOfStock", stock), made("OutOfStock", stock, "")),
		failing("failed_plainly", "Fails with a message.", nexus.NewOperationFailedErrorf("The archive is closed."),
			made(string(contract.CodeFailed), "The archive is closed.", "")),
		failing("failed_in_handler", "Fails with an application error of the handler.",
			temporal.NewNonRetryableApplicationError(stock, "OutOfStock", nil), made("OutOfStock", stock, "")),
		failing("bad_request", "Refuses its input.",
			&nexus.HandlerError{Type: nexus.HandlerErrorTypeBadRequest, Message: "n: 0, want more"}, made("BAD_REQUEST", "n: 0, want more", "")),
		failing("canceled", "Cancels itself.", failure(contract.CodeCanceled, "", "Nobody waits."), expectation{outcome: Outcome{Canceled: true}}),
		failing("canceled_plainly", "Cancels itself with a message.", nexus.NewOperationCanceledErrorf("Nobody waits."),
			expectation{outcome: Outcome{Canceled: true}}),
		{
			scripted: scripted{name: "timed_out", description: "Starts and never ends.", hangs: true, timeoutMs: 3000},
			want:     expectation{failure: contract.CodeTimedOut, words: []string{"timed out", "schedule-to-close"}},
		},
		{
			scripted: scripted{name: "no_operation", description: "Is in the list, and no operation."},
			want:     expectation{failure: contract.CodeUnavailable, orProtocol: true},
		},
	}
	mcp := failing("tool_error_mcp", "Reports an error in the mcp encoding.", resultmap.OperationError(toolError), result(mcpErrorResult))
	mcp.encoding = contract.EncodingMCP
	return append(all, mcp)
}
