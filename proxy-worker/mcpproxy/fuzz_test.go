package mcpproxy

// Internal tests of what strangers write: a list of tools, and what an attempt before
// this one has noted.

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// FuzzListing: of whatever tools an upstream lists comes a manifest that callers read
// without a warning, and each of its tools can be called.
func FuzzListing(f *testing.F) {
	for _, tools := range []string{
		`[{"name":"a","inputSchema":{"type":"object"}},{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}}]`,
		`[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"},"s":{"properties":{"t":{"type":"integer","x-mcp-header":"T"}}}}}}]`,
		`[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"a b"}}}}]`,
		`[{"name":"list_tools","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"value","k":1.0}},7,{"name":1},{"name":""},{"name":"x"},{"name":"x"}]`,
		`[{"name":"ünï","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":1}},{"name":"\ud800","inputSchema":{"type":"object"}},{"name":"a","_meta":7}]`,
		`[{"name":"` + strings.Repeat("n", 128) + `","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}]`,
	} {
		f.Add([]byte(tools), "", `{"r":"é","s":{"t":1e3}}`)
		f.Add([]byte(tools), "p_", `{"r":null,"s":7}`)
	}
	f.Fuzz(func(t *testing.T, tools []byte, prefix, arguments string) {
		raw, err := contract.ParseArray(tools)
		if err != nil || contract.CheckPrefix(prefix) != nil {
			return
		}
		o := Options{Prefix: prefix}
		o.setDefaults("fuzz")
		l := o.newListing(mcpclient.Server{}, raw, 0)
		require.LessOrEqual(t, len(l.order), len(raw))
		for _, w := range l.warnings {
			require.NotContains(t, w, "\n")
			require.True(t, utf8.ValidString(w), "%q", w)
		}
		m, err := contract.DecodeManifest(l.manifest.JSON())
		require.NoError(t, err)
		require.Empty(t, m.Warnings)
		require.Len(t, m.Tools, len(l.order))
		for i, tool := range m.Tools {
			at := l.tools[tool.Name]
			require.Same(t, l.order[i], at, "%s", tool.Name)
			require.Equal(t, contract.EncodingMCP, tool.Encoding)
			if tool.Name != at.upstream {
				require.Equal(t, at.upstream, tool.UpstreamName)
			}
			headers := headersOf(at.headers, json.RawMessage(arguments))
			require.LessOrEqual(t, len(headers), len(at.headers))
			for name := range headers {
				require.True(t, strings.HasPrefix(name, paramHeaderPrefix) && streamable.ValidName(name))
			}
		}
	})
}

// FuzzNote: only the note that nothing has been sent lets a request go out again.
func FuzzNote(f *testing.F) {
	for _, data := range []string{`"` + noteNothing + `"`, `"` + noteSending + `"`, `"nothing has been sent "`, `"` + noteRefused + `7"`, `"` + noteRefused + `-7"`, `"` + noteRefused + `4294967297"`, `null`, `""`, ``, `{`, `["nothing has been sent"]`, "\xff"} {
		for _, encoding := range []string{"json/plain", "binary/plain", "binary/null", "json/protobuf", "x"} {
			f.Add(encoding, []byte(data))
		}
	}
	dc := converter.GetDefaultDataConverter()
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		payloads := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}}}
		var text string
		exact := encoding == "json/plain" && json.Unmarshal(data, &text) == nil && text == noteNothing
		sending, refused := readNote(8, func(note *string) error { return dc.FromPayloads(payloads, note) })
		require.GreaterOrEqual(t, refused, int32(0))
		require.Less(t, refused, int32(8))
		if sending {
			require.False(t, exact)
		} else {
			require.True(t, exact || strings.HasPrefix(text, noteRefused))
		}
	})
}
