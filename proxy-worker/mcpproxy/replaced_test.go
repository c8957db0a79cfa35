package mcpproxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// site is an address behind which a server can be replaced.
type site struct {
	t       *testing.T
	url     string
	handler atomic.Pointer[http.Handler]
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(ts.Close)
	s.url = ts.URL
	return s
}

// put puts a server there whose tool says who it is, after a wait.
func (s *site) put(name string, stateless bool, wait func()) {
	s.t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{Instructions: "I am " + name})
	server.AddTool(&mcp.Tool{Name: "who", Description: "Says who.", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			wait()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil
		})
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	s.handler.Store(&h)
	s.t.Cleanup(func() {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
}

func atOnce() {}

// once is a policy of one attempt.
func once() mcpproxy.Policy {
	return mcpproxy.Policy{Retry: &mcpproxy.RetryPolicy{MaximumAttempts: 1}}
}

// What an address says of itself today counts, and a call goes to whoever is there.
func TestAServerThatIsReplaced(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.put("one", true, atOnce)
	c := serve(t, mcpproxy.HTTP(s.url, mcpproxy.HTTPOptions{}), mcpproxy.Options{ListRefreshInterval: 200 * time.Millisecond, Policy: once()}).
		with(contract.HeaderCaller, "aaaaaaaaaaaaaaaa")
	require.Contains(t, c.ok("who", `{}`), "one")
	s.put("two", true, atOnce)
	require.Eventually(t, func() bool { return c.manifest().Instructions == "I am two" }, 20*time.Second, 100*time.Millisecond)
	require.Contains(t, c.ok("who", `{}`), "two")
	s.put("three", false, atOnce) // of another revision
	require.Contains(t, c.ok("who", `{}`), "three")
	require.Eventually(t, func() bool { return c.manifest().Instructions == "I am three" }, 20*time.Second, 100*time.Millisecond)
}

// A server that starts anew has forgotten every session, of which a caller may have
// several; a call finds that out by one of them.
func TestSessionsThatAreAllForgotten(t *testing.T) {
	t.Parallel()

	const calls = 3
	var inside sync.WaitGroup
	inside.Add(calls)
	s := newSite(t)
	s.put("one", false, func() { inside.Done(); inside.Wait() })
	c := serve(t, mcpproxy.HTTP(s.url, mcpproxy.HTTPOptions{}), mcpproxy.Options{ProtocolVersion: "2025-11-25", Policy: once()}).
		with(contract.HeaderCaller, "aaaaaaaaaaaaaaaa")
	var callers sync.WaitGroup
	for range calls {
		callers.Go(func() {
			output, err := c.call("who", `{}`)
			if err != nil || !strings.Contains(output, "one") {
				t.Error(output, err)
			}
		})
	}
	callers.Wait()
	s.put("two", false, atOnce)
	for range calls + 1 {
		require.Contains(t, c.ok("who", `{}`), "two")
	}
}

// A call for which there is no place waits, however few attempts it has.
func TestACallWaitsForAPlace(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	var logs logBuffer
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{Logger: logs.logger(), Policy: mcpproxy.Policy{
		Retry: &mcpproxy.RetryPolicy{InitialInterval: 50 * time.Millisecond, MaximumInterval: 100 * time.Millisecond, MaximumAttempts: 1},
	}})
	c := serveProxy(t, p, "fake")
	empty := p.Fill()
	handle := c.start("echo", `{"n":1}`, time.Minute)
	require.Eventually(t, func() bool { return strings.Count(logs.String(), "more of them wait") > 3 }, 20*time.Second, 50*time.Millisecond)
	require.Zero(t, s.count("tools/call"))
	empty()
	_, err := c.wait(handle)
	require.NoError(t, err)
	require.Equal(t, 1, s.count("tools/call"))
}
