package mcptool_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

type level int

func (l *level) UnmarshalText([]byte) error { *l = 1; return nil }

type custom struct{ hidden int }

func (c *custom) UnmarshalJSON([]byte) error { c.hidden = 1; return nil }

type embedded struct {
	Promoted string `json:"promoted" mcp:"maxLength=3"`
}

type allTypes struct {
	embedded

	Raw     json.RawMessage  `json:"raw"`
	RawPtr  *json.RawMessage `json:"rawPtr" jsonschema:"anything"`
	Number  json.Number      `json:"number"`
	Bytes   []byte           `json:"bytes"`
	Time    time.Time        `json:"time"`
	Wait    time.Duration    `json:"wait"`
	Big     big.Int          `json:"big"`
	Level   level            `json:"level"`
	Custom  custom           `json:"custom"`
	Any     any              `json:"any"`
	Levels  map[string]level `json:"levels"`
	Array   [2]bool          `json:"array"`
	Skipped chan int         `json:"-"`
}

type tagged struct {
	Int     int            `json:"int" jsonschema:"how many <things>" mcp:"minimum=1,maximum=10,multipleOf=1,default=5"`
	Float   float64        `json:"float,omitempty" mcp:"exclusiveMinimum=0,exclusiveMaximum=1.5"`
	Word    string         `json:"word" mcp:"minLength=1,maxLength=9,pattern=^[a-z\\,]{1\\,9}$,format=hostname,title=A word"`
	Color   string         `json:"color" mcp:"enum=red|green\\|blue|a\\,b,default=red"`
	Level   int64          `json:"level,omitempty" mcp:"enum=1|9007199254740993"`
	Tags    []string       `json:"tags" mcp:"minItems=1,maxItems=3,uniqueItems,enum=a|b,pattern=."`
	Sizes   []int          `json:"sizes" mcp:"maximum=3,default=[1\\,2]"`
	Flag    *bool          `json:"flag,omitempty" mcp:"default=true"`
	Nested  []tagElement   `json:"nested,omitempty"`
	ByKey   map[string]tag `json:"byKey,omitempty"`
	Nothing string         `json:"nothing" mcp:"default="`
}

type tagElement struct {
	N *tag `json:"n"`
}

type tag struct {
	N int `json:"n" mcp:"minimum=0"`
}

func TestSchemasOfGoTypes(t *testing.T) {
	t.Parallel()

	tool := only(t, constant[allTypes, allTypes]("types"), readOnly("Show types."))
	require.JSONEq(t, `{
		"type": "object", "additionalProperties": false,
		"required": ["promoted","raw","rawPtr","number","bytes","time","wait","big","level","custom","any","levels","array"],
		"properties": {
			"promoted": {"type": "string", "maxLength": 3},
			"raw": true, "rawPtr": {"description": "anything"}, "number": {"type": "number"},
			"bytes": {"type": ["null", "string"], "contentEncoding": "base64"},
			"time": {"type": "string"}, "wait": {"type": "integer"}, "big": {"type": "integer"},
			"level": {"type": "string"}, "custom": true, "any": true,
			"levels": {"type": ["null", "object"], "additionalProperties": {"type": "string"}},
			"array": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}
		}}`, string(tool.InputSchema))
	require.JSONEq(t, string(tool.InputSchema), string(tool.OutputSchema))
}

