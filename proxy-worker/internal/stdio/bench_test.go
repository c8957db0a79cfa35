package stdio_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/pool"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/stretchr/testify/require"
)

// BenchmarkDial is a process started, asked who it is and ended.
func BenchmarkDial(b *testing.B) {
	for b.Loop() {
		s, err := mcpclient.Dial(b.Context(), stdio.New(server("modern")), options())
		require.NoError(b, err)
		s.Close()
	}
}

// BenchmarkCall is one small call.
func BenchmarkCall(b *testing.B) {
	s, err := mcpclient.Dial(b.Context(), stdio.New(server("modern")), options())
	require.NoError(b, err)
	defer s.Close()
	for b.Loop() {
		_, err := try(b.Context(), s, "params", "")
		require.NoError(b, err)
	}
}

// BenchmarkSessions is eight callers that nobody has named: calls per second where
// all have one session, and where sessions are per caller, so that each call has a
// process of its own, from its start to its end.
func BenchmarkSessions(b *testing.B) {
	const callers, shared, fresh = 8, 4000, 40
	measure := func(mode pool.Mode, calls int) time.Duration {
		p := pool.New(func(ctx context.Context) (*mcpclient.Session, error) {
			return mcpclient.Dial(ctx, stdio.New(server()), options())
		}, pool.Options[*mcpclient.Session]{Mode: mode, MaxSessions: callers, IdleTimeout: time.Minute})
		began := time.Now()
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for range calls / callers {
					anonymousCall(b, p)
				}
			})
		}
		group.Wait()
		p.Close() // which waits for the processes
		return time.Since(began)
	}
	var pooled, single time.Duration
	rounds := 0.0
	for ; b.Loop(); rounds++ {
		pooled += measure(pool.Shared, shared)
		single += measure(pool.PerCaller, fresh)
	}
	b.ReportMetric(rounds*shared/pooled.Seconds(), "shared-calls/s")
	b.ReportMetric(rounds*fresh/single.Seconds(), "process-per-call-calls/s")
	b.ReportMetric(shared/pooled.Seconds()/(fresh/single.Seconds()), "ratio")
}

func anonymousCall(b *testing.B, p *pool.Pool[*mcpclient.Session]) {
	b.Helper()
	lease, err := p.Acquire(b.Context(), "")
	require.NoError(b, err)
	defer lease.Release()
	_, err = try(b.Context(), lease.Session(), "params", "")
	require.NoError(b, err)
}
