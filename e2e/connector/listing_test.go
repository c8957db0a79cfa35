package connector_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestListing(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		list := p.ListTools(t)
		want := []string{
			"act", "big", "brief", "cancel_operation", "content", "echo", "fail", "get_operation_result", "headers", "input",
			"list_operations", "note", "pick", "pick_any", "report", "slow", "slow_any", "stubborn",
		}
		if p.HTTP != nil { // nobody tells one anonymous caller from another
			want = slices.DeleteFunc(want, func(name string) bool { return name == "list_operations" })
		}
		require.Equal(t, want, list.Names(t))

		echo, _ := list.Find(t, "echo")
		harness.RequireExact(t, `{"name":"echo","title":"Echo","description":"Returns its arguments. <b>&\u2028","x-unknown":{"z":1.0,"a":9007199254740993,"m":[1e400,-0]},
			"inputSchema":{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"number","maximum":9007199254740993}}},
			"annotations":{"readOnlyHint":true,"x-hint":1.0},"_meta":{"io.temporal/kind":"sync","com.example/x":[1.50]}}`, string(echo))

		var warnings []string
		require.NoError(t, json.Unmarshal(list.Meta["io.temporal/warnings"], &warnings))
		require.Len(t, warnings, 1)
		require.Contains(t, warnings[0], "Bad Name")

		_, pickAny := list.Find(t, "pick_any")
		if p.Modern() {
			require.NotNil(t, list.TTL)
			require.Equal(t, 30_000, *list.TTL)
			require.Equal(t, map[bool]string{true: "public", false: "private"}[p.HTTP != nil], list.Scope, "a caller with a name sees one tool more")
			require.Equal(t, "complete", list.ResultType)
			require.JSONEq(t, `{}`, string(pickAny["outputSchema"]), "it cannot outlast the wait")
		} else {
			require.Nil(t, list.TTL)
			require.Empty(t, list.Scope)
			require.Empty(t, list.ResultType)
			require.NotContains(t, pickAny, "outputSchema", "older clients want objects")
		}
		require.Equal(t, list.Tools, p.ListTools(t).Tools, "the order changes")
	})
}