func TestSchemasOfStructTags(t *testing.T) {
	t.Parallel()

	tool := only(t, constant[tagged, nexus.NoValue]("tags"), readOnly("Show tags."))
	require.Equal(t, `{"type":"object","properties":{`+
		`"int":{"type":"integer","description":"how many <things>","default":5,"multipleOf":1,"minimum":1,"maximum":10},`+
		`"float":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1.5},`+
		`"word":{"type":"string","title":"A word","minLength":1,"maxLength":9,"pattern":"^[a-z,]{1,9}$","format":"hostname"},`+
		`"color":{"type":"string","default":"red","enum":["red","green|blue","a,b"]},`+
		`"level":{"type":"integer","enum":[1,9007199254740993]},`+
		`"tags":{"type":["null","array"],"items":{"type":"string","enum":["a","b"],"pattern":"."},"minItems":1,"maxItems":3,"uniqueItems":true},`+
		`"sizes":{"type":["null","array"],"items":{"type":"integer","maximum":3},"default":[1,2]},`+
		`"flag":{"type":["null","boolean"],"default":true},`+
		`"nested":{"type":["null","array"],"items":{"type":"object","properties":{"n":{"type":["null","object"],"properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}},"required":["n"],"additionalProperties":false}},`+
		`"byKey":{"type":["null","object"],"additionalProperties":{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}},`+
		`"nothing":{"type":"string","default":""}`+
		`},"required":["word","tags"],"additionalProperties":false}`, string(tool.InputSchema))
	require.Nil(t, tool.OutputSchema)
}

func TestOutputSchemas(t *testing.T) {
	t.Parallel()

	tool := readOnly("Return.")
	for want, got := range map[string]json.RawMessage{
		`{"type":"string"}`:  only(t, constant[nameInput, string]("x"), tool).OutputSchema,
		`{"type":"integer"}`: only(t, constant[nameInput, int]("x"), tool).OutputSchema,
		`{"type":["null","array"],"items":{"type":"integer"}}`:   only(t, constant[nameInput, []int]("x"), tool).OutputSchema,
		`{"type":["null","object"],"additionalProperties":true}`: only(t, constant[nameInput, map[string]any]("x"), tool).OutputSchema,
		`{"type":["null","object"],"properties":{"n":{"type":["null","object"],"properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}},` +
			`"required":["n"],"additionalProperties":false}`: only(t, constant[nameInput, *tagElement]("x"), tool).OutputSchema,
	} {
		require.JSONEq(t, want, string(got))
	}
	require.Nil(t, only(t, constant[nameInput, any]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, json.RawMessage]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, converter.RawValue]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, nexus.NoValue]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, mcptool.Result]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, custom]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, *commonpb.WorkflowExecution]("x"), tool).OutputSchema)
	tool.OutputSchema = json.RawMessage(`null`)
	require.Nil(t, only(t, constant[nameInput, greeting]("x"), tool).OutputSchema)
	require.Nil(t, only(t, constant[nameInput, chan int]("x"), tool).OutputSchema)
}

func TestInputSchemas(t *testing.T) {
	t.Parallel()

	tool := readOnly("Take.")
	const object = `{"type":"object"}`
	for _, op := range []nexus.RegisterableOperation{
		constant[nexus.NoValue, string]("x"), constant[any, string]("x"), constant[json.RawMessage, string]("x"),
		constant[converter.RawValue, string]("x"), constant[*commonpb.WorkflowExecution, string]("x"),
	} {
		require.Equal(t, object, string(only(t, op, tool).InputSchema))
	}
	require.JSONEq(t, `{"type":"object","additionalProperties":{"type":"integer"}}`, string(only(t, constant[map[string]int, string]("x"), tool).InputSchema))
	require.Equal(t, only(t, constant[nameInput, string]("x"), tool).InputSchema, only(t, constant[*nameInput, string]("x"), tool).InputSchema)
	tool.InputSchema = json.RawMessage(`{ "type": "object", "x-unknown": "<kept>" }`)
	require.Equal(t, string(tool.InputSchema), string(only(t, constant[nameInput, string]("x"), tool).InputSchema))
}

type (
	digest []byte
	octet  uint8
	signal uint8
)

func (signal) MarshalText() ([]byte, error) { return []byte("on"), nil }

