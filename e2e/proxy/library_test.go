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
		var resources struct {
			Resources []map[string]json.RawMessage `json:"resources"`
		}
		p.Call(t, "resources/list", `{}`).Decode(t, &resources)
		require.Len(t, resources.Resources, 3)
		notes := find(t, resources.Resources, "name", `"notes"`)
		harness.RequireExact(t, `9007199254740993`, string(notes["size"]))
		harness.RequireExact(t, `1.0`, string(notes["x-unknown"]))

		var templates struct {
			Templates []map[string]json.RawMessage `json:"resourceTemplates"`
		}
		p.Call(t, "resources/templates/list", `{}`).Decode(t, &templates)
		require.Len(t, templates.Templates, 1)
		harness.RequireExact(t, `-0`, string(templates.Templates[0]["x-unknown"]))

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

		var prompts struct {
			Prompts []map[string]json.RawMessage `json:"prompts"`
		}
		p.Call(t, "prompts/list", `{}`).Decode(t, &prompts)
		require.Len(t, prompts.Prompts, 2)
		greet := find(t, prompts.Prompts, "name", `"greet"`)
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
	})
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
