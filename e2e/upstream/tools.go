package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const anyObject = `"inputSchema":{"type":"object"}`

// Scripted are the tools that run a [Script], by what their annotations say.
const (
	ToolPlain    = "plain"    // no annotations
	ToolRead     = "read"     // readOnlyHint
	ToolPut      = "put"      // idempotentHint
	ToolDestroy  = "destroy"  // destructiveHint
	ToolHarmless = "harmless" // neither read-only nor idempotent, said so
)

// tools are in an order that is not that of the alphabet.
var tools = []string{
	`{"name":"echo","title":"Echo","description":"Returns its arguments. <b>&\u2028","x-unknown":{"z":1.0,"a":9007199254740993,"m":[1e400,-0]},` +
		`"inputSchema":{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"number","maximum":9007199254740993}},` +
		`"$defs":{"node":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"},{"const":9007199254740993}]}}},` +
		`"annotations":{"title":"Echo!","readOnlyHint":true,"x-hint":1.0},"icons":[{"src":"https://example.com/i.png"}],"_meta":{"com.example/x":[1.50]}}`,
	`{"name":"` + ToolPlain + `","description":"Runs a script.",` + anyObject + `}`,
	`{"name":"` + ToolRead + `","description":"Runs a script.",` + anyObject + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"` + ToolPut + `","description":"Runs a script.",` + anyObject + `,"annotations":{"idempotentHint":true}}`,
	`{"name":"` + ToolDestroy + `","description":"Runs a script.",` + anyObject + `,"annotations":{"destructiveHint":true}}`,
	`{"name":"` + ToolHarmless + `","description":"Runs a script.",` + anyObject + `,"annotations":{"readOnlyHint":false,"idempotentHint":false,"destructiveHint":false}}`,
	`{"name":"reply","description":"Returns the result that it is given.",` + anyObject + `}`,
	`{"name":"typed","description":"Has an output schema, and fails.",` + anyObject + `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`,
	`{"name":"params","description":"Returns its params.",` + anyObject + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"headers","description":"Returns the HTTP headers.",` + anyObject + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"env","description":"Returns environment, arguments and directory.",` + anyObject + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"mirror","description":"Has a parameter in a header.","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`,
	`{"name":"set_location","description":"Remembers a place.",` + anyObject + `}`,
	`{"name":"get_location","description":"Tells the place.",` + anyObject + `,"annotations":{"readOnlyHint":true}}`,
	`{"name":"add_tool","description":"Adds a tool.",` + anyObject + `}`,
	`{"name":"ask","description":"Asks for input.",` + anyObject + `}`,
}

// odd are the names that the protocol allows, or that nobody keeps a server from.
var odd = []string{"a.b", "user/update", "ünï", "with space", "list_tools", "mcp:calls", "9lives", "", strings.Repeat("n", 128), "A.b", "a_b"}

func toolsPath(dir string) string { return filepath.Join(dir, "tools.json") }

// WriteTools replaces the further tools of a directory's servers, JSON objects.
func WriteTools(dir string, tools ...string) error {
	next := toolsPath(dir) + ".next"
	if err := os.WriteFile(next, []byte("["+strings.Join(tools, ",")+"]"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, toolsPath(dir))
}

func (s *server) added() (list []json.RawMessage) {
	data, err := os.ReadFile(toolsPath(s.Dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		panic(err)
	}
	return list
}

func (s *server) all() []string {
	list := append([]string(nil), tools...)
	if s.Odd {
		for _, name := range odd {
			quoted, err := json.Marshal(name)
			if err != nil {
				panic(err)
			}
			list = append(list, fmt.Sprintf(`{"name":%s,"description":"Is named %%.",%s}`, quoted, anyObject))
		}
	}
	for i := range s.Generated {
		list = append(list, fmt.Sprintf(`{"name":"tool_%03d","description":"One of many.",%s}`, i, anyObject))
	}
	for _, tool := range s.added() {
		list = append(list, string(tool))
	}
	return list
}

func (s *server) listTools(m *message) (json.RawMessage, error) {
	return s.page(m, "tools", s.all())
}

// page answers a list method. A cursor is the number of the first item.
func (s *server) page(m *message, kind string, items []string) (json.RawMessage, error) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if m.Params != nil {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, fail(-32602, "%v", err)
		}
	}
	from := 0
	if p.Cursor != nil {
		n, err := strconv.Atoi(strings.TrimPrefix(*p.Cursor, "at "))
		if err != nil || n < 0 {
			return nil, fail(-32602, "Invalid cursor %q", *p.Cursor)
		}
		from = n
	}
	to := min(from+s.Page, len(items))
	next := ""
	if to < len(items) {
		next = fmt.Sprintf(`,"nextCursor":"at %d"`, to)
	}
	if _, ok := s.fault(FaultRepeatCursor, m.Method, ""); ok {
		next = `,"nextCursor":"at 0"`
	}
	if _, ok := s.fault(FaultEndlessPages, m.Method, ""); ok {
		next = fmt.Sprintf(`,"nextCursor":"at %d"`, from+1000)
	}
	cached := ""
	if m.modern() {
		cached = `,"ttlMs":0,"cacheScope":"private"`
	}
	return fmt.Appendf(nil, `{"%s":[%s]%s%s,"x-page":1.0}`, kind, strings.Join(items[min(from, to):to], ","), next, cached), nil
}

// addTool adds a tool to those of the directory.
func (s *server) addTool(name string) error {
	return locked(s.Dir, func() error {
		var list []string
		for _, tool := range s.added() {
			list = append(list, string(tool))
		}
		return WriteTools(s.Dir, append(list, fmt.Sprintf(`{"name":%q,"description":"Was added.",%s}`, name, anyObject))...)
	})
}

// watchTools tells every client when tools.json has changed.
func (s *server) watchTools() {
	stamp := func() string {
		info, err := os.Stat(toolsPath(s.Dir))
		if err != nil {
			return ""
		}
		return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	}
	last := stamp()
	for range time.Tick(20 * time.Millisecond) {
		if now := stamp(); now != last {
			last = now
			s.changed()
		}
	}
}
