package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
)

var resources = []string{
	`{"uri":"file:///notes.txt","name":"notes","title":"Notes","mimeType":"text/plain","size":9007199254740993,"x-unknown":1.0,"_meta":{"com.example/r":1.0}}`,
	`{"uri":"file:///manual.pdf","name":"manual","mimeType":"application/pdf"}`,
	`{"uri":"file:///secret-plan","name":"plan"}`,
}

var templates = []string{
	`{"uriTemplate":"file:///logs/{day}","name":"logs","mimeType":"text/plain","x-unknown":-0}`,
}

var contents = map[string]string{
	"file:///notes.txt":   `[{"uri":"file:///notes.txt","mimeType":"text/plain","text":"a <b>\u0000\u2028","_meta":{"com.example/c":1.0}}]`,
	"file:///manual.pdf":  `[{"uri":"file:///manual.pdf","mimeType":"application/pdf","blob":"JVBERi0xLjcK","_meta":{"ui":{"width":1.0}}}]`,
	"file:///secret-plan": `[{"uri":"file:///secret-plan","text":""},{"uri":"file:///secret-plan#2","x-kind":"hologram","beams":[1e400]}]`,
}

var prompts = []string{
	`{"name":"greet","title":"Greet","description":"Greets <someone>.","arguments":[{"name":"who","required":true,"x-unknown":1.0}],"_meta":{"com.example/p":1.0}}`,
	`{"name":"plain","description":"Takes nothing."}`,
}

// library serves what is no tool.
func (s *server) library(m *message) (json.RawMessage, error, bool) { //nolint:revive // whether it knows the method comes last
	var p struct {
		URI       string            `json:"uri"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
		Argument  struct{ Name, Value string }
		Ref       struct{ Type, Name, URI string }
	}
	if m.Params != nil {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, fail(-32602, "%v", err), true
		}
	}
	kind, _, _ := strings.Cut(m.Method, "/")
	if kind == "completion" {
		kind = "completions"
	}
	if !s.has(kind) {
		return nil, nil, false
	}
	switch m.Method {
	case "resources/list":
		return both(s.page(m, "resources", resources))
	case "resources/templates/list":
		return both(s.page(m, "resourceTemplates", templates))
	case "prompts/list":
		return both(s.page(m, "prompts", prompts))
	case "resources/read":
		text, ok := contents[p.URI]
		if day, is := strings.CutPrefix(p.URI, "file:///logs/"); is {
			text, ok = fmt.Sprintf(`[{"uri":%q,"text":%q}]`, p.URI, "the log of "+day), true
		}
		if !ok {
			code := -32602
			if !m.modern() {
				code = -32002
			}
			return nil, &rpcError{Code: code, Message: "Resource not found", Data: encode(map[string]string{"uri": p.URI})}, true
		}
		return json.RawMessage(`{"contents":` + text + `,"x-read":1.0}`), nil, true
	case "prompts/get":
		if p.Name != "greet" && p.Name != "plain" {
			return nil, fail(-32602, "Unknown prompt: %s", p.Name), true
		}
		return fmt.Appendf(nil, `{"description":"Greets <someone>.","messages":[{"role":"user","content":{"type":"text","text":%s,"x-unknown":1.0}},`+
			`{"role":"assistant","content":{"type":"resource","resource":%s}}]}`,
			encode("Say hello to "+p.Arguments["who"]+"."), strings.Trim(contents["file:///manual.pdf"], "[]")), nil, true
	case "completion/complete":
		return fmt.Appendf(nil, `{"completion":{"values":[%s,%s],"total":2,"hasMore":false,"x-unknown":1.0}}`,
			encode(p.Argument.Value+"a"), encode(p.Ref.Type+"/"+p.Argument.Name)), nil, true
	}
	return nil, nil, false
}

func both(result json.RawMessage, err error) (json.RawMessage, error, bool) { //nolint:revive // as library
	return result, err, true
}
