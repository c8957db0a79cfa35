package contract_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestObjectKeepsWhatItDoesNotTouch(t *testing.T) {
	t.Parallel()

	for name, value := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := ` { "first" : ` + value + " ,\n\t\"second\":" + value + ` } `
			o, err := contract.ParseObject(raw(in))
			require.NoError(t, err)
			require.Equal(t, value, string(o.Get("first")))
			require.Equal(t, value, string(o.Get("second")))
			require.Equal(t, `{"first":`+value+`,"second":`+value+`}`, string(o.JSON()))

			o.Set("third", raw("[]"))
			o.Set("first", raw("null"))
			require.Equal(t, `{"first":null,"second":`+value+`,"third":[]}`, string(o.JSON()))
			o.Delete("first")
			require.Equal(t, `{"second":`+value+`,"third":[]}`, string(o.JSON()))

			elements, err := contract.ParseArray(raw("[ " + value + " , " + value + "\r]"))
			require.NoError(t, err)
			require.Equal(t, "["+value+","+value+"]", string(contract.Array(elements...)))
		})
	}
}

func TestObjectKeys(t *testing.T) {
	t.Parallel()

	o, err := contract.ParseObject(raw(`{"a":1,"b":2,"\u0061":3,"A":4,"\ud800":5,"\ud83d\ude00":6,"<\/\t":7}`))
	require.NoError(t, err)
	require.Equal(t, 7, o.Len())
	require.Equal(t, []string{"a", "b", "a", "A", "\uFFFD", "😀", "</\t"}, o.Keys())

	require.Equal(t, "3", string(o.Get("a")), "of duplicates the last counts")
	require.Equal(t, "4", string(o.Get("A")))
	require.Equal(t, "6", string(o.Get("😀")))
	require.Equal(t, "7", string(o.Get("</\t")))
	require.Nil(t, o.Get("\uFFFD"), "a lone surrogate is not the replacement character")
	require.False(t, o.Has("c"))

	o.Set("a", raw("0"))
	require.Equal(t, `{"a":1,"b":2,"\u0061":0,"A":4,"\ud800":5,"\ud83d\ude00":6,"<\/\t":7}`, string(o.JSON()))
	o.Delete("a")
	require.Equal(t, `{"b":2,"A":4,"\ud800":5,"\ud83d\ude00":6,"<\/\t":7}`, string(o.JSON()))
	o.DeleteFunc(func(key string) bool { return key == "b" || key == "\uFFFD" })
	require.Equal(t, `{"A":4,"\ud83d\ude00":6,"<\/\t":7}`, string(o.JSON()))
	o.Set("<b>", nil)
	o.Set("x\xff", raw("1"))
	o.Set("x\xff", raw("2"))
	require.True(t, json.Valid(o.JSON()))
	require.Equal(t, "null", string(o.Get("<b>")))
	require.Equal(t, 5, o.Len())
}

func TestObjectIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	const in = `{"a":1.0,"b":[],"a":2}`
	data := []byte(in)
	var o contract.Object
	require.NoError(t, json.Unmarshal(data, &o))
	clear(data)
	require.Equal(t, in, string(o.JSON()))
	require.EqualError(t, json.Unmarshal([]byte("[]"), &o), "an array, want an object")
}

func TestObjectCopiesAreIndependent(t *testing.T) {
	t.Parallel()

	o, err := contract.ParseObject(raw(`{"a":1}`))
	require.NoError(t, err)
	c := o
	o.Set("a", raw("2"))
	o.Set("b", raw("2"))
	c.Set("c", raw("3"))
	c.Each(func(string, json.RawMessage) json.RawMessage { return raw("9") })
	require.Equal(t, `{"a":2,"b":2}`, string(o.JSON()))
	require.Equal(t, `{"a":9,"c":9}`, string(c.JSON()))

	c.Each(func(key string, _ json.RawMessage) json.RawMessage {
		if key == "a" {
			return nil
		}
		return raw("true")
	})
	require.Equal(t, `{"a":9,"c":true}`, string(c.JSON()))

	d := c
	d.DeleteFunc(func(key string) bool { return key == "a" })
	require.Equal(t, `{"c":true}`, string(d.JSON()))

	marshalled, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":9,"c":true}`, string(marshalled))
	require.Equal(t, `{}`, string((&contract.Object{}).JSON()))
}

func TestParseRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"":                           "empty, want JSON",
		" \n":                        "empty, want JSON",
		"{":                          "not valid JSON: unexpected end of JSON input",
		`{"a":1,}`:                   "not valid JSON: invalid character '}'",
		`{"a" 1}`:                    "not valid JSON",
		`{} {}`:                      "not valid JSON: invalid character '{' after top-level value",
		`{"a":01}`:                   "not valid JSON",
		"{\"a\":\"\x01\"}":           "not valid JSON",
		"{\"a\":\"\xff\"}":           "not valid UTF-8",
		"{\"\xed\xa0\x80\":1}":       "not valid UTF-8",
		"null":                       "null, want an object",
		"[1]":                        "an array, want an object",
		`"{}"`:                       "a string, want an object",
		"-1":                         "a number, want an object",
		"true":                       "a boolean, want an object",
		strings.Repeat("[", 100_000): "exceeded max depth",
	} {
		_, err := contract.ParseObject(raw(in))
		require.ErrorContains(t, err, want, "%.20q", in)
	}
	_, err := contract.ParseArray(raw(`{}`))
	require.EqualError(t, err, "an object, want an array")
	_, err = contract.ParseArray(raw(`[`))
	require.ErrorContains(t, err, "not valid JSON")
}

