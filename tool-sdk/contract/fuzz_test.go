package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func addExact(f *testing.F) {
	f.Helper()

	for _, name := range slices.Sorted(maps.Keys(exact)) {
		f.Add([]byte(exact[name]))
	}
}

// compact drops white space only.
func compact(t *testing.T, data []byte) string {
	t.Helper()

	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, data))
	return b.String()
}

func FuzzParseObject(f *testing.F) {
	addExact(f)
	f.Add([]byte(` { "a" : 1 , "b":[ 2 ] } `))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := contract.ParseObject(data)
		if err != nil {
			return
		}
		require.Equal(t, compact(t, data), compact(t, o.JSON()))
		require.Len(t, o.Keys(), o.Len())

		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &members))
		for key, value := range members {
			if !strings.Contains(key, "\uFFFD") { // encoding/json takes a lone surrogate for one
				require.Equal(t, string(bytes.TrimSpace(value)), string(o.Get(key)))
			}
		}
		o.Set("k", json.RawMessage("1"))
		require.Equal(t, "1", string(o.Get("k")))
		require.True(t, json.Valid(o.JSON()))
		o.Delete("k")
		require.False(t, o.Has("k"))
	})
}

func FuzzDigest(f *testing.F) {
	addExact(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		digest := contract.Digest(data)
		require.Len(t, digest, 32)
		if !json.Valid(data) || !utf8.Valid(data) {
			return
		}
		require.Equal(t, digest, contract.Digest([]byte(compact(t, data))), "white space counts")
		escaped, err := json.Marshal(json.RawMessage(data))
		require.NoError(t, err)
		require.Equal(t, digest, contract.Digest(escaped), "the spelling of escapes counts")
		require.NotEqual(t, digest, contract.Digest(contract.Array(data)))
	})
}

func FuzzDecodeTool(f *testing.F) {
	f.Add([]byte(fullTool))
	f.Add([]byte(`{"name":"a","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":1e300}}`))
	f.Add([]byte(`{"name":1,"title":[],"inputSchema":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tool, _, err := contract.DecodeTool(data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NoError(t, contract.CheckToolName(tool.Name))
		require.NoError(t, contract.CheckInputSchema(tool.InputSchema))
		require.NotEmpty(t, tool.Encoding)
		if d := tool.ScheduleToCloseTimeout; d != 0 {
			require.GreaterOrEqual(t, d, contract.MinScheduleToClose)
		}
		require.True(t, utf8.ValidString(tool.Title+tool.Description+string(tool.Kind)+tool.UpstreamName))
		tool.Hints()
	})
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add([]byte(`{"tools":[`+fullTool+`],"nextCursor":"2","_meta":{"io.temporal/contract":1}}`), "2")
	f.Add([]byte(`{"tools":[7,{"name":"a"}],"_meta":{"io.temporal/contract":99,"x":"\ud800"}}`), "")
	f.Add([]byte(`null`), "\xff")
	f.Fuzz(func(t *testing.T, data []byte, cursor string) {
		if utf8.ValidString(cursor) {
			got, err := contract.DecodeListInput(contract.ListInput(cursor))
			require.NoError(t, err)
			require.Equal(t, cursor, got)
		}
		_, _ = contract.DecodeListInput(data)
		m, err := contract.DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := contract.DecodeManifest(m.JSON())
		require.NoError(t, err)
		require.Equal(t, m.Tools, again.Tools)
		require.Equal(t, m.NextCursor, again.NextCursor)
		require.Equal(t, m.Version, again.Version)
		page, err := m.Page("")
		require.NoError(t, err)
		require.Equal(t, m.Tools, page.Tools)
	})
}

func FuzzDecodeCall(f *testing.F) {
	f.Add([]byte(`{"arguments":{"n":1.0},"_meta":{"k":[]},"inputResponses":{},"requestState":"\ud800"}`))
	f.Add([]byte(`null`))
	addExact(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, encoding := range []contract.Encoding{contract.EncodingValue, contract.EncodingMCP} {
			p, err := contract.DecodeCall(encoding, data)
			if err != nil {
				continue
			}
			input, err := p.Encode(encoding)
			require.NoError(t, err)
			again, err := contract.DecodeCall(encoding, input)
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"\ud800"},{"type":"x"}],"isError":true,"_meta":{"k":1},"structuredContent":null}`))
	f.Add([]byte(`{"code":-32602,"message":"m","data":1.0}`))
	addExact(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := contract.DecodeResult(data)
		if err == nil {
			require.Equal(t, string(data), string(r.JSON()))
			text, _ := r.Text()
			require.True(t, utf8.ValidString(text))
			var v any
			_ = r.Unmarshal(&v)
			with := r.WithMeta("k", json.RawMessage(`1.0`))
			require.Equal(t, "1.0", string(with.Meta("k")))
			require.Equal(t, r.Content(), with.Content())
			require.Equal(t, r.Structured(), with.Structured())
		}
		f := &contract.Failure{Code: contract.CodeToolError, Message: string(data), Details: data}
		require.True(t, f.Result().IsError())
		require.True(t, json.Valid(f.Result().JSON()))
		f.Code = contract.CodeProtocolError
		require.True(t, json.Valid(f.Protocol().JSON()))
	})
}

