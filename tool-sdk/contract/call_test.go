package contract_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestCallEncodings(t *testing.T) {
	t.Parallel()

	full := contract.CallParams{
		Arguments:      raw(`{"n":1.0,"z":{},"a":9007199254740993}`),
		Meta:           raw(`{"io.temporal/idempotencyKey":"k<1>"}`),
		InputResponses: raw(`{"r1":{"action":"accept"}}`),
		RequestState:   raw(`"\ud800"`),
	}
	var page []json.RawMessage
	for _, call := range []contract.CallParams{{}, {Arguments: full.Arguments}, full} {
		value, err := call.Encode(contract.EncodingValue)
		require.NoError(t, err)
		mcp, err := call.Encode(contract.EncodingMCP)
		require.NoError(t, err)
		page = append(page, object("value", string(value), "mcp", string(mcp)))

		decoded, err := contract.DecodeCall(contract.EncodingMCP, mcp)
		require.NoError(t, err)
		want := call
		if want.Arguments == nil {
			want.Arguments = raw("{}")
		}
		require.Equal(t, want, decoded)
		decoded, err = contract.DecodeCall(contract.EncodingValue, value)
		require.NoError(t, err)
		require.Equal(t, contract.CallParams{Arguments: want.Arguments}, decoded)
	}
	golden(t, "calls.json", contract.Array(page...))
}

func TestCallEncodeNamesTheFault(t *testing.T) {
	t.Parallel()

	for want, call := range map[string]contract.CallParams{
		"arguments: an array, want an object":      {Arguments: raw(`[1]`)},
		"arguments: null, want an object":          {Arguments: raw(`null`)},
		"arguments: a number, want an object":      {Arguments: raw(`7`)},
		"arguments: not valid JSON":                {Arguments: raw(`{"a":}`)},
		"_meta: a string, want an object":          {Meta: raw(`"x"`)},
		"inputResponses: an array, want an object": {InputResponses: raw(`[]`)},
		"requestState: an object, want a string":   {RequestState: raw(`{}`)},
		"requestState: not valid JSON":             {RequestState: raw(`"`)},
	} {
		_, err := call.Encode(contract.EncodingMCP)
		require.ErrorContains(t, err, want)
	}
	null, err := contract.CallParams{Meta: raw("null")}.Encode(contract.EncodingMCP)
	require.NoError(t, err)
	require.Equal(t, `{"arguments":{}}`, string(null))
}

func TestRounds(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}
	for _, p := range []contract.CallParams{
		{InputResponses: raw(`{}`)}, {RequestState: raw(`""`)}, {RequestState: raw(`"a"`)}, {InputResponses: raw(`{"x":1}`), RequestState: raw(`"b"`)},
	} {
		round := p.Round(contract.EncodingMCP)
		require.Len(t, round, 32)
		require.False(t, seen[round])
		seen[round] = true
		require.Equal(t, "k/"+round, p.RoundKey(contract.EncodingMCP, "k"))
		require.Empty(t, p.RoundKey(contract.EncodingMCP, ""))
		require.Empty(t, p.Round(contract.EncodingValue))
		require.Equal(t, "k", p.RoundKey(contract.EncodingValue, "k"))
	}
	answered := contract.CallParams{InputResponses: raw(`{"x":1}`), RequestState: raw("null")}.Round(contract.EncodingMCP)
	require.True(t, seen[answered], "a call goes on from its state, whatever the answers")
	for _, first := range []contract.CallParams{{}, {InputResponses: raw("null"), RequestState: raw("null"), Meta: raw("{}")}} {
		require.Empty(t, first.Round(contract.EncodingMCP))
		require.Equal(t, "k", first.RoundKey(contract.EncodingMCP, "k"))
	}
}

func TestDecodeCall(t *testing.T) {
	t.Parallel()

	for _, encoding := range []contract.Encoding{contract.EncodingValue, contract.EncodingMCP} {
		for _, input := range []string{"", "null", " null ", "{}"} {
			p, err := contract.DecodeCall(encoding, raw(input))
			require.NoError(t, err)
			require.Equal(t, contract.CallParams{Arguments: raw("{}")}, p)
		}
	}
	p, err := contract.DecodeCall(contract.EncodingMCP, raw(`{"arguments":null,"_meta":null,"later":1}`))
	require.NoError(t, err)
	require.Equal(t, contract.CallParams{Arguments: raw("{}")}, p)

	for input, want := range map[string]string{
		`[]`:                     "input: an array, want an object",
		`{`:                      "input: not valid JSON",
		`{"arguments":[]}`:       "arguments: an array, want an object",
		`{"_meta":1}`:            "input: _meta: a number, want an object",
		`{"inputResponses":""}`:  "input: inputResponses: a string, want an object",
		`{"requestState":false}`: "input: requestState: a boolean, want a string",
	} {
		p, err := contract.DecodeCall(contract.EncodingMCP, raw(input))
		require.ErrorContains(t, err, want)
		require.Zero(t, p)
	}
	_, err = contract.DecodeCall(contract.EncodingValue, raw(`"x"`))
	require.EqualError(t, err, "arguments: a string, want an object")
}

func TestCheckSize(t *testing.T) {
	t.Parallel()

	over := make([]byte, contract.PayloadLimit-contract.PayloadOverhead+1)
	require.NoError(t, contract.CheckSize("result", over[1:]))

	var f *contract.Failure
	require.ErrorAs(t, contract.CheckSize("result", over), &f)
	require.Equal(t, contract.CodePayloadTooLarge, f.Code)
	require.False(t, f.Retryable)
	require.Equal(t, "The result would take 2097089 bytes; one Temporal payload holds at most 2097088. "+
		"Ask for less, or for a part at a time.", f.Message)
	require.ErrorAs(t, contract.CheckSize("arguments", over), &f)
	require.True(t, strings.HasSuffix(f.Message, "Send less, or a reference instead of the data."), f.Message)
	require.NotContains(t, f.Message, "escapes")
	require.ErrorAs(t, contract.CheckSize("arguments", bytes.Repeat([]byte(`\u00e9`), 400_000)), &f)
	require.Contains(t, f.Message, `400000 escapes like \u00e9 make it bigger`)
}
