package harness

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// The revisions of the protocol that the tests speak.
const (
	Revision2025June     = "2025-06-18"
	Revision2025November = "2025-11-25"
	Revision2026         = "2026-07-28"
)

// Revisions are all of them.
var Revisions = []string{Revision2025June, Revision2025November, Revision2026}

// Peer is an MCP client that sends bytes, over one transport at one revision.
type Peer struct {
	Revision string
	// Stdio or HTTP is nil.
	Stdio *Stdio
	HTTP  *HTTP
	// Capabilities are what a 2026-07-28 client declares, a JSON object.
	Capabilities string
	// Headers go with each HTTP request.
	Headers map[string]string

	ids atomic.Int64
}

// Modern reports whether the revision has no sessions.
func (p *Peer) Modern() bool { return p.Revision >= Revision2026 }

// Speak returns a peer of the connector. It makes the handshake where the
// revision has one.
func (c *Stdio) Speak(tb testing.TB, revision string) *Peer {
	tb.Helper()
	p := &Peer{Revision: revision, Stdio: c, Capabilities: "{}"}
	if !p.Modern() {
		c.Initialize(tb, revision)
	}
	return p
}

// Speak returns a peer of the connector.
func (h *HTTP) Speak(revision string) *Peer {
	return &Peer{Revision: revision, HTTP: h, Capabilities: "{}"}
}

// Pending is a request under way.
type Pending struct {
	*Inbox

	ID string
	// Exchange is nil over stdio.
	Exchange *Exchange
}

// Answer waits for the answer.
func (p *Pending) Answer(tb testing.TB) Message {
	tb.Helper()
	if p.Exchange != nil && p.Exchange.Status != http.StatusOK {
		p.AwaitEnd(tb)
		require.NotEmpty(tb, p.All(), "status %d: %s", p.Exchange.Status, p.Exchange.Body())
	}
	return p.Await(tb, "answer to request "+p.ID, IsAnswer(p.ID))
}

// Request sends a request. Params is a JSON object without _meta, meta the
// members of its _meta.
func (p *Peer) Request(tb testing.TB, method, params string, meta ...string) *Pending {
	tb.Helper()
	params = p.params(params, meta)
	if p.Stdio != nil {
		return &Pending{Inbox: p.Stdio.Inbox, ID: p.Stdio.Request(tb, method, params)}
	}
	id, body, headers := p.post(method, params)
	e := p.HTTP.Post(tb, body, headers)
	return &Pending{Inbox: e.Inbox, ID: id, Exchange: e}
}

// TryRequest is [Peer.Request] for a connector that may be gone.
func (p *Peer) TryRequest(method, params string, meta ...string) (*Pending, error) {
	params = p.params(params, meta)
	if p.Stdio != nil {
		id := fmt.Sprint(p.Stdio.ids.Add(1))
		_, err := fmt.Fprintf(p.Stdio.Stdin, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params)
		return &Pending{Inbox: p.Stdio.Inbox, ID: id}, err
	}
	id, body, headers := p.post(method, params)
	e, err := p.HTTP.TryPost(body, headers)
	if err != nil {
		return nil, err
	}
	return &Pending{Inbox: e.Inbox, ID: id, Exchange: e}, nil
}

func (p *Peer) params(params string, meta []string) string {
	if p.Modern() {
		meta = append([]string{
			fmt.Sprintf(`"io.modelcontextprotocol/protocolVersion":%q`, p.Revision),
			`"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"}`,
			`"io.modelcontextprotocol/clientCapabilities":` + p.Capabilities,
		}, meta...)
	}
	if len(meta) == 0 {
		return params
	}
	comma := ","
	if strings.TrimSpace(params) == "{}" {
		comma = ""
	}
	return strings.TrimSuffix(strings.TrimSpace(params), "}") + comma + `"_meta":{` + strings.Join(meta, ",") + "}}"
}

// nameMember is the member of the params that goes in the Mcp-Name header too.
var nameMember = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
	"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

func (p *Peer) post(method, params string) (id, body string, headers map[string]string) {
	id = fmt.Sprint(p.ids.Add(1))
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	headers = map[string]string{"MCP-Protocol-Version": p.Revision}
	if p.Modern() {
		headers["Mcp-Method"] = method
		if key := nameMember[method]; key != "" {
			_, rest, _ := strings.Cut(params, `"`+key+`":"`)
			headers["Mcp-Name"], _, _ = strings.Cut(rest, `"`)
		}
	}
	maps.Copy(headers, p.Headers)
	return id, body, headers
}

// Call sends a request and waits for the answer.
func (p *Peer) Call(tb testing.TB, method, params string, meta ...string) Message {
	tb.Helper()
	return p.Request(tb, method, params, meta...).Answer(tb)
}

// StartTool sends tools/call. Args is a JSON object, or empty.
func (p *Peer) StartTool(tb testing.TB, name, args string, meta ...string) *Pending {
	tb.Helper()
	return p.Request(tb, "tools/call", ToolParams(name, args), meta...)
}

// ToolParams are the params of tools/call.
func ToolParams(name, args string) string {
	if args == "" {
		return fmt.Sprintf(`{"name":%q}`, name)
	}
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)
}

// Tool calls a tool and waits for its result.
func (p *Peer) Tool(tb testing.TB, name, args string, meta ...string) ToolResult {
	tb.Helper()
	return p.StartTool(tb, name, args, meta...).Answer(tb).ToolResult(tb)
}

// ToolError calls a tool and waits for a JSON-RPC error.
func (p *Peer) ToolError(tb testing.TB, name, args string, meta ...string) *RPCError {
	tb.Helper()
	m := p.StartTool(tb, name, args, meta...).Answer(tb)
	require.NotNil(tb, m.Error, "%s", m.Raw)
	return m.Error
}

// Operations lists the caller's calls by the connector's own tool.
func (p *Peer) Operations(tb testing.TB, args string) []Operation {
	tb.Helper()
	r := p.Tool(tb, "list_operations", args)
	require.False(tb, r.IsError, "%s", r.Raw)
	var list struct{ Operations []Operation }
	mustDecode(tb, r.Structured, &list)
	return list.Operations
}

// Operation is one call of list_operations.
type Operation struct {
	OperationID string `json:"operation_id"`
	Tool        string `json:"tool"`
	Service     string `json:"service"`
	Arguments   string `json:"arguments"`
	Status      string `json:"status"`
	Started     string `json:"started"`
	Closed      string `json:"closed"`
}

// HTTPRequest is a request as it goes over the wire, its headers and its body, for a
// client that sends it by itself.
func (p *Peer) HTTPRequest(method, params string, meta ...string) (head, body string) {
	_, body, headers := p.post(method, p.params(params, meta))
	var b strings.Builder
	fmt.Fprintf(&b, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", len(body))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(&b, "%s: %s\r\n", name, headers[name])
	}
	return b.String() + "\r\n", body
}
