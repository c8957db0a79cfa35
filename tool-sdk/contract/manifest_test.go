package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

const fullTool = `{"name":"look_up","title":"Look up <a key>","description":"Looks a key up.","icons":[{"src":"https://example.com/i.png"}],` +
	`"inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993,"default":1.0}},"later":[1e400]},` +
	`"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true,"later":"x"},"execution":{"taskSupport":"optional"},` +
	`"_meta":{"io.temporal/scheduleToCloseTimeoutMs":90000,"io.temporal/encoding":"mcp","io.temporal/kind":"activity",` +
	`"io.temporal/upstreamName":"look.up","example.com/x":-0}}`

func TestDecodeTool(t *testing.T) {
	t.Parallel()

	tool, warnings, err := contract.DecodeTool(raw(fullTool))
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, contract.Tool{
		Raw:                    raw(fullTool),
		Name:                   "look_up",
		Title:                  "Look up <a key>",
		Description:            "Looks a key up.",
		InputSchema:            raw(`{"type":"object","properties":{"n":{"maximum":9007199254740993,"default":1.0}},"later":[1e400]}`),
		OutputSchema:           raw(`{"type":"array"}`),
		Annotations:            raw(`{"readOnlyHint":true,"later":"x"}`),
		ScheduleToCloseTimeout: 90 * time.Second,
		Encoding:               contract.EncodingMCP,
		Kind:                   contract.KindActivity,
		UpstreamName:           "look.up",
	}, tool)

	least := `{"name":"a","inputSchema":{"type":"object"},"outputSchema":null,"annotations":null,"_meta":null,"title":null}`
	tool, warnings, err = contract.DecodeTool(raw(least))
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, contract.Tool{
		Raw: raw(least), Name: "a", InputSchema: raw(`{"type":"object"}`), Encoding: contract.EncodingValue,
	}, tool)
}

func TestDecodeToolNamesEachFault(t *testing.T) {
	t.Parallel()

	schema := `"inputSchema":{"type":"object"}`
	for in, want := range map[string]string{
		`[]`: "an array, want an object",
		`{"name":1,"title":2,"description":3}`: "name: a number, want a string\ntitle: a number, want a string\n" +
			"description: a number, want a string\ninputSchema: there is none; a tool without arguments has {\"type\":\"object\"}",
		`{"name":"a.b","title":[],` + schema + `}`: "name: the name \"a.b\" has '.'; only letters, digits, _ and - of ASCII are allowed\n" +
			"title: an array, want a string",
		`{` + schema + `}`:                                                                   "name: the name is empty",
		`{"name":"list_tools",` + schema + `}`:                                               `name: the name "list_tools" is reserved`,
		`{"name":"a","inputSchema":null}`:                                                    `inputSchema: there is none; a tool without arguments has {"type":"object"}`,
		`{"name":"a","inputSchema":true}`:                                                    "inputSchema: a boolean, want an object",
		`{"name":"a","inputSchema":{}}`:                                                      `inputSchema: type: missing, want "object"`,
		`{"name":"a","inputSchema":{"type":["object"]}}`:                                     `inputSchema: type: ["object"], want "object"`,
		`{"name":"a","inputSchema":{"Type":"object"}}`:                                       `inputSchema: type: missing, want "object"`,
		`{"name":"a","outputSchema":"x",` + schema + `}`:                                     "outputSchema: a string, want an object or a boolean",
		`{"name":"a","annotations":[],` + schema + `}`:                                       "annotations: an array, want an object",
		`{"name":"a","annotations":{"readOnlyHint":1},` + schema + `}`:                       "annotations: readOnlyHint: a number, want a boolean",
		`{"name":"a","_meta":[],` + schema + `}`:                                             "_meta: an array, want an object",
		`{"name":"a","_meta":{"io.temporal/encoding":"x"},` + schema + `}`:                   `_meta: io.temporal/encoding: "x", want "value" or "mcp"`,
		`{"name":"a","_meta":{"io.temporal/encoding":1},` + schema + `}`:                     `_meta: io.temporal/encoding: 1, want "value" or "mcp"`,
		`{"name":"a","_meta":{"io.temporal/scheduleToCloseTimeoutMs":0},` + schema + `}`:     "_meta: io.temporal/scheduleToCloseTimeoutMs: 0, want a positive number of milliseconds",
		`{"name":"a","_meta":{"io.temporal/scheduleToCloseTimeoutMs":"5s"},` + schema + `}`:  `_meta: io.temporal/scheduleToCloseTimeoutMs: "5s", want a positive number of milliseconds`,
		`{"name":"a","_meta":{"io.temporal/scheduleToCloseTimeoutMs":1e400},` + schema + `}`: "_meta: io.temporal/scheduleToCloseTimeoutMs: 1e400, want a positive number of milliseconds",
		`{"name":"a","_meta":{"io.temporal/scheduleToCloseTimeoutMs":"` + strings.Repeat("é", 100) + `"},` + schema + `}`: "_meta: io.temporal/scheduleToCloseTimeoutMs: \"" +
			strings.Repeat("é", 39) + "…, want a positive number of milliseconds",
	} {
		_, _, err := contract.DecodeTool(raw(in))
		require.EqualError(t, err, want, in)
	}
}

