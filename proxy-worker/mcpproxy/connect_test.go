package mcpproxy_test

import (
	"sync"
	"testing"

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
