package mcptool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

type order struct {
	ID     int64           `json:"id" mcp:"minimum=1"`
	Color  string          `json:"color,omitempty" mcp:"enum=red|green"`
	Code   string          `json:"code,omitempty" mcp:"pattern=^[A-Z]+$,minLength=2,maxLength=4"`
	Price  float64         `json:"price,omitempty" mcp:"exclusiveMinimum=0,maximum=99.5"`
	Items  []item          `json:"items,omitempty" mcp:"maxItems=2"`
	Notes  *string         `json:"notes,omitempty"`
	Extra  any             `json:"extra,omitempty"`
	Filter *settings       `json:"filter,omitempty"`
	Stock  map[string]item `json:"stock,omitempty"`
}

type item struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty" mcp:"minimum=1,default=1"`
}

type settings struct {
	Limit int  `json:"limit" mcp:"default=10"`
	Deep  deep `json:"deep,omitzero"`
}

type deep struct {
	On bool `json:"on" mcp:"default=true"`
}

// echoing is a tool that returns what its code got.
func echoing[I any](t *testing.T, schema string) func(input string) (string, *contract.Failure) {
	t.Helper()
	tool := readOnly("Echo.")
	tool.InputSchema = json.RawMessage(schema)
	s := mcptool.NewService("echo", silent)
	mcptool.Add(s, sync("echo", func(_ context.Context, in I) (I, error) { return in, nil }), tool)
	r := offline(t, s)
	return func(input string) (string, *contract.Failure) {
		output, err := r.call(t, "echo", input)
		return output, failure(err)
	}
}

func TestFaultsNamePathAndRule(t *testing.T) {
	t.Parallel()

	echo := echoing[order](t, "")
	for input, want := range map[string]string{
		`{}`:                              "arguments.id: required: missing",
		`{"id":0}`:                        "arguments.id: minimum: 0, want at least 1",
		`{"id":"1"}`:                      `arguments.id: type: "1", want integer`,
		`{"id":1.5}`:                      "arguments.id: type: 1.5, want integer",
		`{"id":null}`:                     "arguments.id: type: null, want integer",
		`{"id":1,"color":"blue"}`:         `arguments.color: enum: "blue" is none of ["red","green"]`,
		`{"id":1,"code":"a"}`:             "arguments.code: minLength: 1 characters, want at least 2\narguments.code: pattern: \"a\" does not match ^[A-Z]+$",
		`{"id":1,"code":"ABCDE"}`:         "arguments.code: maxLength: 5 characters, want at most 4",
		`{"id":1,"price":0}`:              "arguments.price: exclusiveMinimum: 0, want more than 0",
		`{"id":1,"price":99.6}`:           "arguments.price: maximum: 99.6, want at most 99.5",
		`{"id":1,"price":1e400}`:          "arguments.price: maximum: 1.7976931348623157e+308, want at most 99.5",
		`{"id":1,"items":[{},{},{}]}`:     "arguments.items[0].name: required: missing\narguments.items[1].name: required: missing\narguments.items[2].name: required: missing\narguments.items: maxItems: 3 items, want at most 2",
		`{"id":1,"items":{"name":"x"}}`:   `arguments.items: type: {"name":"x"}, want null or array`,
		`{"id":1,"ID":2,"a b":3}`:         "arguments.ID: additionalProperties: unknown, want one of id, color, code, price, items, notes, extra, filter, stock\narguments[\"a b\"]: additionalProperties: unknown, want one of id, color, code, price, items, notes, extra, filter, stock",
		`{"id":-1,"color":1,"notes":"x"}`: "arguments.id: minimum: -1, want at least 1\narguments.color: type: 1, want string",
		`{"id":1,"stock":{"b":{"name":"x"},"a":{"name":1},"c d":null}}`: "arguments.stock.a.name: type: 1, want string\narguments.stock[\"c d\"]: type: null, want object",
		`[]`:                         "arguments: an array, want an object",
		`"x"`:                        "arguments: a string, want an object",
		`{"id":9223372036854775808}`: "arguments.id: type: number 9223372036854775808 does not fit in int64",
		`{"id":1.` + strings.Repeat("0", 300) + `}`: "arguments.id: type: number 1." + strings.Repeat("0", 71) + "… does not fit in int64",
	} {
		_, f := echo(input)
		require.NotNil(t, f, input)
		require.Equal(t, contract.CodeToolError, f.Code)
		text, _ := f.Result().Text()
		require.Equal(t, want, text, input)
		require.True(t, f.Result().IsError())
	}
	_, f := echo(`{"id":1,"items":[` + strings.Repeat(`{},`, 99) + `{}]}`)
	text, _ := f.Result().Text()
	require.Len(t, strings.Split(text, "\n"), 21)
	require.Contains(t, text, "and 81 more")
	_, f = echo(`{"id":`)
	require.NotNil(t, f)
}

