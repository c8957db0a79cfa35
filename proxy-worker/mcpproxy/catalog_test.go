package mcpproxy

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACatalogThatHasEndedListsNoMore(t *testing.T) {
	t.Parallel()

	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	ended := false
	c := newCatalog(ctx, "fake", time.Hour, slog.New(slog.DiscardHandler), func(context.Context) (*listing, error) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			t.Error("it lists after its end")
		}
		return &listing{}, nil
	})
	_, err := c.refresh(t.Context())
	require.NoError(t, err)
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() { _, _ = c.refresh(t.Context()) })
	}
	stop()
	c.close()
	mu.Lock()
	ended = true
	mu.Unlock()
	callers.Wait()
	_, err = c.refresh(t.Context())
	require.ErrorIs(t, err, context.Canceled)
}
