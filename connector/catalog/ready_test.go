package catalog_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/stretchr/testify/require"
)

// inTurn are services of one tool each, of which "a" answers when it may.
type inTurn struct{ may chan struct{} }

func (s inTurn) List(_ context.Context, service catalog.Service, _, _ string, _ time.Duration) (json.RawMessage, error) {
	if service.Name == "a" {
		<-s.may
	}
	return json.RawMessage(`{"tools":[{"name":"` + service.Name + `","description":"x","inputSchema":{"type":"object"}}]}`), nil
}

func (inTurn) PolledSince(context.Context, catalog.Service, time.Time) (bool, error) {
	return true, nil
}

// TestReadyIsServed: who waited for the catalog finds every tool of it served,
// also where one service answers while another's tools are being served.
func TestReadyIsServed(t *testing.T) {
	t.Parallel()

	source := inTurn{may: make(chan struct{})}
	ready, told := make(chan struct{}), make(chan string, 2)
	early := false
	var c *catalog.Catalog
	c, err := catalog.New(source, []catalog.Service{{Name: "a"}, {Name: "b"}}, catalog.Options{
		DiscoveryTimeout: time.Hour, RefreshInterval: time.Hour,
		OnChange: func(s *catalog.Snapshot) {
			if len(s.Entries) == 1 {
				close(source.may)
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for len(c.Snapshot().Entries) < 2 {
					<-tick.C
				}
			} else {
				select {
				case <-ready:
					early = true
				case <-time.After(100 * time.Millisecond):
				}
			}
			told <- s.Entries[0].Name
		},
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); c.Run(ctx) }()
	c.Ready(ctx)
	close(ready)
	require.Equal(t, "b", <-told)
	require.Equal(t, "a", <-told)
	require.False(t, early, "ready before the second service was served")
	stop()
	<-ran
}
