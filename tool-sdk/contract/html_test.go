package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestUnescapeHTML(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		`"\u003cb\u003E \u0026 \u2028\u2029"`: `"<b> & \u2028\u2029"`,
		`"\\u003c"`:                           `"\\u003c"`,
		`"\\\u003c\"\u0022\ud800\u0000\n"`:    `"\\<\"\u0022\ud800\u0000\n"`,
		`{"\u003c":[1.0,"\u003e"],"a":null}`:  `{"<":[1.0,">"],"a":null}`,
		`1e400`:                               `1e400`,
	} {
		require.Equal(t, want, string(contract.UnescapeHTML(json.RawMessage(in))))
	}
}

// TestTextCopiesOfGoValues: the JSON converter of Temporal writes HTML escapes.
func TestTextCopiesOfGoValues(t *testing.T) {
	t.Parallel()

	value, err := json.Marshal(map[string]string{"html": "<b>&"})
	require.NoError(t, err)
	r, err := contract.ValueResult(value, false)
	require.NoError(t, err)
	text, _ := r.Text()
	require.Equal(t, `{"html":"<b>&"}`, text)
	require.Equal(t, string(value), string(r.Structured()))
}