func TestToolTimeouts(t *testing.T) {
	t.Parallel()

	for ms, want := range map[string]time.Duration{
		"3000": 3 * time.Second, "3e3": 3 * time.Second, "4500.5": 4500500 * time.Microsecond, "null": 0,
		"2999": contract.MinScheduleToClose, "0.001": contract.MinScheduleToClose,
		"9e15": 9223372036854 * time.Millisecond, "1e300": 9223372036854 * time.Millisecond,
		"9223372036854": 9223372036854 * time.Millisecond,
	} {
		tool, warnings, err := contract.DecodeTool(raw(
			`{"name":"a","inputSchema":{"type":"object"},"_meta":{"io.temporal/scheduleToCloseTimeoutMs":` + ms + `}}`))
		require.NoError(t, err, ms)
		require.Equal(t, want, tool.ScheduleToCloseTimeout, ms)
		require.Len(t, warnings, map[bool]int{true: 1}[want == contract.MinScheduleToClose && ms != "3000" && ms != "3e3"], ms)
	}
}

func TestHints(t *testing.T) {
	t.Parallel()

	for annotations, want := range map[string]contract.Hints{
		``:                      {Destructive: true},
		`{}`:                    {Destructive: true},
		`{"readOnlyHint":true}`: {ReadOnly: true},
		`{"readOnlyHint":true,"destructiveHint":true}`:   {ReadOnly: true},
		`{"destructiveHint":false}`:                      {},
		`{"destructiveHint":null}`:                       {Destructive: true},
		`{"idempotentHint":true}`:                        {Destructive: true, Idempotent: true},
		`{"READONLYHINT":true,"readonlyhint":true}`:      {Destructive: true},
		`{"readOnlyHint":true,"readOnlyHint":false}`:     {Destructive: true},
		`{"readOnlyHint":false,"destructiveHint":false}`: {},
	} {
		require.Equal(t, want, contract.Tool{Annotations: raw(annotations)}.Hints(), annotations)
	}
}

func TestDecodeManifest(t *testing.T) {
	t.Parallel()

	meta := `{"io.temporal/contract":1,"io.temporal/capabilities":{"resources":{"subscribe":true}},` +
		`"io.temporal/serverInfo":{"name":"s","version":"1"},"io.temporal/instructions":"Ask \u003cnicely\u003e.","example.com/x":[1.0]}`
	in := `{"tools":[` + fullTool + `,{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"<2>","_meta":` + meta + `}`
	m, err := contract.DecodeManifest(raw(in))
	require.NoError(t, err)
	require.Empty(t, m.Warnings)
	require.Len(t, m.Tools, 2)
	require.Equal(t, "<2>", m.NextCursor)
	require.Equal(t, 1, m.Version)
	require.Equal(t, `{"resources":{"subscribe":true}}`, string(m.Capabilities))
	require.Equal(t, `{"name":"s","version":"1"}`, string(m.ServerInfo))
	require.Equal(t, "Ask <nicely>.", m.Instructions)
	require.Equal(t, meta, string(m.Meta))
	golden(t, "manifest.json", m.JSON())

	again, err := contract.DecodeManifest(m.JSON())
	require.NoError(t, err)
	require.Equal(t, m.Tools, again.Tools)

	for _, empty := range []string{`{"tools":[]}`, `{"tools":null,"nextCursor":null,"_meta":null}`} {
		m, err = contract.DecodeManifest(raw(empty))
		require.NoError(t, err)
		require.Equal(t, contract.Manifest{}, m)
		require.Equal(t, `{"tools":[]}`, string(m.JSON()))
	}
}

