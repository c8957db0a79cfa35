package mcpproxy_test

import (
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/stretchr/testify/require"
)

func TestConnect(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{})
	require.False(t, p.Listed())
	var all sync.WaitGroup
	releases, errs := make([]func(), 3), make([]error, 3)
	for i := range releases {
		all.Go(func() { releases[i], errs[i] = p.Connect(t.Context()) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.True(t, p.Listed())
	releases[0]()
	releases[0]()
	releases[1]()
	require.True(t, p.Listed(), "the third still holds it")
	releases[2]()
	require.False(t, p.Listed())
}

func TestASlowServerThatMayBeMissingHoldsUpNoStart(t *testing.T) {
	t.Parallel()

	s := newServer(t, plainTool)
	ready := make(chan struct{})
	s.Refuse = func() error { <-ready; return nil }
	p := newProxy(t, "fake", s.upstream(), mcpproxy.Options{ContinueOnError: true, StartupTimeout: time.Hour})
	release, err := p.Connect(t.Context())
	require.NoError(t, err)
	defer release()
	require.False(t, p.Listed())
	close(ready)
	require.Eventually(t, p.Listed, time.Minute, time.Millisecond)
}
