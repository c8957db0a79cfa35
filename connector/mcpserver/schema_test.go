package mcpserver

// Internal tests: only a whole server leads to withRunning from outside, and to
// mayOutlast only one per budget.

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

func TestWithRunning(t *testing.T) {
	t.Parallel()

	running := (&Server{}).Running("mcp-id").Structured()
	for name, test := range map[string]struct {
		schema    string
		good, bad []string
		want      string // exactly, where it matters
	}{
		"plain": {
			schema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":"1"}`, `{}`, `{"status":"running"}`, `{"status":"done","operation_id":"x"}`},
			want: `{"type":"object","anyOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},` + runningSchema + `]}`,
		},
		"closed": {
			schema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":1,"m":1}`},
		},
		"$defs": {
			schema: `{"type":"object","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":"1"}`},
		},
		"recursive": {
			schema: `{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"],"additionalProperties":false}`,
			good:   []string{`{"v":1,"next":{"v":2}}`}, bad: []string{`{"v":1,"next":{"v":"2"}}`, `{"v":1,"next":{"status":"running","operation_id":"x"}}`},
		},
		"definitions with references of their own": {
			schema: `{"type":"object","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"const":1}},"properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}`,
			good:   []string{`{"a":[1,1]}`}, bad: []string{`{"a":[2]}`},
		},
		"properties with the names of keywords": {
			schema: `{"type":"object","$defs":{"n":{"type":"integer"}},"properties":{"$ref":{"$ref":"#/$defs/n"},"const":{"$ref":"#/$defs/n"},"$id":{"$ref":"#/$defs/n"}},"required":["const"]}`,
			good:   []string{`{"const":1,"$ref":2,"$id":3}`}, bad: []string{`{"const":"1"}`, `{"const":1,"$ref":"2"}`, `{"const":1,"$id":"3"}`},
		},
		"values that look like references": {
			schema: `{"type":"object","properties":{"a":{"const":{"$ref":"#/$defs/n"}},"b":{"enum":[{"$ref":"#"}]}},"required":["a"]}`,
			good:   []string{`{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#"}}`}, bad: []string{`{"a":{"$ref":"#/anyOf/0/$defs/n"}}`},
		},
		"a nested $id is a root of its own": {
			schema: `{"type":"object","properties":{"a":{"$id":"https://example.com/a","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}}}},"required":["a"]}`,
			good:   []string{`{"a":{"n":1}}`}, bad: []string{`{"a":{"n":"1"}}`},
		},
		"so is the whole schema": {
			schema: `{"$id":"https://example.com/whole","type":"object","$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"]}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":"1"}`},
		},
		"an anchor": {
			schema: `{"type":"object","$defs":{"n":{"$anchor":"n","type":"integer"}},"properties":{"n":{"$ref":"#n"}},"required":["n"]}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":"1"}`},
		},
		"a dialect is stated at the root": {
			schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}},"required":["n"]}`,
			good:   []string{`{"n":1}`}, bad: []string{`{"n":"1"}`},
			want: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","anyOf":[{"type":"object","definitions":{"n":{"type":"integer"}},` +
				`"properties":{"n":{"$ref":"#/anyOf/0/definitions/n"}},"required":["n"]},` + runningSchema + `]}`,
		},
		"any type": {schema: `{"type":"integer"}`, good: []string{`1`}, bad: []string{`"1"`, `{}`}},
		"true":     {schema: `true`, good: []string{`1`, `{}`, `null`}},
		"false":    {schema: `false`, bad: []string{`1`, `{}`, `null`}},
		"empty":    {schema: `{}`, good: []string{`1`, `{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			union := withRunning(json.RawMessage(test.schema))
			if test.want != "" {
				require.Equal(t, test.want, string(union))
			}
			var schema jsonschema.Schema
			require.NoError(t, json.Unmarshal(union, &schema))
			resolved, err := schema.Resolve(nil)
			require.NoError(t, err, string(union))
			valid := func(raw string) error {
				var v any
				require.NoError(t, json.Unmarshal([]byte(raw), &v))
				return resolved.Validate(v)
			}
			require.NoError(t, valid(string(running)))
			for _, good := range test.good {
				require.NoError(t, valid(good), good)
			}
			for _, bad := range test.bad {
				require.Error(t, valid(bad), bad)
			}
		})
	}
}

// An $id that is an anchor (draft-06 and -07) is no root.
func TestMoveRefsInOldDialects(t *testing.T) {
	t.Parallel()

	for schema, want := range map[string]string{
		`{"$id":"#a","items":{"$ref":"#/definitions/b"}}`:                   `{"$id":"#a","items":{"$ref":"#/x/definitions/b"}}`,
		`{"$id":"b","items":{"$ref":"#/definitions/b"}}`:                    `{"$id":"b","items":{"$ref":"#/definitions/b"}}`,
		`{"dependencies":{"enum":{"$ref":"#/definitions/b"},"c":["$ref"]}}`: `{"dependencies":{"enum":{"$ref":"#/x/definitions/b"},"c":["$ref"]}}`,
		`{"$ref":""}`:                                `{"$ref":"#/x"}`,
		`{"$ref":"other.json#/a"}`:                   `{"$ref":"other.json#/a"}`,
		`{"$ref":{"$ref":"#"}}`:                      `{"$ref":{"$ref":"#"}}`,
		`{"a":1.0,"default":{"$ref":"#"},"n":1e400}`: `{"a":1.0,"default":{"$ref":"#"},"n":1e400}`,
	} {
		require.Equal(t, want, string(moveRefs(json.RawMessage(schema), "/x", false, 0)), schema)
	}
}

func TestMayOutlast(t *testing.T) {
	t.Parallel()

	for budget, untouched := range map[time.Duration]time.Duration{
		30 * time.Second: 29 * time.Second, 6 * time.Second: 5 * time.Second, time.Millisecond: time.Millisecond / 2,
	} {
		s := &Server{options: Options{WaitBudget: budget}}
		require.False(t, s.mayOutlast(untouched))
		for _, timeout := range []time.Duration{0, untouched + 1, budget - 1, budget, budget + 1} {
			require.True(t, s.mayOutlast(timeout), "%v of %v", timeout, budget)
		}
	}
}

func TestDeepSchemasCostLittle(t *testing.T) {
	t.Parallel()

	const depth = 5000
	deep := strings.Repeat(`{"items":`, depth) + `{"description":"` + strings.Repeat("a", 20_000) + `"}` + strings.Repeat("}", depth)
	union := withRunning(json.RawMessage(deep))
	require.True(t, json.Valid(union))
}

func FuzzMoveRefs(f *testing.F) {
	for _, seed := range []string{
		`{"$ref":"#/a","properties":{"$ref":{"$ref":"#"}}}`, `[{"$id":"a"}]`, `true`, `"\ud800"`, `{"a":1,"a":2}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		moved := moveRefs(raw, "/x", false, 0)
		if !json.Valid(raw) {
			return
		}
		require.True(t, json.Valid(moved), string(moved))
		if !strings.Contains(string(raw), "ef") && !strings.Contains(string(raw), `\`) {
			require.Equal(t, contract.Digest(raw), contract.Digest(moved))
		}
		require.True(t, json.Valid(withRunning(raw)))
	})
}
