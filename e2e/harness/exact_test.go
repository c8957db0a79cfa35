package harness_test

import (
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

func TestExact(t *testing.T) {
	t.Parallel()

	for _, same := range [][2]string{
		{`{"a": 1, "b" :[ 1.0 ]}`, `{"a":1,"b":[1.0]}`},
		{`"<é\ud800\n\/"`, `"\u003c\u00e9\uD800\u000a/"`},
		{`"😀"`, `"\ud83d\ude00"`},
		{`"\\\""`, `"\u005c\u0022"`},
	} {
		harness.RequireExact(t, same[0], same[1])
	}
	for _, other := range [][2]string{
		{`1.0`, `1`}, {`-0`, `0`}, {`{"a":1,"b":2}`, `{"b":2,"a":1}`}, {`{"a":1,"a":1}`, `{"a":1}`},
		{`"\ud800"`, `"\ufffd"`}, {`"1"`, `1`}, {`9007199254740993`, `9007199254740992`}, {`" "`, `""`},
	} {
		a, err := harness.Exact(other[0])
		require.NoError(t, err)
		b, err := harness.Exact(other[1])
		require.NoError(t, err)
		require.NotEqual(t, a, b)
	}
	_, err := harness.Exact(`{`)
	require.Error(t, err)
}
