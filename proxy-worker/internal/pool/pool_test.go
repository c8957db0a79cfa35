package pool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/pool"
	"github.com/stretchr/testify/require"
)

type session struct {
	number    int
	stateless bool
	done      chan struct{}
	once      sync.Once
	closed    atomic.Bool
}

func (s *session) Done() <-chan struct{} { return s.done }
func (s *session) Close() {
	s.once.Do(func() {
		if s.closed.Store(true); !s.dead() {
			close(s.done)
		}
	})
}

func (s *session) dead() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// dialer makes sessions and knows them all.
type dialer struct {
	mu        sync.Mutex
	stateless bool
	err       error
	slow      time.Duration
	made      []*session
	most      int // open at once
}

func (d *dialer) dial(ctx context.Context) (*session, error) {
	d.mu.Lock()
	slow := d.slow
	d.mu.Unlock()
	if slow > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(slow):
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	s := &session{number: len(d.made) + 1, stateless: d.stateless, done: make(chan struct{})}
	d.made = append(d.made, s)
	d.most = max(d.most, d.openLocked())
	return s, nil
}

func (d *dialer) openLocked() int {
	n := 0
	for _, s := range d.made {
		if !s.dead() {
			n++
		}
	}
	return n
}

func (d *dialer) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openLocked()
}

func newPool(t *testing.T, d *dialer, mode pool.Mode, most int) *pool.Pool[*session] {
	t.Helper()
	p := pool.New(d.dial, pool.Options[*session]{
		Mode: mode, Stateless: func(s *session) bool { return s.stateless }, MaxSessions: most, IdleTimeout: time.Minute,
	})
	t.Cleanup(p.Close)
	return p
}

func acquire(t *testing.T, p *pool.Pool[*session], caller string) *pool.Lease[*session] {
	t.Helper()
	l, err := p.Acquire(t.Context(), caller)
	require.NoError(t, err)
	return l
}

// use takes a session and gives it back.
func use(t *testing.T, p *pool.Pool[*session], caller string) int {
	t.Helper()
	l := acquire(t, p, caller)
	defer l.Release()
	return l.Session().number
}

func TestShared(t *testing.T) {
	t.Parallel()

	for name, mode := range map[string]pool.Mode{"by option": pool.Shared, "by the first session": pool.Auto} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{stateless: true, slow: time.Second}
				p := newPool(t, d, mode, 1)
				var wait sync.WaitGroup
				for range 50 { // more than fit in sessions of their own, and one dial for all
					wait.Go(func() {
						l := acquire(t, p, "")
						time.Sleep(time.Hour)
						l.Release()
						l.Release()
					})
				}
				wait.Wait()
				require.Len(t, d.made, 1)
				require.Equal(t, pool.Shared, p.Mode())
				d.made[0].Close()
				require.Equal(t, 2, use(t, p, "a"))
				lost := acquire(t, p, "a")
				lost.Discard()
				require.Equal(t, 3, use(t, p, "a"))
				lost.Release()
				require.Equal(t, 3, use(t, p, "a"))
			})
		})
	}
}

func TestPerCaller(t *testing.T) {
	t.Parallel()

	for name, mode := range map[string]pool.Mode{"by option": pool.PerCaller, "by the first session": pool.Auto} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{}
				p := newPool(t, d, mode, 2)
				require.Equal(t, 1, use(t, p, "a"))
				require.Equal(t, 1, use(t, p, "a"), "it is kept for its caller")
				require.Equal(t, 2, use(t, p, "b"), "and for nobody else")
				require.Equal(t, 3, use(t, p, ""), "the longest idle one makes room")
				synctest.Wait()
				require.True(t, d.made[0].dead())
				require.True(t, d.made[2].dead(), "that of an anonymous caller is closed")
				require.Equal(t, 2, use(t, p, "b"))
				d.made[1].Close()
				require.Equal(t, 4, use(t, p, "b"), "a dead one is replaced")
				time.Sleep(2 * time.Minute)
				require.Zero(t, d.open(), "an idle one is closed")
				require.Equal(t, mode, p.Mode(), "the next session decides anew")
			})
		})
	}
}

func TestASessionServesOneCallAtATime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		d := &dialer{slow: time.Millisecond}
		p := newPool(t, d, pool.Auto, 3)
		busy := map[*session]bool{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for i := range 200 {
			wait.Go(func() {
				l := acquire(t, p, string(rune('a'+i%5)))
				mu.Lock()
				if busy[l.Session()] {
					t.Error("a busy session was given away")
				}
				busy[l.Session()] = true
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				delete(busy, l.Session())
				mu.Unlock()
				if i%7 == 0 {
					l.Discard()
				}
				l.Release()
			})
		}
		wait.Wait()
		require.LessOrEqual(t, d.most, 3)
	})
}