func TestManifestLeavesBadToolsOut(t *testing.T) {
	t.Parallel()

	m, err := contract.DecodeManifest(raw(`{"tools":[{"name":"good","inputSchema":{"type":"object"}},7,{"name":"a b","title":1},` +
		`{"name":"good","inputSchema":{"type":"object"}},{"name":"late","inputSchema":{"type":"object"},` +
		`"_meta":{"io.temporal/scheduleToCloseTimeoutMs":5}}],"_meta":{"io.temporal/contract":2,"io.temporal/serverInfo":7,"io.temporal/instructions":{}}}`))
	require.NoError(t, err)
	require.Equal(t, 2, m.Version)
	require.Len(t, m.Tools, 2)
	require.Equal(t, "good", m.Tools[0].Name)
	require.Equal(t, "late", m.Tools[1].Name)
	require.Equal(t, []string{
		"the service speaks contract version 2, this reader 1: what it does not know is not used",
		"tools[1] is left out: a number, want an object",
		`tools[2] "a b" is left out: name: the name "a b" has ' '; only letters, digits, _ and - of ASCII are allowed; ` +
			`title: a number, want a string; inputSchema: there is none; a tool without arguments has {"type":"object"}`,
		`tools[3] "good" is left out: name: another tool of the service has it`,
		`tools[4] "late": io.temporal/scheduleToCloseTimeoutMs: 5ms is shorter than a Temporal server can keep; 3s is used`,
	}, m.Warnings)
}

func TestDecodeManifestNamesTheFault(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		``:                            "manifest: empty, want JSON",
		`null`:                        "manifest: null, want an object",
		`{}`:                          "manifest: tools: missing",
		`{"tools":{}}`:                "manifest: tools: an object, want an array",
		`{"tools":[],"nextCursor":1}`: "manifest: nextCursor: a number, want a string",
		`{"tools":[],"_meta":1}`:      "manifest: _meta: a number, want an object",
		`{"tools":[],"_meta":{"io.temporal/contract":"1"}}`:    `manifest: _meta: io.temporal/contract: "1", want an integer`,
		`{"tools":[],"_meta":{"io.temporal/contract":1.5}}`:    "manifest: _meta: io.temporal/contract: 1.5, want an integer",
		`{"tools":[],"_meta":{"io.temporal/capabilities":[]}}`: "manifest: _meta: io.temporal/capabilities: an array, want an object",
		`{"tools":[` + strings.Repeat(`0,`, 10_000) + `0]}`:    "manifest: tools: more than 10000",
	} {
		_, err := contract.DecodeManifest(raw(in))
		require.EqualError(t, err, want)
	}
}

func TestListInput(t *testing.T) {
	t.Parallel()

	require.Equal(t, "null", string(contract.ListInput("")))
	require.Equal(t, `{"cursor":"<2>"}`, string(contract.ListInput("<2>")))
	for in, want := range map[string]string{``: "", `null`: "", `{}`: "", `{"cursor":null}`: "", `{"cursor":"<2>","later":1}`: "<2>"} {
		cursor, err := contract.DecodeListInput(raw(in))
		require.NoError(t, err)
		require.Equal(t, want, cursor)
	}
	for in, want := range map[string]string{
		`[]`:           "list_tools: input: an array, want an object",
		`{"cursor":1}`: "list_tools: input: cursor: a number, want a string",
	} {
		_, err := contract.DecodeListInput(raw(in))
		require.EqualError(t, err, want)
	}
}

