package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
)

const everything = `{"tools":[],"_meta":{"io.temporal/capabilities":{"resources":{},"prompts":{},"completions":{}}}}`

// shelf is a service with resources, templates and prompts. What it is asked for
// shows in what it answers.
type shelf struct {
	resources, templates, prompts []string // elements of the lists
	has                           []string // URIs that it reads
}

func (s shelf) serve(temporal *temporaltest.Frontend, service, manifest string) {
	list := func(member string, elements []string) temporaltest.Handler {
		// One element a page.
		return func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
			var params struct{ Cursor string }
			if err := json.Unmarshal(input, &params); err != nil {
				return nil, err
			}
			at, next := len(params.Cursor), ""
			if at >= len(elements) {
				return json.RawMessage(`{"` + member + `":[]}`), nil
			}
			if at+1 < len(elements) {
				next = `,"nextCursor":"` + strings.Repeat("x", at+1) + `"`
			}
			return json.RawMessage(`{"` + member + `":[` + elements[at] + `]` + next + `}`), nil
		}
	}
	echo := func(result string) temporaltest.Handler {
		return func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(strings.ReplaceAll(result, "INPUT", string(input))), nil
		}
	}
	temporal.Serve(service, manifest, map[string]temporaltest.Handler{
		contract.MethodOperation("resources/list"):           list("resources", s.resources),
		contract.MethodOperation("resources/templates/list"): list("resourceTemplates", s.templates),
		contract.MethodOperation("prompts/list"):             list("prompts", s.prompts),
		contract.MethodOperation("prompts/get"):              echo(`{"messages":[],"of":"` + service + `","n":1.0,"input":INPUT}`),
		contract.MethodOperation("completion/complete"):      echo(`{"completion":{"values":["` + service + `"]},"input":INPUT}`),
		contract.MethodOperation("resources/read"): func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
			var params struct{ URI string }
			if err := json.Unmarshal(input, &params); err != nil {
				return nil, err
			}
			if !slices.Contains(s.has, params.URI) {
				return nil, resultmap.ApplicationError(resultmap.ProtocolError(&contract.ProtocolError{Code: -32002, Message: "gone"}))
			}
			uri := string(contract.Quote(params.URI))
			return json.RawMessage(`{"contents":[{"uri":` + uri + `,"text":"of ` + service + `","z":9007199254740993},{"uri":"x:child","blob":"AAE="}],` +
				`"odd":1.0,"input":` + string(input) + `}`), nil
		},
	})
}

// rpc is one request and its answer, at a revision; modern ones have their _meta.
func (p *pipe) rpc(version, method, params string) answer {
	p.t.Helper()
	return decodeAnswer(p.t, p.raw(version, method, params))
}

func decodeAnswer(t *testing.T, line string) answer {
	t.Helper()
	var a answer
	require.NoError(t, json.Unmarshal([]byte(line), &a))
	return a
}

func (p *pipe) raw(version, method, params string) string {
	p.t.Helper()
	if version == "2026-07-28" {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"com.example/x":1.0,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params))
	return p.line()
}

func keys(t *testing.T, list json.RawMessage, member, key string) []string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(list, &members))
	var items []map[string]any
	require.NoError(t, json.Unmarshal(members[member], &items))
	all := []string{}
	for _, item := range items {
		all = append(all, item[key].(string))
	}
	return all
}

