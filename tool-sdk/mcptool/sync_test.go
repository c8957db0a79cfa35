package mcptool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/stretchr/testify/require"
)

type numbers struct {
	Int   int64           `json:"int,omitempty"`
	Uint  uint64          `json:"uint,omitempty"`
	Any   any             `json:"any,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Float *float64        `json:"float,omitempty"`
	Text  string          `json:"text,omitempty"`
}

func TestNumbersArriveAndLeaveExact(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("numbers")
	mcptool.Add(s, sync("echo", func(_ context.Context, in numbers) (numbers, error) { return in, nil }), readOnly("Echo."))
	mcptool.Add(s, sync("raw", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }), readOnly("Echo."))
	c := serve(t, s, "numbers")

	for _, input := range []string{
		`{"int":9007199254740993}`,
		`{"int":-9223372036854775808}`,
		`{"uint":18446744073709551615}`,
		`{"any":9007199254740993}`,
		`{"any":{"a":[1917043659912705296,1.0,1e400,-0,123456789012345678901234567890]}}`,
		`{"raw":1e400}`,
		`{"raw":[-0,1.0,123456789012345678901234567890,{"b":1,"a":2,"b":3}]}`,
		`{"raw":"\ud800 \udfff"}`,
		`{"text":"<b>&é"}`,
	} {
		require.Equal(t, input, c.ok("echo", input))
	}
	require.JSONEq(t, `{"int":1000}`, c.ok("echo", `{"int":1e3}`))
	require.JSONEq(t, `{"int":3}`, c.ok("echo", `{"int":3.0}`))
	const raw = `{ "b" : 1e400, "a":"\ud800<", "b":-0 , "c":9007199254740993}`
	require.Equal(t, raw, c.ok("raw", raw))
}
