package mcpproxy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

func TestAProxyOfTheWorkerAloneIsRefused(t *testing.T) {
	t.Parallel()

	p := newProxy(t, "alone", newServer(t, plainTool).upstream(), mcpproxy.Options{})
	w := worker.New(dial(t), newEndpoint(t), worker.Options{Plugins: []worker.Plugin{p}})
	require.ErrorContains(t, w.Start(), "mcpproxy: alone: the proxy is a plugin of the Worker only: it must be among the plugins of the Worker's client")

	t.Run("also where another client has it", func(t *testing.T) {
		dial(t, p)
		w := worker.New(dial(t), newEndpoint(t), worker.Options{Plugins: []worker.Plugin{p}})
		require.ErrorContains(t, w.Start(), "plugin of the Worker only")
	})
}

func TestAProxyOnClientAndWorkerServes(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	p := newProxy(t, "both", s.upstream(), mcpproxy.Options{})
	endpoint := newEndpoint(t)
	w := worker.New(dial(t, p, p), endpoint, worker.Options{Plugins: []worker.Plugin{p}})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	c := caller{t: t, endpoint: endpoint, service: "both"}
	c.ok("echo", `{}`)
	require.Contains(t, c.fails(contract.MethodOperation("tools/call"), `{}`).Message, "a tool is called by its own name")
}

