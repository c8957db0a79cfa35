package contract_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestValueResults(t *testing.T) {
	t.Parallel()

	var table []json.RawMessage
	for _, value := range []string{
		`{"b":1.0,"a":[]}`, `[1,2]`, `"<b>\n"`, `""`, `9007199254740993`, `-0`, `true`, `false`, `null`, ``, " { \"a\" : 1 }\n",
		`{"html":"<b>&\u2028","nul":"\u0000","lone":"\ud800"}`, `"\ud800"`,
	} {
		plain, err := contract.ValueResult(raw(value), false)
		require.NoError(t, err)
		declared, err := contract.ValueResult(raw(value), true)
		require.NoError(t, err)
		table = append(table, object("value", string(contract.Quote(value)), "result", string(plain.JSON()), "declared", string(declared.JSON())))
	}
	golden(t, "value-results.json", contract.Array(table...))

	for _, bad := range []string{`{`, `nul`, "\"\xff\"", `1 2`, " "} {
		_, err := contract.ValueResult(raw(bad), false)
		require.ErrorContains(t, err, "value: ", bad)
	}
}

func TestValueResultIsExact(t *testing.T) {
	t.Parallel()

	for name, value := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r, err := contract.ValueResult(raw(value), true)
			require.NoError(t, err)
			require.Equal(t, value, string(r.Structured()))
			require.Len(t, r.Content(), 1)
			if value[0] != '"' {
				text, ok := r.Text()
				require.True(t, ok)
				require.Equal(t, value, text, "the text copy is the value's JSON")
			} else {
				var block struct{ Text json.RawMessage }
				require.NoError(t, json.Unmarshal(r.Content()[0], &block))
				require.Equal(t, value, string(block.Text))
			}
			_, err = contract.DecodeResult(r.JSON())
			require.NoError(t, err)
		})
	}
}

func TestDecodeResultKeepsTheWhole(t *testing.T) {
	t.Parallel()

	in := ` {"future":[1.0],"content":[{"type":"hologram","data":1e400},{"type":"text","text":"a","annotations":{"x":-0}},` +
		`{"text":"b","type":"\u0074ext"},{"type":"text"},{"Type":"text","Text":"no"}],"isError":true,"resultType":"complete",` +
		`"structuredContent":null,"_meta":{"k":1,"k":2.0}} `
	r, err := contract.DecodeResult(raw(in))
	require.NoError(t, err)
	require.Equal(t, in, string(r.JSON()))
	require.True(t, r.IsError())
	require.False(t, r.NeedsInput())
	require.Equal(t, "null", string(r.Structured()))
	require.Equal(t, "2.0", string(r.Meta("k")))
	require.Nil(t, r.Meta("l"))
	require.Len(t, r.Content(), 5)
	text, ok := r.Text()
	require.True(t, ok)
	require.Equal(t, "a\nb\n", text)

	with := r.WithMeta("l", raw(`3`)).WithMeta("k", raw(`4`))
	require.Equal(t, strings.Replace(strings.TrimSpace(in), `"k":2.0}`, `"k":4,"l":3}`, 1), string(with.JSON()))
	require.Equal(t, in, string(r.JSON()), "the first is untouched")

	r, err = contract.DecodeResult(raw(`{"resultType":"input_\u0072equired","inputRequests":{}}`))
	require.NoError(t, err)
	require.True(t, r.NeedsInput())
	require.Nil(t, r.Content())
	require.Nil(t, r.Meta("k"))
	require.Nil(t, r.Structured())
	require.Equal(t, `{"resultType":"input_\u0072equired","inputRequests":{},"_meta":{"k":1}}`, string(r.WithMeta("k", raw("1")).JSON()))

	var zero contract.Result
	require.Equal(t, `{"content":[]}`, string(zero.JSON()))
	require.Equal(t, `{"content":[],"_meta":{"k":null}}`, string(zero.WithMeta("k", nil).JSON()))
	marshalled, err := json.Marshal(zero)
	require.NoError(t, err)
	require.Equal(t, `{"content":[]}`, string(marshalled))
}

func TestResultIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()

	type stored struct{ Result contract.Result }
	const in = `{"content":[{"type":"text","text":"a"}],"isError":true,"_meta":{"k":2.0}}`
	r, err := contract.DecodeResult(raw(in))
	require.NoError(t, err)
	data, err := json.Marshal(stored{r})
	require.NoError(t, err)
	var back stored
	require.NoError(t, json.Unmarshal(data, &back))
	clear(data) // the decoder's, who may use it again
	require.Equal(t, in, string(back.Result.JSON()))

	for _, in := range []string{`{"Result":null}`, `{"Result":{"content":[1]}}`} {
		require.ErrorContains(t, json.Unmarshal([]byte(in), &back), "want an object", "no empty success")
	}
}

func TestWithTextCopy(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		`{"content":null,"structuredContent":[1.0,"\u003c"],"x":1.0}`:   `{"content":[{"type":"text","text":"[1.0,\"<\"]"}],"structuredContent":[1.0,"\u003c"],"x":1.0}`,
		`{"content":[{"type":"x"}],"structuredContent":"a"}`:            `{"content":[{"type":"x"},{"type":"text","text":"a"}],"structuredContent":"a"}`,
		`{"structuredContent":9007199254740993}`:                        `{"structuredContent":9007199254740993,"content":[{"type":"text","text":"9007199254740993"}]}`,
		`{"content":[{"type":"text","text":""}],"structuredContent":1}`: `{"content":[{"type":"text","text":""}],"structuredContent":1}`,
		`{"structuredContent":null}`:                                    `{"structuredContent":null}`,
		`{"content":[]}`:                                                `{"content":[]}`,
	} {
		r, err := contract.DecodeResult(raw(in))
		require.NoError(t, err)
		require.Equal(t, want, string(r.WithTextCopy().JSON()))
	}
}

func TestDecodeResultNamesTheFault(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		`{`:                       "result: not valid JSON: unexpected end of JSON input",
		`[]`:                      "result: an array, want an object",
		`{"content":{}}`:          "result: content: an object, want an array",
		`{"content":[{},"text"]}`: "result: content[1]: a string, want an object",
		`{"isError":"true"}`:      "result: isError: a string, want a boolean",
		`{"_meta":[]}`:            "result: _meta: an array, want an object",
	} {
		_, err := contract.DecodeResult(raw(in))
		require.EqualError(t, err, want)
	}
	for _, in := range []string{`{}`, `{"content":null,"isError":null,"_meta":null}`} {
		r, err := contract.DecodeResult(raw(in))
		require.NoError(t, err)
		require.False(t, r.IsError())
		require.Empty(t, r.Content())
	}
}

func TestResultUnmarshal(t *testing.T) {
	t.Parallel()

	value := func(value string, declared bool) contract.Result {
		r, err := contract.ValueResult(raw(value), declared)
		require.NoError(t, err)
		return r
	}
	for _, declared := range []bool{false, true} {
		var object struct{ N int64 }
		require.NoError(t, value(`{"n":9007199254740993}`, declared).Unmarshal(&object))
		require.EqualValues(t, 9007199254740993, object.N)
		var number json.Number
		require.NoError(t, value(`123456789012345678901234567890`, declared).Unmarshal(&number))
		require.Equal(t, json.Number("123456789012345678901234567890"), number)
		var list []int
		require.NoError(t, value(`[1,2]`, declared).Unmarshal(&list))
		require.Equal(t, []int{1, 2}, list)
		var text string
		require.NoError(t, value(`"{\"a\""`, declared).Unmarshal(&text))
		require.Equal(t, `{"a"`, text)
		pointer := &list
		require.NoError(t, value(`null`, declared).Unmarshal(&pointer))
		require.Nil(t, pointer)
		require.Error(t, value(`"x"`, declared).Unmarshal(&list))
	}
	image, err := contract.DecodeResult(raw(`{"content":[{"type":"image"}]}`))
	require.NoError(t, err)
	require.EqualError(t, image.Unmarshal(new(string)), "result: neither structured content nor text to decode")
}

