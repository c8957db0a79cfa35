package connector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// shelf is a service in this process that has resources, templates and prompts.
// Its lists can change.
type shelf struct {
	resources, prompts atomic.Pointer[string]
}

func newShelf(resources, prompts string) *shelf {
	s := &shelf{}
	s.resources.Store(&resources)
	s.prompts.Store(&prompts)
	return s
}

// start returns the service's name.
func (s *shelf) start(t *testing.T) string {
	t.Helper()
	method := func(name string, f func(in json.RawMessage) (string, error)) nexus.RegisterableOperation {
		if name != contract.OperationListTools {
			name = contract.MethodOperation(name)
		}
		return nexus.NewSyncOperation(name, func(_ context.Context, in json.RawMessage, _ nexus.StartOperationOptions) (json.RawMessage, error) {
			out, err := f(in)
			return json.RawMessage(out), err
		})
	}
	constant := func(result string) func(json.RawMessage) (string, error) {
		return func(json.RawMessage) (string, error) { return result, nil }
	}
	return startNexus(t,
		method(contract.OperationListTools, constant(`{"tools":[],"_meta":{"io.temporal/capabilities":{"resources":{},"prompts":{},"completions":{}}}}`)),
		method("resources/list", func(json.RawMessage) (string, error) { return `{"resources":[` + *s.resources.Load() + `]}`, nil }),
		method("resources/templates/list", constant(`{"resourceTemplates":[{"uriTemplate":"db:///{table}","name":"table"}]}`)),
		method("prompts/list", func(json.RawMessage) (string, error) { return `{"prompts":[` + *s.prompts.Load() + `]}`, nil }),
		method("resources/read", func(in json.RawMessage) (string, error) {
			var params struct{ URI string }
			if err := json.Unmarshal(in, &params); err != nil {
				return "", err
			}
			if !strings.Contains(*s.resources.Load(), `"`+params.URI+`"`) && !strings.HasPrefix(params.URI, "db:///") {
				return "", resultmap.OperationError(resultmap.ProtocolError(&contract.ProtocolError{Code: -32602, Message: "no such thing", Data: json.RawMessage(`{"uri":"?"}`)}))
			}
			return `{"contents":[{"uri":` + string(contract.Quote(params.URI)) + `,"mimeType":"x/y","blob":"AAECAw==","n":9007199254740993,"<x>":1.0}],"later":1e400}`, nil
		}),
		method("prompts/get", func(in json.RawMessage) (string, error) {
			return `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hello <b>"}}],"n":9007199254740993,"params":` + string(in) + `}`, nil
		}),
		method("completion/complete", constant(`{"completion":{"values":["users","orders"],"total":2,"hasMore":false,"x":1.0}}`)),
	)
}

// TestFeatures: resources, templates, prompts and completion of two services and
// one that is away, over both transports at every revision, byte by byte.
func TestFeatures(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	first := newShelf(`{"uri":"doc:///both","name":"both","size":9007199254740993,"x":1.0},{"uri":"doc:///one","name":"one"}`, `{"name":"greet","x":1.0}`).start(t)
	second := newShelf(`{"uri":"doc:///both","name":"both"},{"uri":"doc:///two","name":"two"}`, `{"name":"greet"}`).start(t)
	args := []string{"--service", first, "--service", second, "--service", "absent=no-such-endpoint"}
	http := temporal.StartHTTP(t, args...)
	for _, revision := range harness.Revisions {
		for transport, peer := range map[string]func(t *testing.T) *harness.Peer{
			"http": func(*testing.T) *harness.Peer { return http.Speak(revision) },
			"stdio": func(t *testing.T) *harness.Peer {
				t.Helper()
				return temporal.StartStdio(t, args...).Speak(t, revision)
			},
		} {
			t.Run(transport+" "+revision, func(t *testing.T) {
				t.Parallel()
				features(t, peer(t), second)
			})
		}
	}
}