func TestNumbersAreJudgedExactly(t *testing.T) {
	t.Parallel()

	const schema = `{"type":"object","properties":{
		"max": {"maximum": 9007199254740992}, "min": {"exclusiveMinimum": 0, "type": "number"},
		"id": {"enum": [9007199254740993, "x"]}, "const": {"const": {"n": 9007199254740993}},
		"any": {"anyOf": [{"const": 9007199254740993}]}, "int": {"type": "integer"}, "unique": {"uniqueItems": true}
	}}`
	echo := echoing[json.RawMessage](t, schema)
	for _, input := range []string{
		`{"max":9007199254740992}`, `{"min":1e-400}`, `{"id":9007199254740993}`, `{"const":{"n":9007199254740993}}`,
		`{"any":9007199254740993}`, `{"int":1e400}`, `{"int":123456789012345678901234567890}`, `{"int":-0}`, `{"int":1.0}`,
		`{"unique":[9007199254740992,9007199254740993]}`, `{"max":-1e400}`,
	} {
		output, f := echo(input)
		require.Nil(t, f, "%s: %v", input, f)
		require.Equal(t, input, output)
	}
	for input, rule := range map[string]string{
		`{"max":9007199254740993}`:         "arguments.max: maximum: 9007199254740993, want at most 9007199254740992",
		`{"max":1e400}`:                    "arguments.max: maximum: ",
		`{"min":0}`:                        "arguments.min: exclusiveMinimum: ",
		`{"id":9007199254740992}`:          "arguments.id: enum: 9007199254740992 is none of [9007199254740993,\"x\"]",
		`{"const":{"n":9007199254740992}}`: "arguments.const: const: ",
		`{"any":9007199254740992}`:         "arguments.any: anyOf: ",
		`{"int":1e-400}`:                   "arguments.int: type: ",
		`{"unique":[1,1.0]}`:               "arguments.unique: uniqueItems: array items ",
	} {
		_, f := echo(input)
		require.NotNil(t, f, input)
		text, _ := f.Result().Text()
		require.Contains(t, text, rule, input)
	}
}

func TestMultiplesAreJudgedExactly(t *testing.T) {
	t.Parallel()

	type input struct {
		Price float64          `json:"price,omitempty" mcp:"multipleOf=0.01,maximum=1000,default=19.99"`
		Even  int64            `json:"even,omitempty" mcp:"multipleOf=2"`
		Sizes []int            `json:"sizes,omitempty" mcp:"multipleOf=3"`
		Steps map[string]steps `json:"steps,omitempty"`
	}
	echo := echoing[input](t, "")
	for _, input := range []string{
		`{"price":19.99}`, `{"price":1.1}`, `{"price":0.07,"even":9007199254740994}`,
		`{"price":1,"sizes":[3,9223372036854775806]}`, `{"price":1,"steps":{"a":{"n":0.3}}}`,
	} {
		output, f := echo(input)
		require.Nil(t, f, "%s: %v", input, f)
		require.Equal(t, input, output)
	}
	for input, want := range map[string]string{
		`{"price":19.995}`:                  "arguments.price: multipleOf: 19.995, want a multiple of 0.01",
		`{"price":1000.001}`:                "arguments.price: maximum: 1000.001, want at most 1000\narguments.price: multipleOf: 1000.001, want a multiple of 0.01",
		`{"even":9007199254740993}`:         "arguments.even: multipleOf: 9007199254740993, want a multiple of 2",
		`{"sizes":[3,9223372036854775807]}`: "arguments.sizes[1]: multipleOf: 9223372036854775807, want a multiple of 3",
		`{"steps":{"a":{"n":0.25}}}`:        "arguments.steps.a.n: multipleOf: 0.25, want a multiple of 0.1",
		`{"price":1e-999999999,"even":"x"}`: "arguments.even: type: \"x\", want integer\narguments.price: multipleOf: 1e-999999999, want a multiple of 0.01 with at most 400 digits",
	} {
		_, f := echo(input)
		require.NotNil(t, f, input)
		text, _ := f.Result().Text()
		require.Equal(t, want, text, input)
	}

	raw := echoing[json.RawMessage](t, `{"type":"object","properties":{
		"big":{"multipleOf":7},
		"list":{"prefixItems":[{}],"items":{"multipleOf":2}},
		"either":{"anyOf":[{"multipleOf":2},{"multipleOf":3}]}}}`)
	for input, good := range map[string]bool{
		`{"big":864197523086419752308641975237}`: true,
		`{"big":864197523086419752308641975238}`: false,
		`{"list":[1,2]}`:                         true,
		`{"list":[1,3]}`:                         false,
		`{"either":9}`:                           true,
		`{"either":7}`:                           false,
		`{"big":1e400,"big":"no number"}`:        true,
	} {
		_, f := raw(input)
		require.Equal(t, good, f == nil, "%s: %v", input, f)
	}

	for bad, want := range map[string]string{
		`{"type":"object","properties":{"a":{"multipleOf":2,"default":3}}}`: "a: default: multipleOf: 3, want a multiple of 2",
		`{"type":"object","properties":{"a":{"multipleOf":0}}}`:             "multipleOf: it is not above zero",
	} {
		s := mcptool.NewService("bad")
		tool := readOnly("Be bad.")
		tool.InputSchema = json.RawMessage(bad)
		mcptool.Add(s, constant[any, string]("x"), tool)
		require.Contains(t, fault(t, s), want)
	}
}