func TestBytesUnderAnyName(t *testing.T) {
	t.Parallel()

	type output struct {
		Digest digest            `json:"digest"`
		Key    ed25519.PublicKey `json:"key"`
		Octets *[]octet          `json:"octets"`
		Array  [2]byte           `json:"array"`
		Names  []signal          `json:"names"`
	}
	tool := only(t, constant[nameInput, output]("x"), readOnly("Return."))
	const base64 = `{"type":["null","string"],"contentEncoding":"base64"}`
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["digest","key","octets","array","names"],"properties":{
		"digest":`+base64+`,"key":`+base64+`,"octets":`+base64+`,
		"array":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer","minimum":0,"maximum":255}},
		"names":{"type":["null","array"],"items":{"type":"string"}}}}`, string(tool.OutputSchema))
}

// A nil map is written as null, at whatever depth; a struct is not.
func TestNilMapsFitTheirSchema(t *testing.T) {
	t.Parallel()

	type output struct {
		Map    map[string]int              `json:"map"`
		List   []map[string]any            `json:"list"`
		Nested map[string]map[string]level `json:"nested"`
		Empty  struct{}                    `json:"empty"`
	}
	raw := only(t, constant[nameInput, output]("x"), readOnly("Return.")).OutputSchema
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(raw, &schema))
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	for _, out := range []output{{}, {List: []map[string]any{nil}, Nested: map[string]map[string]level{"a": nil}}} {
		var value any
		data, err := json.Marshal(out)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &value))
		require.NoError(t, resolved.Validate(value), "%s", data)
	}
	require.Error(t, resolved.Validate(map[string]any{"map": nil, "list": nil, "nested": nil, "empty": nil}))
}

// encoding/json puts what is tagged ",string" into a string.
func TestQuotedFields(t *testing.T) {
	t.Parallel()

	type io struct {
		ID   int64 `json:"id,string"`
		Ptr  *int8 `json:"ptr,omitempty,string"`
		Flag bool  `json:"flag,string"`
	}
	tool := only(t, constant[io, io]("x"), readOnly("Quote."))
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["id","flag"],"properties":{
		"id":{"type":"string"},"ptr":{"type":["null","string"]},"flag":{"type":"string"}}}`, string(tool.InputSchema))
	require.JSONEq(t, string(tool.InputSchema), string(tool.OutputSchema))
}

type (
	// Base is embedded.
	Base struct {
		ID string `json:"id"`
	}
	// Kind is embedded, and no struct.
	Kind string
	// Digest is embedded, and encoding/json writes it in base64.
	Digest []byte
)