func TestQuote(t *testing.T) {
	t.Parallel()

	require.Equal(t, `"<b>&</b>"`, string(contract.Quote("<b>&</b>")))
	require.Equal(t, `"\u0000\n\""`, string(contract.Quote("\x00\n\"")))
	require.Equal(t, `"a\ufffd"`, string(contract.Quote("a\xff")))
}

func TestTypeName(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"": "nothing", " ": "nothing", "{}": "an object", " []": "an array", `"x"`: "a string", "true": "a boolean",
		"false": "a boolean", "null": "null", "-1": "a number", "0": "a number", "?": "no JSON",
	} {
		require.Equal(t, want, contract.TypeName(raw(in)), in)
	}
	require.True(t, contract.IsNull(nil))
	require.True(t, contract.IsNull(raw(" null\n")))
	require.False(t, contract.IsNull(raw("0")))
}

// TestDigestTellsValuesApart: no two groups have a digest in common, all of a
// group have the same one.
func TestDigestTellsValuesApart(t *testing.T) {
	t.Parallel()

	seen := map[string]string{}
	for _, group := range [][]string{
		{`{}`, " {\n} "},
		{`[]`, `[ ]`},
		{`null`}, {`true`}, {`false`}, {`"null"`}, {`"true"`}, {`""`}, {`[[]]`}, {`[{}]`}, {`[""]`}, {`[null]`},
		{`1`, " 1 "}, {`1.0`}, {`1e0`}, {`1E0`}, {`-0`}, {`0`}, {`1e400`}, {`1e401`}, {`"1"`},
		{`9007199254740993`}, {`9007199254740992`},
		{`"A"`, `"\u0041"`}, {`"a"`, `"\u0061"`},
		{`"\ud800A"`, `"\uD800A"`, `"\ud800\u0041"`}, {`"\ud800a"`, `"\uD800a"`}, {`"\ud801a"`},
		{`"\ufffda"`, "\"\uFFFDa\"", `"\uFFFDa"`},
		{`"\ud83d\ude00"`, `"😀"`, `"\uD83D\uDE00"`}, {`"\ude00\ud83d"`},
		{`"\ud800\\udc00"`}, {`"\\ud800"`},
		{`"\/"`, `"/"`, `"\u002f"`}, {`"\n"`, `"\u000a"`}, {`"\u0000"`}, {`"\u2028"`, "\"\u2028\""}, {`"<"`, `"\u003c"`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{ "\u0062":2, "a":1 }`}, {`{"a":2,"b":1}`},
		{`{"a":1,"a":2}`}, {`{"a":2,"a":1}`}, {`{"a":2}`},
		{`{"\ud800":1}`, `{"\uD800":1}`}, {`{"\ud801":1}`}, {`{"\ufffd":1}`},
		{`{"a":{"b":1}}`}, {`{"a":["b",1]}`}, {`{"a":"b","1":1}`}, {`["a","b"]`}, {`["ab"]`}, {`["a,b"]`}, {`[1,2]`}, {`[12]`}, {`[2,1]`},
		{deep(900), strings.ReplaceAll(deep(900), "[", "[ ")}, {deep(898)},
		{`{`}, {`[`}, {``}, {"\"\xff\""},
	} {
		want := contract.Digest(raw(group[0]))
		require.Len(t, want, 32)
		require.NotContains(t, seen, want, "%.40s has the digest of %.40s", group[0], seen[want])
		seen[want] = group[0]
		for _, other := range group[1:] {
			require.Equal(t, want, contract.Digest(raw(other)), "%.40s and %.40s", group[0], other)
		}
	}
}

// TestBigInputsAreLinear fails by taking minutes.
func TestBigInputsAreLinear(t *testing.T) {
	t.Parallel()

	text := `"` + strings.Repeat("x", 1<<20) + `"`
	const levels = 4_999
	deepAndBig := strings.Repeat(`{"a":[`, levels) + text + strings.Repeat(`]}`, levels)
	require.Len(t, contract.Digest(raw(deepAndBig)), 32)
	o, err := contract.ParseObject(raw(deepAndBig))
	require.NoError(t, err)
	require.Equal(t, 1, o.Len())

	var wide bytes.Buffer
	wide.WriteString(`{"k":[]`)
	for i := range 100_000 {
		wide.WriteString(`,"k` + strconv.Itoa(i) + `":[[]]`)
	}
	wide.WriteString("}")
	o, err = contract.ParseObject(wide.Bytes())
	require.NoError(t, err)
	require.Equal(t, 100_001, o.Len())
	require.Equal(t, wide.String(), string(o.JSON()))
	require.Len(t, contract.Digest(wide.Bytes()), 32)
}
