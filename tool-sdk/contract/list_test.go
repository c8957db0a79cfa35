package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func pagesOf(pages map[string]string) contract.PageFunc {
	return func(_ context.Context, cursor string) (json.RawMessage, error) {
		return json.RawMessage(pages[cursor]), nil
	}
}

// Every page is read, elements keep their bytes, and one that cannot be named is
// left out with a warning.
func TestCollectItems(t *testing.T) {
	t.Parallel()

	items, warnings, err := contract.CollectItems(t.Context(), "resources", "uri", pagesOf(map[string]string{
		"":  `{"resources":[{"uri":"a","size":9007199254740993,"x":1.0},{"uri":7},7,{}],"nextCursor":"2"}`,
		"2": `{"resources":[{"uri":"a"},{"uri":""},{"uri":"b\u0020"}],"nextCursor":null}`,
	}))
	require.NoError(t, err)
	require.Equal(t, []contract.Item{
		{Key: "a", Raw: json.RawMessage(`{"uri":"a","size":9007199254740993,"x":1.0}`)},
		{Key: "b ", Raw: json.RawMessage(`{"uri":"b\u0020"}`)},
	}, items)
	require.Equal(t, []string{
		`resources[1] is left out: uri: a number, want a string`,
		`resources[2] is left out: a number, want an object`,
		`resources[3] is left out: uri: missing`,
		`resources[4] "a" is left out: uri: another one of the service has it`,
		`resources[5] is left out: uri: it is empty`,
	}, warnings)
}

func TestCollectItemsRefuses(t *testing.T) {
	t.Parallel()

	for says, pages := range map[string]map[string]string{
		`prompts: page 1: prompts: missing`:                    {"": `{}`},
		`prompts: page 1: prompts: a string, want an array`:    {"": `{"prompts":"x"}`},
		`prompts: page 1: an array, want an object`:            {"": `[]`},
		`prompts: page 1: nextCursor: a number, want a string`: {"": `{"prompts":[],"nextCursor":7}`},
		`prompts: page 3: its nextCursor "a" came before`:      {"": `{"prompts":[],"nextCursor":"a"}`, "a": `{"prompts":[],"nextCursor":"b"}`, "b": `{"prompts":null,"nextCursor":"a"}`},
	} {
		_, _, err := contract.CollectItems(t.Context(), "prompts", "name", pagesOf(pages))
		require.EqualError(t, err, says)
	}
	pages := 0
	_, _, err := contract.CollectItems(t.Context(), "prompts", "name", func(context.Context, string) (json.RawMessage, error) {
		pages++
		return json.RawMessage(fmt.Sprintf(`{"prompts":[],"nextCursor":"%d"}`, pages)), nil
	})
	require.ErrorContains(t, err, fmt.Sprintf("more than %d pages", contract.MaxManifestPages))
	away := errors.New("away")
	_, _, err = contract.CollectItems(t.Context(), "prompts", "name", func(context.Context, string) (json.RawMessage, error) { return nil, away })
	require.Equal(t, away, err)
}

func TestHasCapability(t *testing.T) {
	t.Parallel()

	m, err := contract.DecodeManifest(json.RawMessage(`{"tools":[],"_meta":{"io.temporal/capabilities":{"prompts":{},"resources":null}}}`))
	require.NoError(t, err)
	require.True(t, m.HasCapability("prompts"))
	require.False(t, m.HasCapability("resources"))
	require.False(t, m.HasCapability("completions"))
	require.False(t, (&contract.Manifest{}).HasCapability("prompts"))
}