func TestAllAreBusy(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &dialer{}, pool.PerCaller, 1)
		held := acquire(t, p, "a")
		cause := errors.New("the call ends")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err := p.Acquire(ctx, "b")
		require.ErrorIs(t, err, cause)
		time.AfterFunc(time.Second, held.Release)
		require.Equal(t, 2, use(t, p, "b"))
	})
}

func TestAFailedDialIsNobodysButTheirsWhoWait(t *testing.T) {
	t.Parallel()

	for name, mode := range map[string]pool.Mode{"auto": pool.Auto, "shared": pool.Shared, "per caller": pool.PerCaller} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{err: errors.New("refused"), slow: time.Second}
				p := newPool(t, d, mode, 1)
				for range 3 {
					_, err := p.Acquire(t.Context(), "a")
					require.ErrorIs(t, err, d.err)
				}
				d.err = nil
				require.Equal(t, 1, use(t, p, "a"))

				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				d.made[0].Close()
				_, err := p.Acquire(ctx, "b")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 2, use(t, p, "b"))
			})
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()

	for name, mode := range map[string]pool.Mode{"auto": pool.Auto, "shared": pool.Shared, "per caller": pool.PerCaller} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{}
				p := newPool(t, d, mode, 3)
				held := acquire(t, p, "a")
				use(t, p, "b")
				d.mu.Lock()
				d.slow = time.Hour
				d.mu.Unlock()
				failed := make(chan error, 1)
				if mode != pool.Shared {
					go func() {
						_, err := p.Acquire(context.Background(), "c")
						failed <- err
					}()
					synctest.Wait()
				}
				p.Close()
				p.Close()
				require.Zero(t, d.open())
				held.Release()
				_, err := p.Acquire(t.Context(), "a")
				require.ErrorIs(t, err, pool.ErrClosed)
				if mode != pool.Shared {
					require.Error(t, <-failed)
				}
			})
		})
	}
}

func TestASessionAside(t *testing.T) {
	t.Parallel()

	for name, mode := range map[string]pool.Mode{"by option": pool.PerCaller, "by the first session": pool.Auto} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{}
				p := newPool(t, d, mode, 1)
				aside := func() int { return use(t, p, pool.Aside) }
				require.Equal(t, 1, aside())
				require.Equal(t, 2, use(t, p, "a"), "a caller does not get it")
				require.Equal(t, 1, aside())
				require.Equal(t, 2, use(t, p, "a"), "it takes no caller's session")
				require.Equal(t, 3, use(t, p, "b"), "which makes room for another caller's")
				require.Equal(t, 1, aside(), "and it makes none")
				held := acquire(t, p, "b")
				require.Equal(t, 1, aside(), "it waits for no call")
				held.Release()
				time.Sleep(2 * time.Minute)
				require.Zero(t, d.open())
				require.Equal(t, mode, p.Mode())
			})
		})
	}
}

func TestNoMoreThanTwoAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{}
		p := newPool(t, d, pool.PerCaller, 1)
		first, second := acquire(t, p, pool.Aside), acquire(t, p, pool.Aside)
		first.Release()
		fresh, err := p.AcquireNew(t.Context(), pool.Aside)
		require.NoError(t, err)
		require.Equal(t, 3, fresh.Session().number)
		synctest.Wait()
		require.Equal(t, 2, d.open())
		fresh.Release()
		second.Release()
	})
}

func TestASharedSessionEndsAfterItsCalls(t *testing.T) {
	t.Parallel()

	for name, lose := range map[string]func(*pool.Lease[*session]){
		"discarded": (*pool.Lease[*session]).Discard,
		"dead":      func(l *pool.Lease[*session]) { close(l.Session().done) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &dialer{}
				p := newPool(t, d, pool.Shared, 1)
				first, neighbour := acquire(t, p, "a"), acquire(t, p, "b")
				old := d.made[0]
				lose(first)
				require.Equal(t, 2, use(t, p, "a"), "new calls have a new session")
				first.Release()
				synctest.Wait()
				require.False(t, old.closed.Load(), "a neighbour's call is under way")
				neighbour.Release()
				synctest.Wait()
				require.True(t, old.closed.Load())
				require.False(t, d.made[1].closed.Load())

				held := acquire(t, p, "a")
				acquire(t, p, "b").Discard()
				p.Close()
				require.True(t, d.made[1].closed.Load(), "the end of the pool waits for nobody")
				held.Release()
			})
		})
	}
}
