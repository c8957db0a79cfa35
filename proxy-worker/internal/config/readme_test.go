package config_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	"github.com/stretchr/testify/require"
)

// The example of the README is a file without a fault, and the keys of its table
// are keys.
func TestReadme(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, readme, ok := bytes.Cut(readme, []byte("\n### The file\n"))
	require.True(t, ok)
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, example)
	f := load(t, string(example[1]), config.Options{Lookup: func(name string) (string, bool) { return "token", name == "PAYMENTS_TOKEN" }})
	require.Len(t, f.Servers, 2)
	require.Empty(t, f.Warnings)

	// None of the keys takes a zero, and one that is not known would only be a warning.
	keys := 0
	for _, key := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllSubmatch(readme, -1) {
		keys++
		document := `{"s":{"command":"c","` + string(key[1]) + `":0}}`
		_, err := config.Load("-", strings.NewReader(document), options())
		require.Error(t, err, "%s is no key", key[1])
	}
	require.Greater(t, keys, 15)
}