// TestOutputSchemasTellOfRunning: a call that may outlast the wait budget can end
// as running, and no served schema may deny that.
func TestOutputSchemasTellOfRunning(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2026, "--wait-budget", "4s")
	list := p.ListTools(t)
	_, report := list.Find(t, "report")
	harness.RequireExact(t, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","anyOf":[
		{"type":"object","properties":{"n":{"$ref":"#/anyOf/0/$defs/n"}},"required":["n"],"$defs":{"n":{"type":"integer"}}},
		{"type":"object","properties":{"status":{"const":"running"},"operation_id":{"type":"string"}},"required":["status","operation_id"]}]}`,
		string(report["outputSchema"]))
	_, slowAny := list.Find(t, "slow_any")
	require.Contains(t, string(slowAny["outputSchema"]), `"const":"running"`)
	_, pickAny := list.Find(t, "pick_any") // 5 s
	require.Contains(t, string(pickAny["outputSchema"]), `"const":"running"`)
	_, brief := list.Find(t, "brief")
	require.NotContains(t, brief, "outputSchema")

	_, pickAny = stdioPeer(t, harness.Revision2026, "--wait-budget", "6s").ListTools(t).Find(t, "pick_any")
	require.JSONEq(t, `{}`, string(pickAny["outputSchema"]))
}

func TestPaging(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.PrepareService(t)
	manifest := strings.Builder{}
	for i := range 1500 {
		if i > 0 {
			manifest.WriteString(",")
		}
		manifest.WriteString(`{"name":"t` + strings.Repeat("0", i%10) + "_" + harness.Unique("x") + `","description":"One of many.","inputSchema":{"type":"object"}}`)
	}
	service.SetManifest(t, `{"tools":[`+manifest.String()+`]}`)
	service.Start(t)
	p := temporal.StartStdio(t, "--service", service.Name, "--poll-tools", "off").Speak(t, harness.Revision2026)

	var names []string
	pages := 0
	for cursor := `{}`; cursor != ""; pages++ {
		require.Less(t, pages, 10)
		var page harness.ToolList
		p.Call(t, "tools/list", cursor).Decode(t, &page)
		names = append(names, page.Names(t)...)
		if cursor = ""; page.NextCursor != "" {
			cursor = `{"cursor":"` + page.NextCursor + `"}`
		}
	}
	require.Equal(t, 2, pages)
	require.Len(t, names, 1500)
	require.True(t, slices.IsSorted(names))
	require.Len(t, slices.Compact(names), 1500)

	bad := p.Call(t, "tools/list", `{"cursor":"nonsense"}`)
	require.NotNil(t, bad.Error, "%s", bad.Raw)
	require.Equal(t, -32602, bad.Error.Code)
}

// TestServerSaysWhatItIs: name, capabilities and the services' instructions, also
// to a client that asks right after the start.
func TestServerSaysWhatItIs(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	type about struct {
		ProtocolVersion   string
		SupportedVersions []string
		Capabilities      map[string]json.RawMessage
		Instructions      string
		ServerInfo        struct{ Name, Version string }
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	check := func(t *testing.T, a about) {
		t.Helper()
		require.Equal(t, kit.Name+": Be exact.", a.Instructions)
		require.JSONEq(t, `{"listChanged":true}`, string(a.Capabilities["tools"]))
		for _, none := range []string{"logging", "prompts", "resources", "completions"} {
			require.NotContains(t, a.Capabilities, none)
		}
	}
	server := httpServer(t)
	for _, revision := range harness.Revisions[:2] {
		for _, overHTTP := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http=%t", revision, overHTTP), func(t *testing.T) {
				t.Parallel()
				var a about
				if overHTTP {
					server.Speak(revision).Call(t, "initialize",
						`{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`).Decode(t, &a)
				} else {
					harness.Until(t, func() bool { // a busy machine may not answer within the second that there is
						a = about{}
						harness.Shared(t).StartStdio(t, "--service", kit.Name).Initialize(t, revision).Decode(t, &a)
						return a.Instructions != ""
					})
				}
				check(t, a)
				require.Equal(t, revision, a.ProtocolVersion)
				require.Equal(t, "durable-mcp-connector", a.ServerInfo.Name)
				require.NotEmpty(t, a.ServerInfo.Version)
			})
		}
	}
	for name, p := range map[string]*harness.Peer{
		"http": server.Speak(harness.Revision2026), "stdio": stdioPeer(t, harness.Revision2026),
	} {
		t.Run(harness.Revision2026+" "+name, func(t *testing.T) {
			t.Parallel()
			var a about
			p.Call(t, "server/discover", `{}`).Decode(t, &a)
			check(t, a)
			require.Contains(t, a.SupportedVersions, p.Revision)
			require.Contains(t, string(a.Capabilities["extensions"]), "io.modelcontextprotocol/tasks")
			require.Contains(t, string(a.Meta["io.modelcontextprotocol/serverInfo"]), "durable-mcp-connector")
		})
	}
}

func TestMethodsThatNoServiceHas(t *testing.T) {
	t.Parallel()

	eachPeer(t, nil, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		for method, params := range map[string]string{
			"prompts/list": `{}`, "prompts/get": `{"name":"x"}`, "resources/list": `{}`, "resources/templates/list": `{}`,
			"resources/read":      `{"uri":"file:///x"}`,
			"completion/complete": `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}`,
		} {
			m := p.Call(t, method, params)
			require.NotNil(t, m.Error, "%s: %s", method, m.Raw)
			require.Equal(t, -32601, m.Error.Code, "%s: %s", method, m.Raw)
		}
		unknown := p.Request(t, "nonsense/method", `{}`)
		if p.HTTP != nil && !p.Modern() { // the SDK says so in plain text
			require.Equal(t, 400, unknown.Exchange.Status)
			return
		}
		m := unknown.Answer(t)
		require.NotNil(t, m.Error, "%s", m.Raw)
		require.Equal(t, -32601, m.Error.Code, "%s", m.Raw)
	})
}

func TestPollToolsOff(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November, "--poll-tools", "off", "--wait-budget", "1s")
	names := p.ListTools(t).Names(t)
	for _, name := range []string{"get_operation_result", "cancel_operation", "list_operations"} {
		require.NotContains(t, names, name)
		require.Equal(t, -32602, p.ToolError(t, name, `{"operation_id":"x"}`).Code)
	}
	running := p.Tool(t, "slow", `{"seconds":60}`)
	running.Running(t)
	require.NotContains(t, running.Text(t), "get_operation_result")
}

// TestSDKClient: the client of the MCP Go SDK lists and calls at every revision.
func TestSDKClient(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	server := httpServer(t)
	use := func(t *testing.T, session *mcp.ClientSession) {
		t.Helper()
		var names []string
		for tool, err := range session.Tools(t.Context(), nil) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		require.Contains(t, names, "echo")
		require.NotContains(t, names, "Bad Name")
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"zulu": "<b>"}})
		require.NoError(t, err)
		require.False(t, res.IsError)
		require.Equal(t, map[string]any{"zulu": "<b>"}, res.StructuredContent)
		require.Equal(t, `{"zulu":"<b>"}`, res.Content[0].(*mcp.TextContent).Text)
		res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail", Arguments: map[string]any{"as": "error"}})
		require.NoError(t, err)
		require.True(t, res.IsError)
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "absent"})
		require.ErrorContains(t, err, "absent")
	}
	for _, revision := range append(harness.Revisions, "") {
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			use(t, server.Connect(t, revision, nil))
		})
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			use(t, temporal.ConnectStdio(t, revision, nil, "--service", kit.Name))
		})
	}
}
