package contract_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares JSON with testdata/name, which is the same JSON, indented.
func golden(t *testing.T, name string, got json.RawMessage) {
	t.Helper()

	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, got, "", "  "))
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, indented.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "no golden file; go test -update writes it")
	require.Equal(t, string(want), indented.String(), "go test -update accepts the change")
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// object builds a JSON object from keys and values in turn.
func object(keysAndValues ...string) json.RawMessage {
	var o contract.Object
	for i := 0; i < len(keysAndValues); i += 2 {
		o.Set(keysAndValues[i], raw(keysAndValues[i+1]))
	}
	return o.JSON()
}

// exact are values that decoding to Go and back would change.
var exact = map[string]string{
	"integer above 2^53":       `9007199254740993`,
	"another":                  `1917043659912705296`,
	"thirty digits":            `123456789012345678901234567890`,
	"fraction of zero":         `1.0`,
	"beyond float64":           `1e400`,
	"minus zero":               `-0`,
	"exponent":                 `1E+2`,
	"key order":                `{"z":1,"a":2,"m":{"y":1,"b":2}}`,
	"duplicates":               `{"a":1,"a":2,"\u0061":3}`,
	"NUL":                      `"a\u0000b"`,
	"HTML":                     `"<b>&amp;</b>"`,
	"escaped HTML":             `"\u003cb\u003e"`,
	"line separator":           `"\u2028"`,
	"raw line separator":       "\"\u2028\"",
	"lone high surrogate":      `"\ud800"`,
	"lone low surrogate":       `"\udc00A"`,
	"surrogate pair":           `"\ud83d\ude00"`,
	"lone surrogate in a key":  `{"\ud800":1,"\ufffd":2,"\uDBFF":3}`,
	"escaped quotes and slash": `"\"\\\/"`,
	"empty containers":         `[{},[],"",{"":{}}]`,
	"deep":                     deep(900),
}

func deep(n int) string {
	return string(bytes.Repeat([]byte(`{"a":[`), n/2)) + "1.0" + string(bytes.Repeat([]byte(`]}`), n/2))
}
