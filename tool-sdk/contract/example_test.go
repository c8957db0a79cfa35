package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// A member is replaced; the rest keeps its bytes, the digits of the number among them.
func ExampleParseObject() {
	o, err := contract.ParseObject(json.RawMessage(`{ "id": 9007199254740993, "name": "old", "later": 1.0 }`))
	if err != nil {
		panic(err)
	}
	o.Set("name", contract.Quote("new"))
	fmt.Println(string(o.Get("id")))
	fmt.Println(string(o.JSON()))
	// Output:
	// 9007199254740993
	// {"id":9007199254740993,"name":"new","later":1.0}
}

func ExampleParseArray() {
	elements, err := contract.ParseArray(json.RawMessage(`[1.0, {"a": 2}]`))
	if err != nil {
		panic(err)
	}
	for _, e := range elements {
		fmt.Println(contract.TypeName(e), string(e))
	}
	// Output:
	// a number 1.0
	// an object {"a": 2}
}

func ExampleArray() {
	fmt.Println(string(contract.Array(contract.Quote("<b>"), json.RawMessage("1e400"))))
	// Output: ["<b>",1e400]
}

func ExampleDigest() {
	a := contract.Digest(json.RawMessage(`{"to":"Ada","amount":1.0}`))
	b := contract.Digest(json.RawMessage(`{ "amount": 1.0, "to": "\u0041da" }`))
	c := contract.Digest(json.RawMessage(`{"to":"Ada","amount":1}`))
	fmt.Println(a == b, a == c)
	// Output: true false
}

func ExampleCheckToolName() {
	fmt.Println(contract.CheckToolName("look_up"))
	fmt.Println(contract.CheckToolName("look.up"))
	fmt.Println(contract.CheckToolName(contract.OperationListTools))
	// Output:
	// <nil>
	// the name "look.up" has '.'; only letters, digits, _ and - of ASCII are allowed
	// the name "list_tools" is reserved
}

func ExampleCheckPrefix() {
	fmt.Println(contract.CheckPrefix("weather_"))
	// Output: <nil>
}

func ExampleMethodOperation() {
	fmt.Println(contract.MethodOperation("resources/templates/list"))
	// Output: mcp:resources.templates.list
}

func ExampleDecodeTool() {
	tool, warnings, err := contract.DecodeTool(json.RawMessage(`{
		"name": "remove",
		"inputSchema": {"type": "object"},
		"annotations": {"idempotentHint": true},
		"_meta": {"io.temporal/scheduleToCloseTimeoutMs": 100}
	}`))
	fmt.Println(tool.Name, tool.Encoding, tool.ScheduleToCloseTimeout, err)
	fmt.Println(warnings[0])
	fmt.Printf("%+v\n", tool.Hints())

	_, _, err = contract.DecodeTool(json.RawMessage(`{"name": "a b", "inputSchema": {"type": "string"}}`))
	fmt.Println(err)
	// Output:
	// remove value 3s <nil>
	// io.temporal/scheduleToCloseTimeoutMs: 100ms is shorter than a Temporal server can keep; 3s is used
	// {ReadOnly:false Destructive:true Idempotent:true}
	// name: the name "a b" has ' '; only letters, digits, _ and - of ASCII are allowed
	// inputSchema: type: "string", want "object"
}

func ExampleCheckInputSchema() {
	fmt.Println(contract.CheckInputSchema(json.RawMessage(`{"type":"object"}`)))
	fmt.Println(contract.CheckInputSchema(json.RawMessage(`{"type":"array"}`)))
	fmt.Println(contract.CheckSchema(json.RawMessage(`{"type":"array"}`)))
	// Output:
	// <nil>
	// type: "array", want "object"
	// <nil>
}

func ExampleDecodeManifest() {
	m, err := contract.DecodeManifest(json.RawMessage(`{"tools": [
		{"name": "look_up", "inputSchema": {"type": "object"}},
		{"name": "look_up", "inputSchema": {"type": "object"}}
	]}`))
	fmt.Println(len(m.Tools), err)
	fmt.Println(m.Warnings[0])
	// Output:
	// 1 <nil>
	// tools[1] "look_up" is left out: name: another tool of the service has it
}