type steps struct {
	N float64 `json:"n" mcp:"multipleOf=0.1"`
}

func TestSchemasWithReferences(t *testing.T) {
	t.Parallel()

	const schema = `{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"},"x":{"$ref":"#/properties/y"},"y":{"type":"string"}},
		"$defs":{"node":{"type":"object","properties":{"n":{"type":"integer","default":7},"next":{"$ref":"#/$defs/node"}}}}}`
	echo := echoing[json.RawMessage](t, schema)
	_, f := echo(`{"tree":{"n":1,"next":{"n":"x"}}}`)
	require.NotNil(t, f)
	text, _ := f.Result().Text()
	require.Regexp(t, `^arguments: .*type: x has type "string", want "integer"$`, text)
	output, f := echo(`{"tree":{"next":{"n":1,"next":{}}},"x":"s"}`)
	require.Nil(t, f)
	require.Equal(t, `{"tree":{"next":{"n":1,"next":{"n":7}},"n":7},"x":"s"}`, output)
}

func TestDefaultsOfRecursiveSchemasEnd(t *testing.T) {
	t.Parallel()

	echo := echoing[json.RawMessage](t, `{"type":"object","properties":{"next":{"$ref":"#/$defs/node","type":"object","default":{}}},
		"$defs":{"node":{"type":"object","properties":{"n":{"default":1},"next":{"$ref":"#/$defs/node","type":"object"},"more":{"$ref":"#","default":{}}}}}}`)
	output, f := echo(`{"next":{}}`)
	require.Nil(t, f)
	require.Equal(t, `{"next":{"n":1,"more":{}}}`, output)
	output, f = echo(`{}`)
	require.Nil(t, f)
	require.Equal(t, `{"next":{}}`, output)
}

func FuzzArguments(f *testing.F) {
	for _, seed := range exactInputs {
		f.Add(seed)
	}
	f.Add(`{"int":1,"INT":2,"int":3,"nested":{},"list":[{},{"n":"x"}],"x\ud800":null}`)
	schema := readOnly("Echo.")
	schema.InputSchema = json.RawMessage(`{"type":"object","properties":{
		"int":{"type":["integer","null"],"maximum":9007199254740993e0,"default":1.0},
		"nested":{"type":"object","properties":{"a":{"default":{"b":123456789012345678901234567890}}}},
		"list":{"items":{"properties":{"n":{"type":"number","default":-0,"multipleOf":0.01}}}}},"additionalProperties":{"properties":{"n":{"default":1}}}}`)
	s := mcptool.NewService("fuzz", silent)
	mcptool.Add(s, sync("typed", func(_ context.Context, in numbers) (numbers, error) { return in, nil }), readOnly("Echo."))
	mcptool.Add(s, sync("raw", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }), schema)
	r := &registry{}
	require.NoError(f, s.Register(r))
	f.Fuzz(func(t *testing.T, input string) {
		for _, tool := range []string{"typed", "raw"} {
			output, err := r.call(t, tool, input)
			if err != nil {
				require.Equal(t, contract.CodeToolError, failure(err).Code, "%v", err)
				continue
			}
			require.True(t, json.Valid([]byte(output)))
			again, err := r.call(t, tool, output)
			require.NoError(t, err, "what the tool got is not valid any more")
			require.Equal(t, contract.Digest([]byte(output)), contract.Digest([]byte(again)))
		}
	})
}