func TestAClientFromAnother(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	p := newProxy(t, "child", s.upstream(), mcpproxy.Options{})
	_, err := client.NewClientFromExistingWithContext(t.Context(), dial(t), client.Options{Logger: quiet(), Plugins: []client.Plugin{p}})
	require.ErrorContains(t, err, "mcpproxy: child: a client made from an existing one uses its connection")

	c, err := client.NewClientFromExistingWithContext(t.Context(), dial(t, p), client.Options{Logger: quiet(), Plugins: []client.Plugin{p}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	endpoint := newEndpoint(t)
	w := worker.New(c, endpoint, worker.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	caller{t: t, endpoint: endpoint, service: "child"}.ok("echo", `{}`)
}

func TestTwoProxiesOnOneWorker(t *testing.T) {
	t.Parallel()

	a, b := newServer(t, plainTool), newServer(t, plainTool)
	endpoint := newEndpoint(t)
	w := worker.New(dial(t, newProxy(t, "a", a.upstream(), mcpproxy.Options{}), newProxy(t, "b", b.upstream(), mcpproxy.Options{})), endpoint, worker.Options{})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	caller{t: t, endpoint: endpoint, service: "b"}.ok("echo", `{}`)
	require.Zero(t, a.count("tools/call"))
	require.Equal(t, 1, b.count("tools/call"))

	t.Run("of one name", func(t *testing.T) {
		w := worker.New(dial(t, newProxy(t, "a", a.upstream(), mcpproxy.Options{}), newProxy(t, "a", b.upstream(), mcpproxy.Options{})), newEndpoint(t), worker.Options{})
		require.ErrorContains(t, w.Start(), "mcpproxy: a: ")
	})
}

func TestAServerThatHangsLeavesRoomForAnother(t *testing.T) {
	t.Parallel()

	c := worker.Options{}
	configure := func(o *worker.Options, plugins ...worker.Plugin) {
		for _, p := range plugins {
			require.NoError(t, p.ConfigureWorker(t.Context(), worker.PluginConfigureWorkerOptions{WorkerInstanceKey: "w", WorkerOptions: o}))
		}
	}
	a := newProxy(t, "a", newServer(t).upstream(), mcpproxy.Options{})
	b := newProxy(t, "b", newServer(t).upstream(), mcpproxy.Options{})
	configure(&c, a, b)
	require.Equal(t, 2000, c.MaxConcurrentActivityExecutionSize)
	require.Equal(t, time.Second, c.MaxHeartbeatThrottleInterval)

	users := worker.Options{MaxConcurrentActivityExecutionSize: 7, MaxHeartbeatThrottleInterval: time.Millisecond}
	configure(&users, a, b)
	require.Equal(t, 7, users.MaxConcurrentActivityExecutionSize)
	require.Equal(t, time.Millisecond, users.MaxHeartbeatThrottleInterval)
}

func TestAnUpstreamThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()

	var away atomic.Bool
	away.Store(true)
	s := newServer(t, plainTool)
	s.Refuse = func() error {
		if away.Load() {
			return errors.New("secret address")
		}
		return nil
	}
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{})
	w := worker.New(dial(t, p), newEndpoint(t), worker.Options{})
	err := w.Start()
	require.ErrorContains(t, err, "mcpproxy: fake: ")
	require.NotContains(t, err.Error(), "secret")

	t.Run("does not keep a Worker that continues from starting", func(t *testing.T) {
		c := serve(t, s.upstream(), mcpproxy.Options{ContinueOnError: true, Policy: mcpproxy.Policy{Retry: quick}})
		f := c.fails("echo", `{}`)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		require.Contains(t, f.Message, `The tools of the server "fake" could not be listed`)
		f = c.fails(contract.OperationListTools, `null`)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		away.Store(false)
		c.ok("echo", `{}`)
		require.Len(t, c.manifest().Tools, 1)
	})
}

// logBuffer is where a logger writes to.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestTheListFollowsTheUpstream(t *testing.T) {
	t.Parallel()

	other := `{"name":"other","inputSchema":{"type":"object"}}`
	names := func(c caller) (names []string) {
		for _, tool := range c.manifest().Tools {
			names = append(names, tool.Name)
		}
		return names
	}
	follows := func(t *testing.T, c caller) {
		t.Helper()
		require.Eventually(t, func() bool {
			got := names(c)
			return len(got) == 1 && got[0] == "other"
		}, 10*time.Second, 50*time.Millisecond)
	}

	t.Run("when it says so, once for a burst", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, plainTool)
		s.Legacy = true
		c := serve(t, s.upstream(), mcpproxy.Options{})
		require.Equal(t, []string{"echo"}, names(c))
		lists := s.count("tools/list")
		for range 20 {
			s.setTools(other)
		}
		follows(t, c)
		require.LessOrEqual(t, s.count("tools/list"), lists+2)
	})
	t.Run("by its time to live", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, plainTool)
		s.ttl = "100"
		c := serve(t, s.upstream(), mcpproxy.Options{})
		s.mu.Lock()
		s.tools = []string{other}
		s.mu.Unlock()
		follows(t, c)
	})
	t.Run("by the clock", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, plainTool)
		c := serve(t, s.upstream(), mcpproxy.Options{ListRefreshInterval: 200 * time.Millisecond})
		s.mu.Lock()
		s.tools = []string{other}
		s.mu.Unlock()
		follows(t, c)
	})
	t.Run("by a call of a tool that an old list lacks", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, plainTool)
		c := serve(t, s.upstream(), mcpproxy.Options{ListRefreshInterval: time.Hour})
		s.mu.Lock()
		s.tools = []string{other}
		s.mu.Unlock()
		require.Eventually(t, func() bool {
			_, err := c.call("other", `{}`)
			return err == nil
		}, 20*time.Second, 500*time.Millisecond)
		require.Equal(t, 2, s.count("tools/list"))
		require.EqualValues(t, -32602, c.fails("echo", `{}`).Protocol().Code)
	})
	t.Run("and stays when the upstream fails", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, plainTool)
		var logs logBuffer
		c := serve(t, s.upstream(), mcpproxy.Options{ListRefreshInterval: 100 * time.Millisecond, Logger: logs.logger()})
		s.mu.Lock()
		s.tools = []string{`7`, `"x"]`}
		s.mu.Unlock()
		require.Eventually(t, func() bool {
			meta, err := contract.ParseObject(c.manifest().Meta)
			return err == nil && bytes.Contains(meta.Get(contract.MetaWarnings), []byte("does not answer since"))
		}, 10*time.Second, 50*time.Millisecond)
		require.Equal(t, []string{"echo"}, names(c))
		require.Contains(t, logs.String(), "the last list stays")
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()

	whoCalls := func() answer {
		return func(_ context.Context, c *fakeConn, _ string, _ contract.Object) (string, *contract.ProtocolError) {
			return `{"content":[],"connection":` + string(rune('0'+c.number)) + `}`, nil
		}
	}
	for _, test := range []struct {
		name   string
		mode   mcpproxy.SessionMode
		legacy bool
		same   bool // callers share
	}{
		{"auto and stateless", "", false, true},
		{"auto and stateful", "", true, false},
		{"shared and stateful", mcpproxy.SessionShared, true, true},
		{"per caller and stateless", mcpproxy.SessionPerCaller, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, plainTool)
			s.Legacy = test.legacy
			s.Call = whoCalls()
			c := serve(t, s.upstream(), mcpproxy.Options{Session: test.mode})
			a, b := c.with(contract.HeaderCaller, "aaaaaaaaaaaaaaaa"), c.with(contract.HeaderCaller, "bbbbbbbbbbbbbbbb")
			first := a.ok("echo", `{}`)
			require.Equal(t, first, a.ok("echo", `{}`), "a caller keeps its session")
			require.Equal(t, test.same, first == b.ok("echo", `{}`))
			nobody := c.ok("echo", `{}`)
			require.Equal(t, test.same, first == nobody)
			require.Equal(t, test.same, nobody == c.ok("echo", `{}`))
		})
	}
}

func TestAListThatHangsIsAskedOfANewSession(t *testing.T) {
	t.Parallel()

	for _, mode := range []mcpproxy.SessionMode{mcpproxy.SessionShared, mcpproxy.SessionPerCaller} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, plainTool)
				s.Silent = func(c *fakeConn, method string) bool { return method == "tools/list" && c.number == 1 }
				p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{Session: mode, ContinueOnError: true})
				release, err := p.Connect(t.Context())
				require.NoError(t, err)
				defer release()
				require.False(t, p.Listed())
				time.Sleep(5 * time.Minute)
				require.True(t, p.Listed())
				require.Equal(t, 2, s.connections())
			})
		})
	}
}
