package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// session is a stdio client that agreed on a revision by initialize.
func session(t *testing.T, revision string) *pipe {
	t.Helper()
	server, _ := start(t, mcpserver.Options{})
	p := stdio(t, server, time.Second)
	p.send(strings.Replace(initialize, "2025-06-18", revision, 1))
	require.Equal(t, "init", p.read().ID)
	p.send(initialized)
	return p
}

// Batches are of the revision 2025-03-26: their answers come together, those of
// bad messages among them, and notifications and cancelled requests have none.
func TestBatches(t *testing.T) {
	t.Parallel()

	p := session(t, "2025-03-26")
	p.send(`[{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}},` +
		`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"echo","arguments":{"n":1e400}}},` +
		`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"brood","arguments":{}}},` +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}},` +
		`{"jsonrpc":"2.0","id":"e","method":"ping"},7]`)
	var answers []answer
	line := p.line()
	require.NoError(t, json.Unmarshal([]byte(line), &answers))
	require.Len(t, answers, 4, "%s", line)
	require.Contains(t, line, `"id":9007199254740993,"result":{}`)
	require.Contains(t, line, `"structuredContent":{"n":1e400}`)
	require.Contains(t, line, `"id":"e","error":{"code":-32600,`, "the second with the ID")
	require.Contains(t, line, `"id":null,"error":{"code":-32700,`)

	p.send(`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}]`, `[]`)
	require.Contains(t, p.line(), `"id":null,"error":{"code":-32600,"message":"The JSON-RPC batch is empty."}`,
		"notifications alone have no answer")
	p.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, p.line())
}

func TestBatchesOfOtherRevisions(t *testing.T) {
	t.Parallel()

	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		p := session(t, revision)
		p.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
		require.Contains(t, p.line(), `"id":null,"error":{"code":-32600,`, revision)
	}
}

// A request under an ID that is in use is answered, and the first one goes on.
func TestStdioRefusesAnIDInUse(t *testing.T) {
	t.Parallel()

	p := session(t, "2025-11-25")
	for _, id := range []string{`7`, `"seven"`, `9007199254740993`} {
		call := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"brood","arguments":{}}}`
		p.send(call, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		line := p.line()
		require.Contains(t, line, `"id":`+id+`,"error":{"code":-32600,"message":"The id `+strings.ReplaceAll(id, `"`, `\"`)+" is")
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`,
			`{"jsonrpc":"2.0","id":"after","method":"tools/call","params":{"name":"echo","arguments":{}}}`)
		require.Contains(t, p.line(), `"id":"after","result"`, "the cancelled one has no answer")
	}
}

// Over HTTP the SDK takes a batch apart; each of its requests keeps its own bytes.
func TestHTTPBatchesKeepTheirParams(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("mirror", `{"tools":[{"name":"see","inputSchema":{"type":"object"},"_meta":{"io.temporal/encoding":"mcp"}}]}`,
		map[string]temporaltest.Handler{"see": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
			return contract.TextResult("saw "+string(input), false).JSON(), nil
		}})
	server := serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: "mirror"}}})
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"z":%s,"a":1.0,"progressToken":%[2]s},"name":"see","arguments":{"n":%[2]s}}}`
	numbers := []string{"9007199254740993", "1e400", "123456789012345678901234567890"}
	w := deliver(t, server, "["+fmt.Sprintf(call, 1, numbers[0])+`,{"jsonrpc":"2.0","id":"p","method":"ping"},`+
		fmt.Sprintf(call, 2, numbers[1])+","+fmt.Sprintf(call, 3, numbers[2])+"]")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `"id":"p","result"`)
	for i, n := range numbers {
		input := fmt.Sprintf(`{"arguments":{"n":%s},"_meta":{"z":%[1]s,"a":1.0}}`, n)
		require.Regexp(t, fmt.Sprintf(`"id":%d,"result":.*`, i+1)+regexp.QuoteMeta("saw "+strings.ReplaceAll(input, `"`, `\"`)+`"`), w.Body.String())
		require.Contains(t, w.Body.String(), `"progressToken":`+n+`,`)
	} // Params that say nothing, or are left out.
	w = deliver(t, server, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":null,"name":"see","arguments":{"n":1e400}}}]`)
	require.Contains(t, w.Body.String(), `saw {\"arguments\":{\"n\":1e400}}`)
	shelf{}.serve(temporal, "shelf", everything)
	server = serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: "shelf"}}})
	for _, params := range []string{"", `,"params":null`, `,"params":{}`} {
		for _, method := range []string{"resources/list", "prompts/list", "resources/templates/list", "tools/list", "ping"} {
			w = deliver(t, server, fmt.Sprintf(`[{"jsonrpc":"2.0","id":1,"method":%q%s}]`, method, params))
			require.Contains(t, w.Body.String(), `"id":1,"result"`, "%s %s", method, params)
		}
	}
}