func TestDefaultsFillInWhatIsMissing(t *testing.T) {
	t.Parallel()

	echo := echoing[order](t, "")
	for input, want := range map[string]string{
		`{"id":9007199254740993}`:                       `{"id":9007199254740993}`, // a pointer stays nil
		`{"id":1,"items":[{"name":"x"}]}`:               `{"id":1,"items":[{"name":"x","count":1}]}`,
		`{"id":1,"items":[{"name":"x","count":2}]}`:     `{"id":1,"items":[{"name":"x","count":2}]}`,
		`{"id":1,"stock":{"a":{"name":"x"}}}`:           `{"id":1,"stock":{"a":{"name":"x","count":1}}}`,
		`{"id":1,"filter":{}}`:                          `{"id":1,"filter":{"limit":10,"deep":{"on":true}}}`,
		`{"id":1,"filter":{"limit":0,"deep":{}}}`:       `{"id":1,"filter":{"limit":0,"deep":{"on":true}}}`,
		`{"id":1,"filter":{"deep":{"on":false}}}`:       `{"id":1,"filter":{"limit":10}}`,
		`{"id":1,"filter":null,"extra":[1.0,-0,1e400]}`: `{"id":1,"extra":[1.0,-0,1e400]}`,
	} {
		output, f := echo(input)
		require.Nil(t, f, "%s: %v", input, f)
		require.Equal(t, want, output, input)
	}

	raw := echoing[json.RawMessage](t, `{"type":"object","required":["a"],"properties":{
		"a":{"default":1}, "b":{"type":"object","default":{"d":1},"properties":{"c":{"default":9007199254740993}}},
		"e":{"type":"object","required":["g"],"properties":{"f":{"default":1},"g":{}}}}}`)
	_, f := raw(`{}`)
	require.NotNil(t, f, "what the schema requires must be sent, whatever its default")
	output, f := raw(`{ "a": 1.0, "unknown": 1e400 }`)
	require.Nil(t, f)
	require.Equal(t, `{"a":1.0,"unknown":1e400,"b":{"d":1,"c":9007199254740993}}`, output)

	rest := echoing[json.RawMessage](t, `{"type":"object","properties":{"a":{}},"additionalProperties":{"$ref":"#/$defs/n"},"$defs":{"n":{"properties":{"n":{"default":1}}}}}`)
	output, f = rest(`{"a":{},"b":{},"c":{"n":2.0},"d":[]}`)
	require.Nil(t, f)
	require.Equal(t, `{"a":{},"b":{"n":1},"c":{"n":2.0},"d":[]}`, output)
}

// TestWhatIsDecodedIsWhatWasJudged: encoding/json would take a member whose name
// differs in case, and mix duplicates, and so let arguments past the schema.
func TestWhatIsDecodedIsWhatWasJudged(t *testing.T) {
	t.Parallel()

	const open = `{"type":"object","properties":{"id":{"maximum":10},"filter":{"properties":{"limit":{"maximum":10}}}}}`
	echo := echoing[order](t, open)
	for input, want := range map[string]string{
		`{"id":1,"ID":1000}`: `{"id":1}`,
		`{"ID":1000}`:        `{"id":0}`,
		`{"id":1000,"id":1}`: `{"id":1}`,
		`{"id":1,"filter":{"limit":1000},"filter":{}}`: `{"id":1,"filter":{"limit":0}}`,
		`{"id":1,"filter":{"limit":5,"Limit":1000}}`:   `{"id":1,"filter":{"limit":5}}`,
		`{"id":1,"items":[{"name":"x","NAME":"y"}]}`:   `{"id":1,"items":[{"name":"x"}]}`,
		`{"id":1,"extra":{"a":{"x":1},"a":{"y":2.0}}}`: `{"id":1,"extra":{"a":{"y":2.0}}}`,
	} {
		output, f := echo(input)
		require.Nil(t, f, "%s: %v", input, f)
		require.Equal(t, want, output, input)
	}
	byKey := echoing[map[string]*settings](t, "")
	output, f := byKey(`{"a":{"limit":1},"a":{"limit":2,"LIMIT":3}}`)
	require.NotNil(t, f, "the schema from the type is closed: %s", output)
}

func TestOtherInputTypes(t *testing.T) {
	t.Parallel()

	pointer := echoing[*order](t, "")
	output, f := pointer(`{"id":9007199254740993}`)
	require.Nil(t, f)
	require.Equal(t, `{"id":9007199254740993}`, output)

	anything := echoing[any](t, "")
	output, f = anything(`{"b":9007199254740993,"a":1.0}`)
	require.Nil(t, f)
	require.Equal(t, `{"a":1.0,"b":9007199254740993}`, output)

	raw := echoing[converter.RawValue](t, "")
	output, f = raw(`{"b":1, "a":1.0}`)
	require.Nil(t, f)
	require.Equal(t, `{"b":1, "a":1.0}`, output)

	message := echoing[*commonpb.WorkflowExecution](t, "")
	output, f = message(`{"workflowId":"<w>"}`)
	require.Nil(t, f)
	require.JSONEq(t, `{"workflowId":"<w>"}`, output)
	_, f = message(`{"workflowId":1}`)
	require.Equal(t, contract.CodeToolError, f.Code)

	custom := echoing[map[string]custom](t, "")
	output, f = custom(`{"a":1e400}`)
	require.Nil(t, f)
	require.JSONEq(t, `{"a":{}}`, output)
}