func bigManifest(tools, bytesEach int) contract.Manifest {
	m := contract.Manifest{Version: 1, Instructions: "all pages have this", NextCursor: "of another reader"}
	for i := range tools {
		name := "tool_" + strconv.Itoa(i)
		m.Tools = append(m.Tools, contract.Tool{Name: name, Raw: raw(fmt.Sprintf(
			`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name, strings.Repeat("x", bytesEach)))})
	}
	return m
}

func TestPagesAddUp(t *testing.T) {
	t.Parallel()

	m := bigManifest(50, 100_000)
	pages := 0
	all, err := contract.Collect(t.Context(), func(_ context.Context, cursor string) (json.RawMessage, error) {
		pages++
		cursor, err := contract.DecodeListInput(contract.ListInput(cursor))
		require.NoError(t, err)
		page, err := m.Page(cursor)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.JSON()), contract.ManifestPageBytes+1_000)
		return page.JSON(), nil
	})
	require.NoError(t, err)
	require.Equal(t, 5, pages)
	require.Empty(t, all.Warnings)
	require.Empty(t, all.NextCursor)
	require.Equal(t, m.Instructions, all.Instructions)
	require.Len(t, all.Tools, 50)
	for i := range all.Tools {
		require.Equal(t, string(m.Tools[i].Raw), string(all.Tools[i].Raw))
	}

	_, err = m.Page("tool_50")
	require.EqualError(t, err, `cursor: "tool_50" is none of this manifest's; list from the start again`)
	_, err = (&contract.Manifest{}).Page("x")
	require.Error(t, err)
	page, err := (&contract.Manifest{}).Page("")
	require.NoError(t, err)
	require.Equal(t, `{"tools":[]}`, string(page.JSON()))

	huge := bigManifest(2, 3<<20)
	page, err = huge.Page("")
	require.NoError(t, err)
	require.Len(t, page.Tools, 1, "a tool that is over the limit alone has a page of its own")
}

// TestCollectIsBounded: no service can keep a reader busy for ever.
func TestCollectIsBounded(t *testing.T) {
	t.Parallel()

	tool := func(n int) string { return fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, n) }
	for name, c := range map[string]struct {
		page func(n int) string
		want string
		most int
	}{
		"same cursor":       {func(int) string { return `{"tools":[],"nextCursor":"a"}` }, `manifest: page 2: its nextCursor "a" came before`, 2},
		"cursors in a ring": {func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n%3) }, `manifest: page 4: its nextCursor "0" came before`, 4},
		"endless pages": {func(n int) string { return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tool(n), n) },
			"manifest: page 1001: more than 1000 pages", 1001},
		"endless tools": {func(n int) string {
			return fmt.Sprintf(`{"tools":[%s7],"nextCursor":"%d"}`, strings.Repeat(`7,`, 5_000), n)
		}, "manifest: page 2: tools: more than 10000", 2},
		"endless bytes": {func(n int) string {
			return []string{`{"tools":[],"nextCursor":"a"}`, strings.Repeat(" ", 64<<20)}[n]
		}, "manifest: page 2: more than 67108864 bytes", 2},
		"later page is bad": {func(n int) string {
			return []string{`{"tools":[],"nextCursor":"a"}`, `{"tools":7}`}[n]
		}, "manifest: page 2: tools: a number, want an array", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			n := 0
			_, err := contract.Collect(t.Context(), func(context.Context, string) (json.RawMessage, error) {
				n++
				return raw(c.page(n - 1)), nil
			})
			require.EqualError(t, err, c.want)
			require.Equal(t, c.most, n)
		})
	}

	_, err := contract.Collect(t.Context(), func(ctx context.Context, _ string) (json.RawMessage, error) {
		require.Equal(t, t.Context(), ctx)
		return nil, errSecret
	})
	require.Equal(t, errSecret, err, "an error of the page function comes back as it is")
}

func TestCollectAcrossPages(t *testing.T) {
	t.Parallel()

	pages := map[string]string{
		"":  `{"tools":[{"name":"a","inputSchema":{"type":"object"}},7],"nextCursor":"2","_meta":{"io.temporal/contract":9}}`,
		"2": `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"_meta":{"io.temporal/contract":9,"x":1}}`,
	}
	m, err := contract.Collect(t.Context(), func(_ context.Context, cursor string) (json.RawMessage, error) { return raw(pages[cursor]), nil })
	require.NoError(t, err)
	require.Len(t, m.Tools, 2)
	require.Equal(t, `{"io.temporal/contract":9}`, string(m.Meta))
	require.Equal(t, []string{
		"the service speaks contract version 9, this reader 1: what it does not know is not used",
		"tools[1] is left out: a number, want an object",
		`tools[2] "a" is left out: name: another tool of the service has it`,
	}, m.Warnings)
}
