package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Script is the arguments of a scripted tool. Its effect is an [EventRun] with the
// key; what happens before and after the effect is told here.
type Script struct {
	Key string `json:"key,omitempty"`
	// Before is what happens ahead of the effect, After behind it: "cut", "exit",
	// "hang", "status" (an HTTP 500). Each happens the first Times times.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Times  int    `json:"times,omitempty"` // for ever by default
	// Wait is a file; the tool goes on when it exists.
	Wait     string          `json:"wait,omitempty"`
	Millis   int             `json:"millis,omitempty"`   // pass between effect and answer
	Stubborn bool            `json:"stubborn,omitempty"` // a cancellation ends no wait
	Progress int             `json:"progress,omitempty"` // so many notifications go out before the wait
	Bytes    int             `json:"bytes,omitempty"`    // the result has so many
	Error    json.RawMessage `json:"error,omitempty"`    // a JSON-RPC error
	Result   json.RawMessage `json:"result,omitempty"`
	IsError  bool            `json:"isError,omitempty"`
}

// JSON is the script as arguments.
func (s Script) JSON() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// call runs a tool.
func (s *server) call(ctx context.Context, m *message) (json.RawMessage, error) {
	var p struct {
		Arguments      json.RawMessage `json:"arguments"`
		InputResponses json.RawMessage `json:"inputResponses"`
		RequestState   string          `json:"requestState"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, fail(-32602, "%v", err)
	}
	if p.Arguments == nil {
		p.Arguments = json.RawMessage(`{}`)
	}
	var script Script
	_ = json.Unmarshal(p.Arguments, &script)
	switch m.tool {
	case ToolPlain, ToolRead, ToolPut, ToolDestroy, ToolHarmless:
		return s.run(ctx, m, script)
	case "set_location", "get_location":
		return s.locate(m, p.Arguments)
	}
	s.journal.add(Entry{Event: EventRun, Tool: m.tool, Key: script.Key, Session: sessionID(m)})
	switch m.tool {
	case "echo":
		return structured(p.Arguments), nil
	case "reply":
		if script.Result == nil {
			return nil, fail(-32602, "no result")
		}
		return script.Result, nil
	case "typed":
		return text("It does not work.", true), nil
	case "params":
		return structured(m.Params), nil
	case "mirror", "headers":
		headers := map[string]string{}
		for k, v := range m.headers {
			headers[k] = strings.Join(v, ", ")
		}
		return structured(encode(headers)), nil
	case "env":
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		return structured(encode(map[string]any{"env": os.Environ(), "args": os.Args[1:], "dir": dir, "pid": os.Getpid()})), nil
	case "add_tool":
		var a struct{ Name string }
		if err := json.Unmarshal(p.Arguments, &a); err != nil || a.Name == "" {
			return nil, fail(-32602, "add_tool wants a name")
		}
		return text("added", false), s.addTool(a.Name)
	case "ask":
		if p.InputResponses == nil {
			return json.RawMessage(`{"resultType":"input_required","requestState":"opaque <1.0>","inputRequests":{"name":{"method":"elicitation/create",` +
				`"params":{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}`), nil
		}
		return structured(fmt.Appendf(nil, `{"inputResponses":%s,"requestState":%q}`, p.InputResponses, p.RequestState)), nil
	}
	for _, tool := range s.all() {
		var t struct{ Name string }
		if err := json.Unmarshal([]byte(tool), &t); err == nil && t.Name == m.tool {
			return structured(fmt.Appendf(nil, `{"called":%s,"arguments":%s}`, encode(m.tool), p.Arguments)), nil
		}
	}
	return nil, fail(-32602, "Unknown tool: %s", m.tool)
}

func (s *server) run(ctx context.Context, m *message, script Script) (json.RawMessage, error) {
	first := 0
	if script.Before != "" || script.After != "" {
		first = s.journal.runs(m.tool, script.Key)
	}
	s.happen(ctx, m, script, script.Before, first)
	s.journal.add(Entry{Event: EventRun, Tool: m.tool, Key: script.Key, Session: sessionID(m)})
	s.happen(ctx, m, script, script.After, first)
	for i := range script.Progress {
		if token := m.meta["progressToken"]; token != nil {
			m.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d.0,"total":%d,"message":"step <%d>","x-unknown":1.0}}`,
				token, i+1, script.Progress, i+1))
		}
	}
	if err := s.await(ctx, m, script); err != nil {
		return nil, err
	}
	switch {
	case script.Error != nil:
		e := &rpcError{}
		if err := json.Unmarshal(script.Error, e); err != nil {
			return nil, err
		}
		return nil, e
	case script.Result != nil:
		return script.Result, nil
	case script.Bytes > 0:
		return text(strings.Repeat("x", script.Bytes), false), nil
	}
	return text("done "+script.Key, script.IsError), nil
}

// happen is what goes wrong, the first times only.
func (s *server) happen(ctx context.Context, m *message, script Script, what string, before int) {
	if what == "" || script.Times > 0 && before >= script.Times {
		return
	}
	s.journal.add(Entry{Event: EventFault, Tool: m.tool, Key: script.Key, Text: what})
	switch what {
	case "cut":
		m.end()
		<-ctx.Done()
	case "exit":
		os.Exit(1)
	case "hang":
		<-ctx.Done()
	default:
		panic("a script knows no " + what)
	}
}

// await waits for what the script names.
func (s *server) await(ctx context.Context, m *message, script Script) error {
	cancelled := ctx.Done()
	note := func() {
		s.journal.add(Entry{Event: EventCancelled, Tool: m.tool, Key: script.Key, Session: sessionID(m), Text: fmt.Sprint(context.Cause(ctx))})
		if m.hears != nil {
			m.hears()
		}
	}
	end := time.Now().Add(time.Duration(script.Millis) * time.Millisecond)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(script.Wait)
		if (script.Wait == "" || err == nil) && !time.Now().Before(end) {
			return nil
		}
		select {
		case <-tick.C:
		case <-cancelled:
			note()
			if !script.Stubborn {
				return errCancelled
			}
			cancelled = nil
		}
	}
}

// locate keeps a place for a session, or for everyone where there are none.
func (s *server) locate(m *message, arguments json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	place := s.values["location"]
	if m.session != nil {
		place = m.session.location
	}
	if m.tool == "set_location" {
		var a struct{ Location string }
		if err := json.Unmarshal(arguments, &a); err != nil {
			s.mu.Unlock()
			return nil, fail(-32602, "%v", err)
		}
		place = a.Location
		s.values["location"] = place
		if m.session != nil {
			m.session.location = place
		}
	}
	s.mu.Unlock()
	s.journal.add(Entry{Event: EventRun, Tool: m.tool, Key: place, Session: sessionID(m)})
	return text(place, false), nil
}

func sessionID(m *message) string {
	if m.session == nil {
		return ""
	}
	return m.session.id
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// structured is a result with the value, and its bytes as text.
func structured(value json.RawMessage) json.RawMessage {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"structuredContent":%s,"x-unknown":[1.0],"_meta":{"com.example/result":1.0}}`,
		encode(string(value)), value)
}

func text(s string, isError bool) json.RawMessage {
	suffix := ""
	if isError {
		suffix = `,"isError":true`
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]%s}`, encode(s), suffix)
}