func twoShelves(t *testing.T, options mcpserver.Options) (*mcpserver.Server, *temporaltest.Frontend) {
	t.Helper()
	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	shelf{
		resources: []string{`{"uri":"file:///one","name":"one","size":9007199254740993,"x":1.0}`, `{"uri":"file:///both","name":"both"}`},
		templates: []string{`{"uriTemplate":"a:///{id}","name":"t"}`, `{"uriTemplate":"both:///{id}","name":"t"}`},
		prompts:   []string{`{"name":"greet","arguments":[]}`, `{"name":"both"}`},
		has:       []string{"file:///one", "file:///both", "a:///7", "both:///7"},
	}.serve(temporal, "a", everything)
	shelf{
		resources: []string{`{"uri":"file:///both","name":"both","y":2.0}`, `{"uri":"file:///two","name":"two"}`, `{"name":"nameless"}`},
		templates: []string{`{"uriTemplate":"both:///{id}","name":"t"}`},
		prompts:   []string{`{"name":"both","z":1.0}`},
		has:       []string{"file:///both", "file:///two", "both:///7", "both:///8", "hidden:///x"},
	}.serve(temporal, "b", everything)
	shelf{prompts: []string{`{"name":"greet"}`}}.serve(temporal, "c", `{"tools":[],"_meta":{"io.temporal/capabilities":{"prompts":{}}}}`)
	options.Services = []catalog.Service{{Name: "a"}, {Name: "b"}, {Name: "c", Prefix: "sea"}}
	return serve(t, temporal, options), temporal
}

var bothRevisions = []string{"2025-11-25", "2026-07-28"}

func speak(t *testing.T, server *mcpserver.Server, version string) *pipe {
	t.Helper()
	p := stdio(t, server, time.Second)
	if version != "2026-07-28" {
		p.send(strings.Replace(initialize, "2025-06-18", version, 1))
		require.Equal(t, "init", p.read().ID)
		p.send(initialized)
	}
	return p
}

// The lists of all services are one list each, with the services' own bytes. A
// name or URI that several have is the first one's, the others' name the service.
func TestListsOfAllServices(t *testing.T) {
	t.Parallel()

	server, _ := twoShelves(t, mcpserver.Options{})
	for _, version := range bothRevisions {
		p := speak(t, server, version)
		list := p.rpc(version, "resources/list", "").Result
		require.Equal(t, []string{"file:///both", "file:///one", "file:///two", "nexus:b/file:///both"}, keys(t, list, "resources", "uri"))
		require.Contains(t, string(list), `{"uri":"file:///one","name":"one","size":9007199254740993,"x":1.0}`)
		require.Contains(t, string(list), `{"uri":"nexus:b/file:///both","name":"both","y":2.0}`)
		require.Contains(t, string(list), `resources[2] is left out: uri: missing`)
		require.Equal(t, version == "2026-07-28", strings.Contains(string(list), `"ttlMs":30000,"cacheScope":"public"`), "%s", list)
		list = p.rpc(version, "resources/templates/list", "").Result
		require.Equal(t, []string{"a:///{id}", "both:///{id}", "nexus:b/both:///{id}"}, keys(t, list, "resourceTemplates", "uriTemplate"))
		list = p.rpc(version, "prompts/list", "").Result
		require.Equal(t, []string{"both", "both@b", "greet", "sea_greet"}, keys(t, list, "prompts", "name"))
		for _, method := range []string{"resources/list", "prompts/list"} {
			require.Equal(t, -32602, p.rpc(version, method, `"cursor":"?"`).Error.Code)
		}
	}
}

