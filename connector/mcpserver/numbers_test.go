package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRepresentable(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("9", 400)
	for text, want := range map[string]string{
		`{"a":1e400}`:                      `{"a":0}`,
		`[-1E+999,1e308,-0]`:               `[0,1e308,-0]`,
		`{"a":"1e400","b\"1e400":` + long:  `{"a":"1e400","b\"1e400":0`,
		`[123456789012345678901234567890]`: `[123456789012345678901234567890]`,
		`[1e-400]`:                         `[1e-400]`,
		`"\\"`:                             `"\\"`,
		`1e400`:                            `0`,
		`"`:                                `"`,
		``:                                 ``,
	} {
		before := text
		got := representable([]byte(text))
		require.Equal(t, want, strings.ReplaceAll(string(got), " ", ""))
		require.Equal(t, before, text)
		if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
			var v any
			require.NoError(t, json.Unmarshal(got, &v))
		}
	}
}