// failures has one failure for each code.
func failures() map[contract.Code]*contract.Failure {
	all := map[contract.Code]*contract.Failure{}
	for _, code := range contract.Codes() {
		all[code] = &contract.Failure{Code: code, Message: "What happened <" + string(code) + ">.", Cause: errSecret}
	}
	all[contract.CodeToolError].Details = raw(`{"content":[{"type":"hologram","n":1.0}],"isError":true,"later":{"z":1,"a":2}}`)
	all[contract.CodeProtocolError].Details = raw(`{"code":-32602,"message":"bad <params>","data":{"n":9007199254740993}}`)
	all[contract.CodeFailed].Type = "OutOfStock"
	all[contract.CodeTimedOut].Type = "schedule-to-close"
	all[contract.CodeTimedOut].Retryable = true
	return all
}

type secretError struct{}

func (secretError) Error() string { return "dial 10.0.0.1: token hunter2" }

var errSecret error = secretError{}

func TestFailuresAsTheCallerSeesThem(t *testing.T) {
	t.Parallel()

	all := failures()
	require.Len(t, all, len(contract.Codes()))
	var table contract.Object
	for _, code := range slices.Sorted(maps.Keys(all)) {
		f := all[code]
		require.ErrorIs(t, f, errSecret)
		require.NotContains(t, f.Error(), "hunter2")
		seen := object("result", string(f.Result().JSON()))
		if p := f.Protocol(); p != nil {
			seen = object("error", string(p.JSON()))
			require.Equal(t, contract.CodeProtocolError, code)
		}
		require.True(t, f.Result().IsError(), code)
		table.Set(string(code), seen)
	}
	require.NotContains(t, string(table.JSON()), "hunter2")
	golden(t, "failures.json", table.JSON())
}

func TestFailureResultWithoutGoodDetails(t *testing.T) {
	t.Parallel()

	for _, details := range []string{"", "null", "[]", "{", `{"content":1}`} {
		r := (&contract.Failure{Code: contract.CodeToolError, Message: "no key", Details: raw(details)}).Result()
		text, _ := r.Text()
		require.Equal(t, "no key", text, details)
		require.True(t, r.IsError())
		require.Equal(t, `{"type":"McpToolError","retryable":false}`, string(r.Meta(contract.MetaFailure)))
	}
	r := (&contract.Failure{Code: contract.CodeToolError, Details: raw(`{"isError":false,"content":[]}`)}).Result()
	require.Equal(t, `{"isError":true,"content":[]}`, string(r.JSON()), "the failure is the tool's word that this is an error")

	text, _ := (&contract.Failure{Code: contract.CodeFailed}).Result().Text()
	require.Equal(t, "The call failed without saying why.", text)
}

func TestProtocolErrors(t *testing.T) {
	t.Parallel()

	in := `{"data":{"n":1.0},"code":-32602,"message":"\u003cb>","later":1}`
	e, err := contract.DecodeProtocolError(raw(in))
	require.NoError(t, err)
	require.Equal(t, &contract.ProtocolError{Code: -32602, Message: "<b>", Data: raw(`{"n":1.0}`)}, e)
	require.Equal(t, `{"code":-32602,"message":"<b>","data":{"n":1.0}}`, string(e.JSON()))
	require.EqualError(t, e, "JSON-RPC error -32602: <b>")
	require.Equal(t, `{"code":0,"message":""}`, string((&contract.ProtocolError{}).JSON()))

	for in, want := range map[string]string{
		`{"message":"x"}`:                     "error object: code: nothing, want an integer of 64 bits",
		`{"code":"s3cret"}`:                   "error object: code: a string, want an integer of 64 bits",
		`{"code":1.0}`:                        "error object: code: a number, want an integer of 64 bits",
		`{"Code":1}`:                          "error object: code: nothing, want an integer of 64 bits",
		`{"code":1,"message":{}}`:             "error object: message: an object, want a string",
		`[]`:                                  "error object: an array, want an object",
		`{"code":99999999999999999999999999}`: "error object: code: a number, want an integer of 64 bits",
	} {
		_, err := contract.DecodeProtocolError(raw(in))
		require.EqualError(t, err, want)
		p := (&contract.Failure{Code: contract.CodeProtocolError, Message: "upstream says no", Details: raw(in)}).Protocol()
		require.Equal(t, &contract.ProtocolError{Code: -32603, Message: "upstream says no"}, p)
	}
	require.Nil(t, (&contract.Failure{Code: contract.CodeFailed}).Protocol())
}
