package mcpproxy_test

import (
	"context"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestAToolIsListedAndCalled(t *testing.T) {
	t.Parallel()

	for name, legacy := range map[string]bool{"modern": false, "legacy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newServer(t, plainTool)
			s.Legacy = legacy
			s.Call = func(_ context.Context, _ *fakeConn, _ string, params contract.Object) (string, *contract.ProtocolError) {
				return `{"content":[],"structuredContent":` + string(params.Get("arguments")) + `,"x":1e400}`, nil
			}
			c := serve(t, s.upstream(), mcpproxy.Options{})
			m := c.manifest()
			require.Len(t, m.Tools, 1)
			require.Equal(t, contract.EncodingMCP, m.Tools[0].Encoding)
			require.Equal(t, contract.KindActivity, m.Tools[0].Kind)
			require.Equal(t, "Be <kind>.", m.Instructions)
			const arguments = `{"n":1.0,"big":9007199254740993,"s":"\ud800<b>","n":-0}`
			require.Equal(t, `{"content":[],"structuredContent":`+arguments+`,"x":1e400}`, c.ok("echo", `{"arguments":`+arguments+`}`))
		})
	}
}
