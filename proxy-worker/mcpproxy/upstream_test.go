package mcpproxy_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fakeServer is an MCP server that a test scripts, over raw messages: no SDK
// keeps it from being wrong.
type fakeServer struct {
	// Legacy speaks 2025-11-25 only.
	Legacy bool
	// Capabilities is an object; tools with list changes by default.
	Capabilities string
	// Instructions are a short text by default.
	Instructions string
	// Call answers tools/call and every other method that has no answer here.
	Call func(ctx context.Context, c *fakeConn, method string, params contract.Object) (result string, err *contract.ProtocolError)
	// Fail are the methods that are answered with an error.
	Fail map[string]*contract.ProtocolError
	// Silent are the requests that nobody answers.
	Silent func(c *fakeConn, method string) bool
	// Refuse makes connections fail.
	Refuse func() error

	mu      sync.Mutex
	tools   []string
	pages   int // tools per page; 0: all on one
	ttl     string
	seen    []string // methods
	params  []string // of tools/call
	conns   []*fakeConn
	cancels int
}

// fakeConn is one connection.
type fakeConn struct {
	server *fakeServer
	number int
	out    io.Writer
	mu     sync.Mutex
	close  func()
	calls  map[string]context.CancelFunc
}

const plainTool = `{"name":"echo","description":"Echo.","inputSchema":{"type":"object"}}`

// upstream is what a proxy gets.
func (s *fakeServer) upstream() mcpproxy.Upstream {
	return mcpproxy.Transport(func(context.Context) (mcp.Transport, error) {
		s.mu.Lock()
		refuse := s.Refuse
		s.mu.Unlock()
		if refuse != nil {
			if err := refuse(); err != nil {
				return nil, err
			}
		}
		return s.connect(), nil
	})
}

func (s *fakeServer) connect() mcp.Transport {
	inReader, inWriter := io.Pipe()
	outReader, outWriter := io.Pipe()
	c := &fakeConn{server: s, out: outWriter, calls: map[string]context.CancelFunc{}}
	c.close = func() { _ = inReader.Close(); _ = outWriter.Close() }
	s.mu.Lock()
	s.conns = append(s.conns, c)
	c.number = len(s.conns)
	s.mu.Unlock()
	go c.serve(inReader)
	return &mcp.IOTransport{Reader: outReader, Writer: inWriter}
}

func (c *fakeConn) serve(in io.Reader) {
	defer c.close()
	connected, end := context.WithCancel(context.Background())
	defer end()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		o, err := contract.ParseObject(slices.Clone(lines.Bytes()))
		if err != nil {
			continue
		}
		var method string
		_ = json.Unmarshal(o.Get("method"), &method)
		params, _ := contract.ParseObject(o.Get("params"))
		id := string(o.Get("id"))
		if method == "notifications/cancelled" {
			c.mu.Lock()
			c.server.note("cancelled", "")
			if cancel := c.calls[string(params.Get("requestId"))]; cancel != nil {
				cancel()
			}
			c.mu.Unlock()
			continue
		}
		if id == "" {
			continue
		}
		ctx, cancel := context.WithCancel(connected)
		c.mu.Lock()
		c.calls[id] = cancel
		c.mu.Unlock()
		go func() {
			defer cancel()
			result, failure := c.answer(ctx, method, params)
			if ctx.Err() != nil {
				return
			}
			if failure != nil {
				c.write(`{"jsonrpc":"2.0","id":` + id + `,"error":` + string(failure.JSON()) + `}`)
			} else if result != "" {
				c.write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
			}
		}()
	}
}

func (c *fakeConn) write(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.out, line+"\n")
}

func (s *fakeServer) note(method, params string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, method)
	if method == "tools/call" {
		s.params = append(s.params, params)
	}
	if method == "cancelled" {
		s.cancels++
	}
}

// count tells how often a method was called.
func (s *fakeServer) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.seen {
		if m == method {
			n++
		}
	}
	return n
}

func (s *fakeServer) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.params)
}

func (s *fakeServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// setTools replaces the tools and tells legacy clients so.
func (s *fakeServer) setTools(tools ...string) {
	s.mu.Lock()
	s.tools = tools
	conns := slices.Clone(s.conns)
	s.mu.Unlock()
	for _, c := range conns {
		go c.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
}

func (c *fakeConn) answer(ctx context.Context, method string, params contract.Object) (string, *contract.ProtocolError) {
	s := c.server
	s.note(method, string(params.JSON()))
	if s.Silent != nil && s.Silent(c, method) {
		return "", nil
	}
	if err := s.Fail[method]; err != nil {
		return "", err
	}
	capabilities := s.Capabilities
	if capabilities == "" {
		capabilities = `{"tools":{"listChanged":true}}`
	}
	const info = `{"name":"fake","version":"1"}`
	about := `"capabilities":` + capabilities + `,"serverInfo":` + info + `,"_meta":{"io.modelcontextprotocol/serverInfo":` + info + `},"instructions":` + string(contract.Quote(cmp.Or(s.Instructions, "Be <kind>.")))
	switch method {
	case "server/discover":
		if s.Legacy {
			return "", &contract.ProtocolError{Code: -32601, Message: "Method not found"}
		}
		return `{"resultType":"complete","supportedVersions":["2026-07-28"],` + about + `}`, nil
	case "initialize":
		return `{"protocolVersion":"2025-11-25",` + about + `}`, nil
	case "ping":
		return `{}`, nil
	case "subscriptions/listen":
		<-ctx.Done()
		return "", nil
	case "tools/list":
		return s.list(params), nil
	}
	if s.Call == nil {
		return `{"content":[]}`, nil
	}
	return s.Call(ctx, c, method, params)
}

func (s *fakeServer) list(params contract.Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cursor string
	_ = json.Unmarshal(params.Get("cursor"), &cursor)
	start, _ := strconv.Atoi(cursor)
	end := len(s.tools)
	var page contract.Object
	if s.pages > 0 && start+s.pages < end {
		end = start + s.pages
		page.Set("nextCursor", contract.Quote(strconv.Itoa(end)))
	}
	if s.ttl != "" {
		page.Set("ttlMs", json.RawMessage(s.ttl))
	}
	var raw []json.RawMessage
	for _, t := range s.tools[start:end] {
		raw = append(raw, json.RawMessage(t))
	}
	page.Set("tools", contract.Array(raw...))
	return string(page.JSON())
}

// newServer returns a server with tools.
func newServer(_ *testing.T, tools ...string) *fakeServer { return &fakeServer{tools: tools} }
