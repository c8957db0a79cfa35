package proxy_test

import (
	"encoding/json"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// TestLibrary: resources, prompts and completions reach the connector's client as
// the upstream gives them.
func TestLibrary(t *testing.T) {
	t.Parallel()

	eachWay(t, func(t *testing.T, w way, p path) {
		t.Helper()
		awaitTools(t, p.Peer)
		resources := pages(t, p.Peer, "resources/list", "resources")
		require.Len(t, resources, 3)
		notes := find(t, resources, "name", `"notes"`)
		harness.RequireExact(t, `9007199254740993`, string(notes["size"]))
		harness.RequireExact(t, `1.0`, string(notes["x-unknown"]))

		templates := pages(t, p.Peer, "resources/templates/list", "resourceTemplates")
		require.Len(t, templates, 1)
		harness.RequireExact(t, `-0`, string(templates[0]["x-unknown"]))

		var read struct {
			Contents json.RawMessage `json:"contents"`
			X        json.RawMessage `json:"x-read"`
		}
		for uri, want := range map[string]string{
			"file:///notes.txt":    `[{"uri":"file:///notes.txt","mimeType":"text/plain","text":"a <b>\u0000\u2028","_meta":{"com.example/c":1.0}}]`,
			"file:///manual.pdf":   `[{"uri":"file:///manual.pdf","mimeType":"application/pdf","blob":"JVBERi0xLjcK","_meta":{"ui":{"width":1.0}}}]`,
			"file:///secret-plan":  `[{"uri":"file:///secret-plan","text":""},{"uri":"file:///secret-plan#2","x-kind":"hologram","beams":[1e400]}]`,
			"file:///logs/tuesday": `[{"uri":"file:///logs/tuesday","text":"the log of tuesday"}]`,
		} {
			p.Call(t, "resources/read", `{"uri":"`+uri+`"}`).Decode(t, &read)
			harness.RequireExact(t, want, string(read.Contents))
			harness.RequireExact(t, `1.0`, string(read.X))
		}
		missing := p.Call(t, "resources/read", `{"uri":"file:///logsx"}`)
		require.NotNil(t, missing.Error, "%s", missing.Raw)
		require.Contains(t, []int{-32602, -32002}, missing.Error.Code)

		prompts := pages(t, p.Peer, "prompts/list", "prompts")
		require.Len(t, prompts, 2)
		greet := find(t, prompts, "name", `"greet"`)
		harness.RequireExact(t, `[{"name":"who","required":true,"x-unknown":1.0}]`, string(greet["arguments"]))
		var prompt struct {
			Messages []map[string]json.RawMessage `json:"messages"`
		}
		p.Call(t, "prompts/get", `{"name":"greet","arguments":{"who":"<Ann>"}}`).Decode(t, &prompt)
		require.Len(t, prompt.Messages, 2)
		harness.RequireExact(t, `{"type":"text","text":"Say hello to <Ann>.","x-unknown":1.0}`, string(prompt.Messages[0]["content"]))
		require.NotNil(t, p.Call(t, "prompts/get", `{"name":"absent"}`).Error)

		var completion struct {
			Completion json.RawMessage `json:"completion"`
		}
		p.Call(t, "completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}`).Decode(t, &completion)
		harness.RequireExact(t, `{"values":["Aa","ref/prompt/who"],"total":2,"hasMore":false,"x-unknown":1.0}`, string(completion.Completion))
	}, "--page", "2")
}

// pages follows the cursors of a list.
func pages(t *testing.T, p *harness.Peer, method, kind string) (items []map[string]json.RawMessage) {
	t.Helper()
	params := `{}`
	for range 10 {
		var page map[string]json.RawMessage
		p.Call(t, method, params).Decode(t, &page)
		var some []map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(page[kind], &some), "%s", page)
		items = append(items, some...)
		if page["nextCursor"] == nil {
			return items
		}
		params = `{"cursor":` + string(page["nextCursor"]) + `}`
	}
	require.Fail(t, "the pages do not end")
	return nil
}

// TestNoLibrary: a server without them, and the connector says so.
func TestNoLibrary(t *testing.T) {
	t.Parallel()

	p := through(t, harness.StartUpstream(t, "--without", "resources,prompts,completions"))
	p.works(t)
	for method, params := range map[string]string{
		"resources/read": `{"uri":"file:///notes.txt"}`, "prompts/get": `{"name":"greet"}`,
	} {
		m := p.Call(t, method, params)
		require.NotNil(t, m.Error, "%s", m.Raw)
		t.Logf("%s: %+v", method, m.Error)
	}
}

func find(t *testing.T, list []map[string]json.RawMessage, key, value string) map[string]json.RawMessage {
	t.Helper()
	for _, item := range list {
		if string(item[key]) == value {
			return item
		}
	}
	require.Fail(t, "there is none with "+key+" "+value)
	return nil
}
