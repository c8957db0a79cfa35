package resultmap_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// A caller hands the input over as RawValue and takes the output as
// converter.RawValue: so the bytes are those of the contract on both ways.
func ExampleRawValue() {
	payload, err := converter.GetDefaultDataConverter().ToPayload(resultmap.RawValue(json.RawMessage(`{"n": 1.0}`)))
	if err != nil {
		panic(err)
	}
	fmt.Println(string(payload.GetMetadata()["encoding"]), string(payload.GetData()))
	// Output: json/plain {"n": 1.0}
}

func ExampleJSON() {
	output := resultmap.RawValue(json.RawMessage(`9007199254740993`)) // what handle.Get filled in
	data, err := resultmap.JSON(output)
	fmt.Println(string(data), err)
	// Output: 9007199254740993 <nil>
}

// A Nexus handler ends the call with an answer for the model.
func ExampleOperationError() {
	lookUp := func() error {
		f := resultmap.ToolError(contract.TextResult("There is no key 7.", true))
		return resultmap.OperationError(f)
	}

	var opErr *nexus.OperationError
	fmt.Println(errors.As(lookUp(), &opErr), opErr.State)
	fmt.Println(string(resultmap.FromError(lookUp()).Result().JSON()))
	// Output:
	// true failed
	// {"content":[{"type":"text","text":"There is no key 7."}],"isError":true}
}

// An activity says that it must not be run again.
func ExampleApplicationError() {
	err := resultmap.ApplicationError(&contract.Failure{
		Code:    contract.CodeOutcomeUnknown,
		Message: "The connection broke while the order was sent.",
		Cause:   errors.New("read tcp 10.0.0.1:443: connection reset"), // stays here
	})

	var app *temporal.ApplicationError
	fmt.Println(errors.As(err, &app), app.Type(), app.NonRetryable())
	// Output: true McpOutcomeUnknown true
}

func ExampleToolError() {
	f := resultmap.ToolError(contract.TextResult("There is no key 7.", true))
	fmt.Println(f.Code, f.Message)
	// Output: McpToolError There is no key 7.
}

func ExampleProtocolError() {
	f := resultmap.ProtocolError(&contract.ProtocolError{Code: -32602, Message: "Unknown tool: x"})
	fmt.Println(f.Code, f.Protocol())
	// Output: McpProtocolError JSON-RPC error -32602: Unknown tool: x
}

// A caller that got an error back tells what happened by the failure's code.
func ExampleFromError() {
	err := fmt.Errorf("call of look_up: %w", temporal.NewNonRetryableApplicationError("There is no key 7.", "NoKey", nil))
	switch f := resultmap.FromError(err); f.Code {
	case contract.CodeCanceled:
		fmt.Println("canceled")
	default:
		fmt.Println(f.Code, f.Type, f.Message)
	}
	// Output: failed NoKey There is no key 7.
}

// A caller that got an output back makes the MCP result that the tool's encoding
// and output schema ask for.
func ExampleToResult() {
	tool, _, err := contract.DecodeTool(json.RawMessage(
		`{"name":"count","inputSchema":{"type":"object"},"outputSchema":{"type":"integer"}}`))
	if err != nil {
		panic(err)
	}
	result, err := resultmap.ToResult(tool, json.RawMessage(`9007199254740993`))
	fmt.Println(string(result.JSON()), err)
	// Output: {"content":[{"type":"text","text":"9007199254740993"}],"structuredContent":9007199254740993} <nil>
}
