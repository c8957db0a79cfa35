package mcpproxy

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
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

func TestChangesWithoutAPauseListAtABoundedRate(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var listed []time.Duration
		c := newCatalog(ctx, "fake", time.Hour, slog.New(slog.DiscardHandler), nil)
		c.fetch = func(context.Context) (*listing, error) {
			listed = append(listed, time.Since(begin))
			c.changed() // the server says so at each listing
			return &listing{}, nil
		}
		c.running.Go(c.keepFresh)
		c.changed()
		time.Sleep(3 * time.Second)
		stop()
		c.close()
		require.Equal(t, []time.Duration{settle, settle + minRefresh, settle + 2*minRefresh}, listed)
	})
}