// What is read comes from the service that has it, byte by byte, under the URI
// that was asked for.
func TestReadingResources(t *testing.T) {
	t.Parallel()

	server, temporal := twoShelves(t, mcpserver.Options{})
	for _, version := range bothRevisions {
		p := speak(t, server, version)
		for asked, want := range map[string]struct{ service, uri, child string }{
			"file:///one":          {"a", "file:///one", "x:child"},
			"file:///both":         {"a", "file:///both", "x:child"},
			"nexus:b/file:///both": {"b", "file:///both", "nexus:b/x:child"},
			"nexus:b/file:///two":  {"b", "file:///two", "nexus:b/x:child"}, // not listed so, and yet it says what it means
			"a:///7":               {"a", "a:///7", "x:child"},
			"both:///7":            {"a", "both:///7", "x:child"},
			"both:///8":            {"b", "both:///8", "x:child"}, // the first with the template does not have it
			"nexus:b/both:///7":    {"b", "both:///7", "nexus:b/x:child"},
			"hidden:///x":          {"b", "hidden:///x", "x:child"},
		} {
			line := p.raw(version, "resources/read", `"uri":"`+asked+`","other":[1.0]`)
			require.Contains(t, line, `"contents":[{"uri":"`+asked+`","text":"of `+want.service+`","z":9007199254740993},{"uri":"`+want.child+`","blob":"AAE="}],"odd":1.0,`)
			meta := ""
			if version == "2026-07-28" {
				meta = `,"_meta":{"com.example/x":1.0}`
				require.Contains(t, line, `"ttlMs":0,"cacheScope":"private","resultType":"complete"`)
			}
			require.Contains(t, line, `"input":{"uri":"`+want.uri+`","other":[1.0]`+meta+`}`)
		}
		for _, gone := range []string{"file:///none", "nexus:b/file:///none", "nexus:nobody/file:///one", "a:///8"} {
			line := p.raw(version, "resources/read", `"uri":"`+gone+`"`)
			code := map[string]string{"2025-11-25": "-32002", "2026-07-28": "-32602"}[version]
			require.Contains(t, line, `"error":{"code":`+code+`,`, gone)
			require.Contains(t, line, `"data":{"uri":"`+gone+`"}`)
		}
	}
	for _, op := range append(temporal.Operations("a"), temporal.Operations("b")...) {
		if op.GetOperation() == contract.MethodOperation("resources/read") {
			require.Regexp(t, `^mcp-stdio-stateful-`, op.GetOperationId())
			require.NotZero(t, op.GetScheduleToCloseTimeout().AsDuration())
		}
	}
}

// What the client can be asked for goes to the service, and nothing else of its
// connection.
func TestServicesKnowWhatTheClientCanBeAsked(t *testing.T) {
	t.Parallel()

	server, _ := twoShelves(t, mcpserver.Options{})
	p := speak(t, server, "2026-07-28")
	p.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"greet","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{"x":1.0}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`)
	require.Contains(t, p.line(), `"input":{"name":"greet","_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{"x":1.0}}}}}`)
}

func TestPromptsAndCompletions(t *testing.T) {
	t.Parallel()

	server, _ := twoShelves(t, mcpserver.Options{})
	for _, version := range bothRevisions {
		p := speak(t, server, version)
		for asked, want := range map[string][2]string{"greet": {"a", "greet"}, "sea_greet": {"c", "greet"}, "both": {"a", "both"}, "both@b": {"b", "both"}} {
			line := p.raw(version, "prompts/get", `"name":"`+asked+`","arguments":{"a":"1"}`)
			require.Contains(t, line, `"of":"`+want[0]+`","n":1.0,"input":{"name":"`+want[1]+`","arguments":{"a":"1"}`)
		}
		a := p.rpc(version, "prompts/get", `"name":"none"`)
		require.Equal(t, -32602, a.Error.Code)
		require.Contains(t, a.Error.Message, `Unknown prompt: "none"`)
		for ref, want := range map[string]string{
			`{"type":"ref/prompt","name":"both@b","title":"x"}`:    `{"values":["b"]},"input":{"ref":{"type":"ref/prompt","name":"both","title":"x"}`,
			`{"type":"ref/prompt","name":"greet"}`:                 `{"values":["a"]},"input":{"ref":{"type":"ref/prompt","name":"greet"}`,
			`{"type":"ref/prompt","name":"sea_greet"}`:             `{"values":[]}`, // its service completes nothing
			`{"type":"ref/resource","uri":"a:///{id}"}`:            `{"values":["a"]},"input":{"ref":{"type":"ref/resource","uri":"a:///{id}"}`,
			`{"type":"ref/resource","uri":"nexus:b/both:///{id}"}`: `{"values":["b"]},"input":{"ref":{"type":"ref/resource","uri":"both:///{id}"}`,
			`{"type":"ref/resource","uri":"nexus:b/file:///two"}`:  `{"values":["b"]},"input":{"ref":{"type":"ref/resource","uri":"file:///two"}`,
		} {
			require.Contains(t, p.raw(version, "completion/complete", `"ref":`+ref+`,"argument":{"name":"id","value":"1"}`), `"completion":`+want)
		}
		require.Equal(t, -32602, p.rpc(version, "completion/complete", `"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"id","value":"1"}`).Error.Code)
		require.Equal(t, -32601, p.rpc("2025-11-25", "resources/subscribe", `"uri":"file:///one"`).Error.Code)
	}
}

