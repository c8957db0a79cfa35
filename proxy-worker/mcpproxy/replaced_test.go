package mcpproxy_test

import (
	"bytes"
	"context"
	"io"
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

	for name, retry := range map[string]mcpproxy.RetryPolicy{
		"one attempt":           {InitialInterval: time.Millisecond, MaximumInterval: time.Millisecond, MaximumAttempts: 1},
		"none when unavailable": {NonRetryableErrorTypes: []string{string(contract.CodeUnavailable)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newServer(t, plainTool)
			var logs logBuffer
			p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{Logger: logs.logger(), Policy: mcpproxy.Policy{Retry: &retry}})
			c := serveProxy(t, p, "fake")
			empty := p.Fill()
			began := time.Now()
			handle := c.start("echo", `{"n":1}`, time.Minute)
			require.Eventually(t, func() bool { return strings.Count(logs.String(), "more of them wait") > 2 }, 20*time.Second, 50*time.Millisecond)
			require.GreaterOrEqual(t, time.Since(began), 3*time.Second, "it does not keep Temporal busy")
			require.Zero(t, s.count("tools/call"))
			empty()
			_, err := c.wait(handle)
			require.NoError(t, err)
			require.Equal(t, 1, s.count("tools/call"))
		})
	}
}

// fail answers the messages of a method with status 503, until it is told to stop.
func (s *site) fail(method string, seen *atomic.Int32) (stop func()) {
	working := s.handler.Load()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(method)) {
			seen.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		(*working).ServeHTTP(w, r)
	})
	s.handler.Store(&h)
	return func() { s.handler.Store(working) }
}

// That a policy has no other attempt for an upstream that is away holds of the proxy's
// own attempts.
func TestUnavailableAtOnce(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.put("one", true, atOnce)
	yes := false
	c := serve(t, mcpproxy.HTTP(s.url, mcpproxy.HTTPOptions{}), mcpproxy.Options{Policy: mcpproxy.Policy{
		AtMostOnce: &yes, Retry: &mcpproxy.RetryPolicy{NonRetryableErrorTypes: []string{string(contract.CodeUnavailable)}},
	}})
	var calls atomic.Int32
	s.fail(`"tools/call"`, &calls)
	_, err := c.call("who", `{}`)
	require.ErrorContains(t, err, "503")
	require.EqualValues(t, 1, calls.Load())
}

// A server that fails for a moment is the same one after it: its session stays, and is
// not replaced by one of an older revision.
func TestAServerThatDoesNotSayWhatItIs(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	s.put("one", true, atOnce)
	c := serve(t, mcpproxy.HTTP(s.url, mcpproxy.HTTPOptions{}), mcpproxy.Options{ListRefreshInterval: 200 * time.Millisecond, Policy: once()}).
		with(contract.HeaderCaller, "aaaaaaaaaaaaaaaa")
	var silent, older atomic.Int32
	stop := s.fail(`"server/discover"`, &silent)
	s.fail(`"initialize"`, &older)
	require.Eventually(t, func() bool { return silent.Load() >= 2 }, 20*time.Second, 10*time.Millisecond)
	stop()
	require.Contains(t, c.ok("who", `{}`), "one")
	require.Zero(t, older.Load())
}
