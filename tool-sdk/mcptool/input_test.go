package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/stretchr/testify/require"
)

// TestInputRequired: a tool asks, and the call that comes back has the answers.
func TestInputRequired(t *testing.T) {
	t.Parallel()

	f := func(ctx context.Context, in modeInput) (mcptool.Result, error) {
		requests := map[string]mcptool.InputRequest{
			"who":   {Method: "elicitation/create", Params: json.RawMessage(`{"message":"Who?","n":1.0}`)},
			"roots": {Method: "roots/list"},
		}
		switch in.Mode {
		case "nothing":
			return mcptool.InputRequired(nil, ""), nil
		case "state":
			return mcptool.InputRequired(nil, "<one>"), nil
		case "method":
			return mcptool.InputRequired(map[string]mcptool.InputRequest{"x": {}}, ""), nil
		case "params":
			return mcptool.InputRequired(map[string]mcptool.InputRequest{"x": {Method: "roots/list", Params: 1}}, ""), nil
		}
		responses := mcptool.InputResponses(ctx)
		if responses == nil {
			return mcptool.InputRequired(requests, fmt.Sprint("can ask: ", mcptool.CanAsk(ctx, "elicitation/create"),
				mcptool.CanAsk(ctx, "roots/list"), mcptool.CanAsk(ctx, "sampling/createMessage"), mcptool.CanAsk(ctx, "tools/list"))), nil
		}
		return mcptool.Text(fmt.Sprintf("%s %s", responses["who"], mcptool.RequestState(ctx))), nil
	}
	s := mcptool.NewService("input")
	mcptool.Add(s, sync("sync", f), readOnly("Ask."))
	mcptool.Add(s, mcptool.NewActivityOperation("activity", f, mcptool.ActivityOptions{}), readOnly("Ask."))
	c := serve(t, s, "input")

	for _, tool := range []string{"sync", "activity"} {
		asked := func(canAsk string) string {
			return `{"resultType":"input_required","inputRequests":{` +
				`"roots":{"method":"roots/list","params":{}},"who":{"method":"elicitation/create","params":{"message":"Who?","n":1.0}}},` +
				`"requestState":"can ask: ` + canAsk + `"}`
		}
		require.Equal(t, asked("false false false false"), c.ok(tool, `{"arguments":{"mode":"x"}}`))
		require.Equal(t, asked("true true false false"), c.ok(tool,
			`{"arguments":{"mode":"x"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{"listChanged":true},"sampling":null}}}`))
		result, err := contract.DecodeResult(json.RawMessage(c.ok(tool, `{"arguments":{"mode":"x"}}`)))
		require.NoError(t, err)
		require.True(t, result.NeedsInput())

		require.Equal(t, `{"content":[{"type":"text","text":"{\"name\":1.0} <state>"}]}`,
			c.ok(tool, `{"arguments":{"mode":"x"},"inputResponses":{"who":{"name":1.0},"other":1},"requestState":"<state>"}`))
		require.Equal(t, `{"resultType":"input_required","requestState":"<one>"}`, c.ok(tool, `{"arguments":{"mode":"state"}}`))

		for mode, want := range map[string]string{
			"nothing": "it asks for no input and has no state",
			"method":  `input request "x": method: missing`,
			"params":  `input request "x": params: a number, want an object`,
		} {
			message := c.fails(tool, `{"arguments":{"mode":"`+mode+`"}}`).Message
			require.Contains(t, message, want, mode)
		}
	}
}
