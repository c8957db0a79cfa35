package mcpclient_test

import (
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/stretchr/testify/require"
)

func FuzzDecodeIncoming(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"m","params":[]}`, `{"id":"x","method":1}`,
		`{}`, `[]`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", `{"jsonrpc":"2.0","id":null,"error":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := mcpclient.DecodeIncoming(raw)
		if err != nil {
			return
		}
		require.True(t, json.Valid(raw))
		if m.Fault == nil && m.IsResponse() {
			require.Regexp(t, `(?s)(?i)result|error|\\u`, string(raw))
		}
	})
}
