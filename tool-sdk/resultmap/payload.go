package resultmap

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// RawValue returns a value that Temporal carries as these very bytes: marshalling
// them would drop white space and escape `<`, `>` and `&`. Codecs still apply.
// No data at all is null.
func RawValue(data json.RawMessage) converter.RawValue {
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	return converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)},
		Data:     data,
	})
}

// JSON returns the JSON of a payload that a converter left as it is: JSON and
// protobuf JSON as their bytes, no value as null, plain bytes as a base64 string
// (as encoding/json writes them). Any other encoding is an error that names it.
func JSON(value converter.RawValue) (json.RawMessage, error) {
	p := value.Payload()
	if p == nil {
		return json.RawMessage("null"), nil
	}
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		return p.GetData(), nil
	case converter.MetadataEncodingNil:
		return json.RawMessage("null"), nil
	case converter.MetadataEncodingBinary:
		return contract.Quote(base64.StdEncoding.EncodeToString(p.GetData())), nil
	default:
		return nil, &contract.Failure{
			Code: contract.CodeFailed,
			Message: fmt.Sprintf("The value has the payload encoding %q, which is not JSON. "+
				"Give the caller the data converter or codec of the service.", encoding),
		}
	}
}

// ToResult returns the MCP result of an operation of the tool that completed with
// the output. Output that the tool's encoding does not allow is a
// [*contract.Failure] that says what is wrong with it.
func ToResult(tool contract.Tool, output json.RawMessage) (contract.Result, error) {
	var r contract.Result
	var err error
	if tool.Encoding == contract.EncodingMCP {
		r, err = contract.DecodeResult(output)
	} else {
		r, err = contract.ValueResult(output, tool.OutputSchema != nil)
	}
	if err != nil {
		return contract.Result{}, &contract.Failure{
			Code: contract.CodeFailed, Cause: err,
			Message: fmt.Sprintf("The service answered with something that its encoding %q does not allow: %v.", tool.Encoding, err),
		}
	}
	return r, nil
}
