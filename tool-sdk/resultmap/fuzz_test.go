package resultmap_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

func FuzzToolErrorTravels(f *testing.F) {
	f.Add("boom", `{"content":[{"type":"text","text":"a"}],"isError":true}`)
	f.Add("\xff", `{"content":[{"type":"hologram"}],"s":"\ud800","n":1.0}`)
	f.Add("", `null`)
	f.Fuzz(func(t *testing.T, message, details string) {
		for _, code := range contract.Codes() {
			in := &contract.Failure{Code: code, Message: message, Details: raw(details)}
			got := resultmap.FromError(travel(t, resultmap.OperationError(in)))
			require.Equal(t, code, got.Code)
			require.True(t, got.Result().IsError())
			require.True(t, json.Valid(got.Result().JSON()))
			if got.Details != nil {
				require.Equal(t, details, string(got.Details))
			}
		}
	})
}

// FuzzPayload: of a payload of any encoding comes what its bytes are, or an error
// that shows none of them.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{`{"n":1.0}`, `"a"`, ``, `{`, `{"content":[],"isError":true}`, "\xff", `{"content":[{"type":"text","text":"\ud800"}]}`} {
		for _, encoding := range []string{"json/plain", "json/protobuf", "binary/plain", "binary/null", "binary/protobuf", ""} {
			f.Add(encoding, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		payload := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}
		output, err := resultmap.JSON(converter.NewRawValue(payload))
		if err != nil {
			require.NotContains(t, []string{"json/plain", "json/protobuf", "binary/plain", "binary/null"}, encoding)
			require.Contains(t, err.Error(), strconv.Quote(encoding))
			return
		}
		switch encoding {
		case "json/plain", "json/protobuf":
			require.Equal(t, string(data), string(output))
		case "binary/plain":
			var plain []byte
			require.NoError(t, json.Unmarshal(output, &plain))
			require.Equal(t, string(data), string(plain))
		}
		for _, tool := range []contract.Tool{
			{Encoding: contract.EncodingValue}, {Encoding: contract.EncodingMCP},
			{Encoding: contract.EncodingValue, OutputSchema: json.RawMessage("{}")},
		} {
			r, err := resultmap.ToResult(tool, output)
			if err != nil {
				require.Equal(t, contract.CodeFailed, resultmap.FromError(err).Code)
				continue
			}
			require.True(t, json.Valid(r.JSON()))
			if tool.Encoding == contract.EncodingMCP {
				require.Equal(t, string(output), string(r.JSON()))
			}
		}
	})
}