// Capabilities are those that some service has; a service that never answered may
// have any.
func TestCapabilitiesOfTheServices(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	shelf{}.serve(temporal, "c", `{"tools":[],"_meta":{"io.temporal/capabilities":{"prompts":{}}}}`)
	shelf{}.serve(temporal, "plain", `{"tools":[]}`)
	for want, services := range map[string][]catalog.Service{
		`{"tools":{"listChanged":true}}`:                                {{Name: "plain"}},
		`{"prompts":{"listChanged":true},"tools":{"listChanged":true}}`: {{Name: "plain"}, {Name: "c"}},
		`{"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":true}}`: {{Name: "plain"}, {Name: "away"}},
	} {
		server := serve(t, temporal, mcpserver.Options{Services: services, DisableTasks: true, DiscoveryTimeout: 2 * time.Second})
		capabilities := func(a answer) string {
			var result struct{ Capabilities json.RawMessage }
			require.NoError(t, json.Unmarshal(a.Result, &result))
			return string(result.Capabilities)
		}
		p := stdio(t, server, time.Second)
		require.JSONEq(t, want, capabilities(p.rpc("2026-07-28", "server/discover", "")))
		p = stdio(t, server, time.Second)
		p.send(initialize)
		require.JSONEq(t, want, capabilities(p.read()))
		p.send(initialized)
		a := p.rpc("", "resources/list", "")
		if len(services) == 2 && services[1].Name == "away" {
			require.Nil(t, a.Error)
			require.Contains(t, string(a.Result), `"resources":[],"_meta":{"io.temporal/warnings":["service \"away\"`)
		} else {
			require.Equal(t, -32601, a.Error.Code)
		}
	}
}

// A resource that nobody has may be that of a service which has not answered. What a
// service says of its own has nothing to do with that.
func TestNotFoundWhileAServiceIsAway(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	shelf{resources: []string{`{"uri":"file:///one","name":"one"}`}}.serve(temporal, "a", everything)
	shelf{}.serve(temporal, "plain", `{"tools":[]}`)
	for _, there := range []string{"a", "plain"} {
		server := serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: there}, {Name: "away"}}, DiscoveryTimeout: 500 * time.Millisecond})
		for _, version := range bothRevisions {
			p := speak(t, server, version)
			a := p.rpc(version, "resources/read", `"uri":"x:1"`)
			require.NotNil(t, a.Error)
			require.Equal(t, map[string]int{"2025-11-25": -32002, "2026-07-28": -32602}[version], a.Error.Code)
			require.Contains(t, a.Error.Message, `. service "away" (endpoint "away") does not answer: `)
			if there == "plain" {
				a = p.rpc(version, "completion/complete", `"ref":{"type":"ref/resource","uri":"x:1"},"argument":{"name":"id","value":"1"}`)
				require.NotNil(t, a.Error)
				require.Contains(t, a.Error.Message, `"x:1". service "away" (endpoint "away") does not answer: `)
				continue
			}
			for _, uri := range []string{"file:///one", "nexus:a/file:///one"} {
				require.Contains(t, p.raw(version, "resources/read", `"uri":"`+uri+`"`), `,"message":"gone","data":{"uri":"`+uri+`"}}`)
			}
		}
		temporal.Handle("a", contract.MethodOperation("resources/read"), func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, resultmap.ApplicationError(resultmap.ProtocolError(&contract.ProtocolError{Code: -32602, Message: "depth: 7 is too much", Data: json.RawMessage(`{"max":1.0}`)}))
		})
		if there == "a" {
			require.Contains(t, speak(t, server, "2025-11-25").raw("", "resources/read", `"uri":"x:1"`),
				`"error":{"code":-32602,"message":"depth: 7 is too much","data":{"max":1.0}}`, "other params are what is wrong")
		}
	}
}