// What encoding/json calls otherwise than the schema would is refused.
func TestEmbeddedFields(t *testing.T) {
	t.Parallel()

	type pair struct {
		Base
		digest //nolint:unused // no field for encoding/json

		Q string `json:"q"`
	}
	require.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["id","q"],"properties":{"id":{"type":"string"},"q":{"type":"string"}}}`,
		string(only(t, constant[pair, string]("x"), readOnly("Take.")).InputSchema))

	type named struct {
		Base `json:"base"`

		Q string `json:"q"`
	}
	type hidden struct {
		*Base `json:"-"`
	}
	type kind struct{ Kind }
	type bytes struct {
		Digest `json:"digest"`
	}
	type private struct {
		embedded `json:"private"`
	}
	const why = "it is embedded, and encoding/json does not take its members for those of mcptool_test."
	for _, c := range []struct {
		op   nexus.RegisterableOperation
		want string
	}{
		{constant[named, string]("x"), "inputSchema: field Base: " + why + "named; give the field a name"},
		{constant[string, []named]("x"), "outputSchema: field [].Base: " + why + "named"},
		{constant[hidden, string]("x"), "inputSchema: field Base: " + why + "hidden"},
		{constant[kind, string]("x"), "inputSchema: field Kind: " + why + "kind"},
		{constant[bytes, string]("x"), "inputSchema: field Digest: " + why + "bytes"},
		{constant[private, string]("x"), "inputSchema: field embedded: " + why + "private"},
	} {
		s := mcptool.NewService("bad")
		mcptool.Add(s, c.op, readOnly("Be bad."))
		require.Contains(t, fault(t, s), c.want)
	}
}

// A schema of the author's own may say what the type cannot.
func TestEmbeddedFieldsByTheirName(t *testing.T) {
	t.Parallel()

	type input struct {
		Base `json:"base"`
		Kind
	}
	tool := readOnly("Take.")
	tool.InputSchema = json.RawMessage(`{"type":"object"}`)
	tool.OutputSchema = json.RawMessage(`null`)
	s := mcptool.NewService("embedded", silent)
	mcptool.Add(s, sync("x", func(_ context.Context, in input) (input, error) { return in, nil }), tool)
	output, err := offline(t, s).call(t, "x", `{"base":{"id":"a"},"Kind":"b","id":"c"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"base":{"id":"a"},"Kind":"b"}`, output)
}

func TestBadTags(t *testing.T) {
	t.Parallel()

	type input struct {
		A int      `json:"a" mcp:"minimum"`
		B int      `json:"b" mcp:"minimum=x"`
		C string   `json:"c" mcp:"minLength=-1"`
		D int      `json:"d" mcp:"default=x"`
		E int      `json:"e" mcp:"enum=1|x"`
		F int      `json:"f" mcp:"pattern=x"`
		G []string `json:"g" mcp:"uniqueItems=no"`
		H int      `json:"h" mcp:"minItems=1"`
		I int      `json:"i" mcp:"enum=123456789012345678901234567890"`
		J int      `json:"j" mcp:""`
		K float64  `json:"k" mcp:"maximum=1e400"`
		L int      `json:"l" mcp:"multipleOf=0"`
		M int      `json:"m" mcp:"minimum=5,maximum=1"`
		N string   `json:"n" mcp:"minLength=3,maxLength=2"`
		O []int    `json:"o" mcp:"exclusiveMinimum=1,maximum=1"`
	}
	s := mcptool.NewService("bad")
	mcptool.Add(s, constant[input, string]("x"), readOnly("Be bad."))
	require.Equal(t, `mcptool: bad: tool "x": inputSchema: field A: mcp tag: minimum: want keyword=value
mcptool: bad: tool "x": inputSchema: field B: mcp tag: minimum=x: "x" is no number in the range of a float64
mcptool: bad: tool "x": inputSchema: field C: mcp tag: minLength=-1: "-1" is no count
mcptool: bad: tool "x": inputSchema: field D: mcp tag: default=x: "x" is no JSON
mcptool: bad: tool "x": inputSchema: field E: mcp tag: enum=1|x: "x" is no JSON
mcptool: bad: tool "x": inputSchema: field F: mcp tag: pattern=x: the field is no string
mcptool: bad: tool "x": inputSchema: field G: mcp tag: uniqueItems=no: it stands alone
mcptool: bad: tool "x": inputSchema: field H: mcp tag: minItems=1: the field is no array
mcptool: bad: tool "x": inputSchema: field I: mcp tag: enum=123456789012345678901234567890: 123456789012345678901234567890 cannot be compared exactly
mcptool: bad: tool "x": inputSchema: field J: mcp tag: empty
mcptool: bad: tool "x": inputSchema: field K: mcp tag: maximum=1e400: "1e400" is no number in the range of a float64
mcptool: bad: tool "x": inputSchema: field L: mcp tag: multipleOf=0: it is not above zero
mcptool: bad: tool "x": inputSchema: field M: mcp tag: no value is within minimum=5 and maximum=1
mcptool: bad: tool "x": inputSchema: field N: mcp tag: no value is within minLength=3 and maxLength=2
mcptool: bad: tool "x": inputSchema: field O: mcp tag: no value is within exclusiveMinimum=1 and maximum=1`, fault(t, s))
	for _, bad := range []string{`{"type":"object","properties":{"a":{"default":"x","enum":["y"]}}}`, `{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`, `{"type":"object","properties":{"a":{"pattern":"("}}}`} {
		s := mcptool.NewService("bad")
		tool := readOnly("Be bad.")
		tool.InputSchema = json.RawMessage(bad)
		mcptool.Add(s, constant[any, string]("x"), tool)
		require.Contains(t, fault(t, s), `mcptool: bad: tool "x": inputSchema: `)
	}
}
