package mcpproxy_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
)

func TestAWorkerThatIsStoppedWhileItStarts(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	ready, asked := make(chan struct{}), make(chan struct{})
	s.Refuse = sync.OnceValue(func() error { close(asked); <-ready; return nil })
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{StartupTimeout: time.Hour})
	w := worker.New(dial(t, p), newEndpoint(t), worker.Options{})
	started := make(chan error, 1)
	go func() { started <- w.Start() }()
	<-asked
	w.Stop()
	require.ErrorContains(t, <-started, "mcpproxy: fake: the Worker was stopped while it started")
	close(ready)
	require.False(t, p.Served(), "no session is left")
	require.Zero(t, p.Workers())

	again := worker.New(dial(t, p), newEndpoint(t), worker.Options{})
	require.NoError(t, again.Start())
	require.True(t, p.Served())
	again.Stop()
	require.False(t, p.Served())
}

func TestWorkersThatAreNeverStartedAreForgotten(t *testing.T) {
	t.Parallel()

	p := newProxy(t, "fake", newServer(t).upstream(), mcpproxy.Options{})
	c := dial(t, p)
	endpoint := newEndpoint(t)
	for range 5 {
		worker.New(c, endpoint, worker.Options{})
	}
	require.Positive(t, p.Workers())
	require.Eventually(t, func() bool {
		runtime.GC()
		return p.Workers() == 0
	}, time.Minute, 10*time.Millisecond)
}