// A service answers list_tools page by page; a caller collects the pages.
func ExampleCollect() {
	manifest := contract.Manifest{Version: contract.Version, Tools: []contract.Tool{
		{Name: "look_up", Raw: json.RawMessage(`{"name":"look_up","inputSchema":{"type":"object"}}`)},
	}}
	listTools := func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
		cursor, err := contract.DecodeListInput(input)
		if err != nil {
			return nil, err
		}
		page, err := manifest.Page(cursor)
		return page.JSON(), err
	}

	all, err := contract.Collect(context.Background(), func(ctx context.Context, cursor string) (json.RawMessage, error) {
		return listTools(ctx, contract.ListInput(cursor))
	})
	fmt.Println(all.Tools[0].Name, all.Version, err)
	// Output: look_up 1 <nil>
}

func ExampleCallParams_Encode() {
	call := contract.CallParams{Arguments: json.RawMessage(`{"n":1.0}`)}
	value, _ := call.Encode(contract.EncodingValue)
	mcp, _ := call.Encode(contract.EncodingMCP)
	fmt.Println(string(value))
	fmt.Println(string(mcp))

	call.Arguments = json.RawMessage(`[1.0]`)
	_, err := call.Encode(contract.EncodingValue)
	fmt.Println(err)
	// Output:
	// {"n":1.0}
	// {"arguments":{"n":1.0}}
	// arguments: an array, want an object
}

func ExampleDecodeCall() {
	call, err := contract.DecodeCall(contract.EncodingMCP, json.RawMessage(`{"arguments":{"n":1.0},"_meta":{"k":true}}`))
	fmt.Println(string(call.Arguments), string(call.Meta), err)
	// Output: {"n":1.0} {"k":true} <nil>
}

func ExampleCheckArguments() {
	args, err := contract.CheckArguments(nil)
	fmt.Println(string(args), err)
	_, err = contract.CheckArguments(json.RawMessage(`"x"`))
	fmt.Println(err)
	// Output:
	// {} <nil>
	// arguments: a string, want an object
}

func ExampleCheckSize() {
	err := contract.CheckSize("arguments", make([]byte, 3_000_000))
	var f *contract.Failure
	fmt.Println(errors.As(err, &f), f.Code)
	fmt.Println(err)
	// Output:
	// true McpPayloadTooLarge
	// The arguments would take 3000000 bytes; one Temporal payload holds at most 2097088. Send less, or a reference instead of the data.
}

func ExampleValueResult() {
	for _, value := range []string{`{"n":1.0}`, `"<b>"`, `1e400`, `null`} {
		r, err := contract.ValueResult(json.RawMessage(value), false)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(r.JSON()))
	}
	// Output:
	// {"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}
	// {"content":[{"type":"text","text":"<b>"}]}
	// {"content":[{"type":"text","text":"1e400"}]}
	// {"content":[]}
}

func ExampleTextResult() {
	fmt.Println(string(contract.TextResult("no such key", true).JSON()))
	// Output: {"content":[{"type":"text","text":"no such key"}],"isError":true}
}

func ExampleDecodeResult() {
	r, err := contract.DecodeResult(json.RawMessage(
		`{"content":[{"type":"text","text":"forty-two"}],"structuredContent":{"n":42},"_meta":{"k":1}}`))
	if err != nil {
		panic(err)
	}
	text, _ := r.Text()
	var value struct{ N int }
	fmt.Println(r.Unmarshal(&value), value.N, text, r.IsError(), string(r.Meta("k")))
	fmt.Println(string(r.WithMeta("k", json.RawMessage("2")).Meta("k")))
	// Output:
	// <nil> 42 forty-two false 1
	// 2
}

func ExampleFailure_Result() {
	f := &contract.Failure{
		Code:    contract.CodeOutcomeUnknown,
		Message: "The worker died during the call.",
		Cause:   errors.New("heartbeat of worker 7@10.0.0.3 is missing"),
	}
	fmt.Println(string(f.Result().JSON()))
	// Output: {"content":[{"type":"text","text":"The worker died during the call. The outcome is unknown: the call may or may not have taken effect. Find out before you repeat it."}],"isError":true,"_meta":{"io.temporal/failure":{"type":"McpOutcomeUnknown","retryable":false},"io.temporal/outcome":"unknown"}}
}

func ExampleFailure_Protocol() {
	e := &contract.ProtocolError{Code: -32602, Message: "unknown tool"}
	f := &contract.Failure{Code: contract.CodeProtocolError, Message: e.Message, Details: e.JSON()}
	fmt.Println(f.Protocol())
	// Output: JSON-RPC error -32602: unknown tool
}

func ExampleDecodeProtocolError() {
	e, err := contract.DecodeProtocolError(json.RawMessage(`{"code":-32602,"message":"no","data":{"n":1.0}}`))
	fmt.Println(e.Code, string(e.Data), err)
	// Output: -32602 {"n":1.0} <nil>
}