func FuzzValueResult(f *testing.F) {
	addExact(f)
	f.Add([]byte(" null "))
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := contract.ValueResult(data, false)
		require.Equal(t, len(data) == 0 || json.Valid(data) && utf8.Valid(data), err == nil)
		if err != nil {
			return
		}
		require.True(t, json.Valid(plain.JSON()))
		declared, err := contract.ValueResult(data, true)
		require.NoError(t, err)
		require.Equal(t, plain.Content(), declared.Content())
		if len(data) > 0 {
			require.Equal(t, contract.Digest(data), contract.Digest(declared.Structured()))
		}
		require.Equal(t, contract.TypeName(data) == "an object", plain.Structured() != nil)
		if text, ok := plain.Text(); ok && contract.TypeName(data) != "a string" {
			require.Equal(t, string(bytes.TrimSpace(data)), text)
		}
		_, err = contract.DecodeResult(declared.JSON())
		require.NoError(t, err)
	})
}

// FuzzCollectItems reads the pages of a list, which are divided by NUL here.
func FuzzCollectItems(f *testing.F) {
	for _, pages := range []string{
		`{"resources":[{"uri":"a:///1"},{"uri":"a:///1"},{"uri":""},7],"nextCursor":"2"}` + "\x00" + `{"resources":null}`,
		`{"resources":[],"nextCursor":"1"}` + "\x00" + `{"resources":[],"nextCursor":"1"}`,
		`{"resources":[{"uri":"\ud800"},{"uri":"<\n>"},{"uri":1}]}`, `{"resources":{}}`, `{"nextCursor":1}`, ``, "\x00",
	} {
		f.Add([]byte(pages))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pages := bytes.Split(data, []byte{0})
		asked := 0
		items, warnings, err := contract.CollectItems(t.Context(), "resources", "uri", func(context.Context, string) (json.RawMessage, error) {
			asked++
			return pages[(asked-1)%len(pages)], nil
		})
		require.LessOrEqual(t, asked, contract.MaxManifestPages+1, "a service can make its caller ask for ever")
		if err != nil {
			require.Nil(t, items)
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		seen := map[string]bool{}
		for _, item := range items {
			require.NotEmpty(t, item.Key)
			require.False(t, seen[item.Key], "two items have the key %q", item.Key)
			seen[item.Key] = true
			o, err := contract.ParseObject(item.Raw)
			require.NoError(t, err)
			var key string
			require.NoError(t, json.Unmarshal(o.Get("uri"), &key))
			require.Equal(t, key, item.Key)
		}
		for _, w := range warnings {
			require.NotContains(t, w, "\n")
			require.True(t, utf8.ValidString(w))
		}
	})
}

// FuzzDecodeProtocolError: what a JSON-RPC error holds goes on as it came.
func FuzzDecodeProtocolError(f *testing.F) {
	for _, seed := range []string{
		`{"code":-32602,"message":"m","data":{"n":1.0}}`, `{"code":1e3,"message":"m"}`, `{"code":1,"message":null,"data":null}`,
		`{"code":9223372036854775807,"message":"\ud800","x":1}`, `{"code":"1"}`, `[]`, `{"code":1,"message":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := contract.DecodeProtocolError(data)
		if err != nil {
			if len(data) > 64 { // a word of the error may be one of a short text
				require.NotContains(t, err.Error(), string(data))
			}
			return
		}
		again, err := contract.DecodeProtocolError(e.JSON())
		require.NoError(t, err)
		require.Equal(t, e, again)
		o, err := contract.ParseObject(data)
		require.NoError(t, err)
		require.Equal(t, string(o.Get("data")), string(e.Data))
	})
}