// A list that does not come is a warning: it delays and hides nothing else, and
// what it had before stays served.
func TestAListThatDoesNotCome(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	s := shelf{resources: []string{`{"uri":"x:1","name":"1"}`}, prompts: []string{`{"name":"p"}`}}
	s.serve(temporal, "a", everything)
	silence := make(chan struct{})
	temporal.Handle("a", contract.MethodOperation("resources/list"), func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		select {
		case <-silence:
			return json.RawMessage(`{"resources":[{"uri":"x:2","name":"2"}]}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	server := serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: "a"}}, DiscoveryTimeout: 2 * time.Second})
	p := speak(t, server, "2025-11-25")
	require.Equal(t, []string{"p"}, keys(t, p.rpc("", "prompts/list", "").Result, "prompts", "name"))
	list := p.rpc("", "resources/list", "").Result
	require.Empty(t, keys(t, list, "resources", "uri"))
	require.Contains(t, string(list), "resources/list does not come")
	close(silence)
	server.Catalog().Refresh(t.Context())
	require.Equal(t, []string{"x:2"}, keys(t, p.rpc("", "resources/list", "").Result, "resources", "uri"))
	temporal.Handle("a", contract.MethodOperation("resources/list"), func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"resources":7}`), nil
	})
	server.Catalog().Refresh(t.Context())
	list = p.rpc("", "resources/list", "").Result
	require.Equal(t, []string{"x:2"}, keys(t, list, "resources", "uri"), "what it had before")
	require.Contains(t, string(list), "a number, want an array")
}

// Clients are told which list has changed.
func TestListsThatChange(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	s := shelf{prompts: []string{`{"name":"p"}`}}
	s.serve(temporal, "a", everything)
	server := serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: "a"}}})
	p := speak(t, server, "2025-11-25")
	p.rpc("", "prompts/list", "")
	changed := func() string {
		for {
			line, err := p.lines.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, "list_changed") {
				return line
			}
		}
	}
	s.resources = []string{`{"uri":"x:1","name":"1"}`}
	s.serve(temporal, "a", everything)
	server.Catalog().Refresh(t.Context())
	require.Contains(t, changed(), "notifications/resources/list_changed")
	s.prompts = nil
	s.serve(temporal, "a", everything)
	server.Catalog().Refresh(t.Context())
	require.Contains(t, changed(), "notifications/prompts/list_changed")
}

// Nobody keeps an answer for a reader that is gone: a service that is too slow is
// an error, and its operation is cancelled.
func TestASlowRead(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	shelf{resources: []string{`{"uri":"x:1","name":"1"}`}}.serve(temporal, "a", everything)
	cancelled := make(chan struct{})
	temporal.Handle("a", contract.MethodOperation("resources/read"), func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	temporal.Handle("a", contract.MethodOperation("prompts/get"), func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`[]`), nil
	})
	server := serve(t, temporal, mcpserver.Options{Services: []catalog.Service{{Name: "a"}}, WaitBudget: time.Second})
	w := deliver(t, server, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:1"}}`)
	require.Contains(t, w.Body.String(), `"code":-32603`)
	require.Contains(t, w.Body.String(), `did not answer resources/read within 1s`)
	<-cancelled
	temporal.Handle("a", contract.MethodOperation("resources/read"), func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`[]`), nil
	})
	w = deliver(t, server, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:1"}}`)
	require.Contains(t, w.Body.String(), "something that is no result: an array, want an object")
}