func features(t *testing.T, p *harness.Peer, second string) {
	t.Helper()
	result := func(method, params string) string {
		t.Helper()
		m := p.Call(t, method, params)
		require.Nil(t, m.Error, "%s", m.Raw)
		return string(m.Result)
	}
	began := time.Now()
	list := result("resources/list", `{}`)
	require.Less(t, time.Since(began), 15*time.Second)
	require.Contains(t, list, `{"uri":"doc:///both","name":"both","size":9007199254740993,"x":1.0}`)
	require.Contains(t, list, `{"uri":"nexus:`+second+`/doc:///both","name":"both"}`)
	require.Contains(t, list, `{"uri":"doc:///two","name":"two"}`)
	require.Contains(t, list, `no-such-endpoint`, "what is missing is said")
	scope := map[bool]string{true: "private", false: "public"}[p.Stdio != nil] // over stdio the caller has a name
	require.Equal(t, p.Modern(), strings.Contains(list, `"ttlMs":1000,"cacheScope":"`+scope+`"`), "%s", list)
	require.Contains(t, result("resources/templates/list", `{}`), `{"uriTemplate":"nexus:`+second+`/db:///{table}","name":"table"}`)
	require.Contains(t, result("prompts/list", `{}`), `{"name":"greet@`+second+`"}`)

	for _, uri := range []string{"doc:///one", "doc:///two", "nexus:" + second + "/doc:///both", "db:///users", "nexus:" + second + "/db:///users"} {
		read := result("resources/read", `{"uri":"`+uri+`"}`)
		require.Contains(t, read, `"contents":[{"uri":"`+uri+`","mimeType":"x/y","blob":"AAECAw==","n":9007199254740993,"`)
		require.Contains(t, read, `"later":1e400`)
	}
	m := p.Call(t, "resources/read", `{"uri":"doc:///none"}`)
	require.NotNil(t, m.Error, "%s", m.Raw)
	require.Equal(t, map[bool]int{true: -32602, false: -32002}[p.Modern()], m.Error.Code)
	require.JSONEq(t, `{"uri":"doc:///none"}`, string(m.Error.Data))

	get := result("prompts/get", `{"name":"greet@`+second+`","arguments":{"who":"me"}}`)
	require.Contains(t, get, `"params":{"name":"greet","arguments":{"who":"me"}`)
	require.Contains(t, get, `"n":9007199254740993`)
	m = p.Call(t, "prompts/get", `{"name":"none"}`)
	require.Equal(t, -32602, m.Error.Code)
	require.Contains(t, result("completion/complete", `{"ref":{"type":"ref/resource","uri":"db:///{table}"},"argument":{"name":"table","value":""}}`),
		`{"values":["users","orders"],"total":2,"hasMore":false,"x":1.0}`)
	m = p.Call(t, "resources/subscribe", `{"uri":"doc:///one"}`)
	require.Equal(t, -32601, m.Error.Code)

	if p.Stdio == nil {
		return // nobody has a list
	}
	harness.Until(t, func() bool {
		reads, err := harness.Shared(t).Client(t).CountNexusOperations(t.Context(), client.CountNexusOperationsOptions{
			Query: fmt.Sprintf(`OperationId STARTS_WITH "mcp-stdio-" AND Operation STARTS_WITH "mcp:" AND Service = %q`, second),
		})
		require.NoError(t, err)
		return reads.Count > 0
	})
	for _, call := range p.Operations(t, `{"limit":100}`) {
		require.NotContains(t, call.Tool, "mcp:", "a read is no call")
	}
}

// TestFeaturesBySDK: a client of the MCP Go SDK finds and reads everything, and is
// told of changes.
func TestFeaturesBySDK(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	for _, revision := range harness.Revisions {
		for _, transport := range []string{"http", "stdio"} {
			if transport == "http" && revision != harness.Revision2026 {
				continue // nothing reaches such a client between its requests
			}
			t.Run(transport+" "+revision, func(t *testing.T) {
				t.Parallel()
				s := newShelf(`{"uri":"doc:///one","name":"one"}`, `{"name":"greet"}`)
				args := []string{"--service", s.start(t), "--refresh-interval", "1s"}
				resources, prompts := make(chan struct{}, 100), make(chan struct{}, 100)
				options := &mcp.ClientOptions{
					ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { resources <- struct{}{} },
					PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { prompts <- struct{}{} },
				}
				var session *mcp.ClientSession
				if transport == "http" {
					session = temporal.StartHTTP(t, args...).Connect(t, revision, options)
				} else {
					session = temporal.ConnectStdio(t, revision, options, args...)
				}
				ctx := t.Context()
				list, err := session.ListResources(ctx, nil)
				require.NoError(t, err)
				require.Len(t, list.Resources, 1)
				read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "doc:///one"})
				require.NoError(t, err)
				require.Equal(t, []byte{0, 1, 2, 3}, read.Contents[0].Blob)
				templates, err := session.ListResourceTemplates(ctx, nil)
				require.NoError(t, err)
				require.Equal(t, "db:///{table}", templates.ResourceTemplates[0].URITemplate)
				got, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"})
				require.NoError(t, err)
				require.Equal(t, "hello <b>", got.Messages[0].Content.(*mcp.TextContent).Text)
				completed, err := session.Complete(ctx, &mcp.CompleteParams{
					Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "u"},
				})
				require.NoError(t, err)
				require.Equal(t, []string{"users", "orders"}, completed.Completion.Values)

				drain(resources)
				drain(prompts)
				s.resources.Store(new(string))
				await(t, resources, "resources")
				s.prompts.Store(new(string))
				await(t, prompts, "prompts")
			})
		}
	}
}

func drain(c chan struct{}) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

func await(t *testing.T, c chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(harness.Patience):
		require.FailNow(t, fmt.Sprintf("the client was not told that the %s have changed", what))
	}
}

// TestCommandToolsCountsTheRest: the command says what a service has beside tools.
func TestCommandToolsCountsTheRest(t *testing.T) {
	t.Parallel()

	service := newShelf(`{"uri":"doc:///one","name":"one"},{"uri":"doc:///two","name":"two"}`, `{"name":"greet"}`).start(t)
	o := harness.Shared(t).Run(t, "", "tools", "--service", service)
	require.Zero(t, o.Code)
	require.Contains(t, o.Stdout, "and 2 resources, 1 resource templates, 1 prompts")
}
