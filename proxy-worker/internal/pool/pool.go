package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Session is what the pool needs to know of a session. Close is bounded in time
// and may be called more than once.
type Session interface {
	comparable
	Done() <-chan struct{}
	Close()
}

// Mode says who shares a session.
type Mode int

// The modes.
const (
	Auto Mode = iota // as the first session of those that are open says
	Shared
	PerCaller
)

// Options configure a pool.
type Options[S Session] struct {
	Mode Mode
	// Stateless reports whether a session can be shared; for [Auto].
	Stateless func(S) bool
	// MaxSessions bounds the sessions of [PerCaller], all callers together.
	MaxSessions int
	// IdleTimeout closes a session of [PerCaller] that nobody has used for so long.
	IdleTimeout time.Duration
}

// Aside is the caller that stands for none. With sessions per caller it has up to
// two, which no caller gets, beside the MaxSessions. No hash of a caller is like it.
const Aside = "aside"

const maxAside = 2 // one that hangs does not hold up the other

// ErrClosed is the error of a pool that has been closed.
var ErrClosed = errors.New("the pool of sessions is closed")

// Pool holds the sessions with one upstream. It is safe for concurrent use.
type Pool[S Session] struct {
	dial    func(ctx context.Context) (S, error)
	options Options[S]
	busy    *semaphore.Weighted // the sessions per caller that may serve calls at once
	spare   *semaphore.Weighted // those of Aside
	ctx     context.Context     // ends with Close; dials belong to the pool, not to who waits for them
	stop    context.CancelFunc
	work    sync.WaitGroup // dials, and sessions that end

	mu      sync.Mutex
	closed  bool
	mode    Mode // Auto while no session is open to decide
	shared  *entry[S]
	dialing *dialing    // the first session, while it is made
	open    int         // sessions per caller that are open or being made
	aside   int         // those of Aside
	idle    []*entry[S] // the longest idle first
	leased  map[*entry[S]]int
}

type entry[S Session] struct {
	session S
	caller  string // Aside for none
	unused  bool   // nobody has had it, so that anybody may
	retired bool   // a shared one that gets no new calls
	timer   *time.Timer
}

type dialing struct {
	done chan struct{}
	err  error
}

// New returns a pool that makes its sessions by dial.
func New[S Session](dial func(ctx context.Context) (S, error), o Options[S]) *Pool[S] {
	p := &Pool[S]{
		dial: dial, options: o, mode: o.Mode,
		busy:   semaphore.NewWeighted(int64(o.MaxSessions)),
		spare:  semaphore.NewWeighted(maxAside),
		leased: map[*entry[S]]int{},
	}
	p.ctx, p.stop = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	return p
}

// Lease is the use of a session for one call. It is for one goroutine.
type Lease[S Session] struct {
	pool      *Pool[S]
	entry     *entry[S]
	exclusive bool
	released  bool
}

// Session returns the session.
func (l *Lease[S]) Session() S { return l.entry.session }

// Acquire returns a live session. With sessions per caller it is that caller's
// alone until it is released; the caller "" gets a new one that is closed then.
// It waits while all are busy. A failed dial is nobody's but those who waited for
// it: the next one tries again.
func (p *Pool[S]) Acquire(ctx context.Context, caller string) (*Lease[S], error) {
	return p.acquire(ctx, caller, false)
}

// AcquireNew is Acquire for who has found a session lost: with sessions per caller it
// returns none that the caller has had before, which may be as lost.
func (p *Pool[S]) AcquireNew(ctx context.Context, caller string) (*Lease[S], error) {
	return p.acquire(ctx, caller, true)
}

func (p *Pool[S]) acquire(ctx context.Context, caller string, fresh bool) (*Lease[S], error) {
	for {
		p.mu.Lock()
		p.forgetDead()
		switch {
		case p.closed:
			p.mu.Unlock()
			return nil, ErrClosed
		case p.mode == PerCaller:
			p.mu.Unlock()
			return p.acquireOwn(ctx, caller, fresh)
		case p.shared != nil:
			defer p.mu.Unlock()
			p.leased[p.shared]++
			return &Lease[S]{pool: p, entry: p.shared}, nil
		}
		d := p.dialFirst()
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.done:
		}
		if d.err != nil {
			return nil, d.err
		}
	}
}

// Mode returns how sessions are used: [Auto] where no session has told yet.
func (p *Pool[S]) Mode() Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// dialFirst makes the session that everybody waits for. The lock is held.
func (p *Pool[S]) dialFirst() *dialing {
	if p.dialing != nil {
		return p.dialing
	}
	d := &dialing{done: make(chan struct{})}
	p.dialing = d
	p.work.Go(func() {
		session, err := p.dial(p.ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		defer close(d.done)
		p.dialing = nil
		if err != nil {
			d.err = err
			return
		}
		if p.closed {
			d.err = ErrClosed
			session.Close()
			return
		}
		if p.mode == Auto {
			p.mode = PerCaller
			if p.options.Stateless(session) {
				p.mode = Shared
			}
		}
		e := &entry[S]{session: session, unused: true}
		if p.mode == Shared {
			p.shared = e
			return
		}
		p.open++
		p.park(e)
	})
	return d
}

// acquireOwn returns a session that is the caller's alone.
func (p *Pool[S]) acquireOwn(ctx context.Context, caller string, fresh bool) (*Lease[S], error) {
	busy := p.places(caller)
	if err := busy.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	e, err := p.own(ctx, caller, fresh)
	if err != nil {
		busy.Release(1)
		return nil, err
	}
	return &Lease[S]{pool: p, entry: e, exclusive: true}, nil
}

// places are the sessions of the caller's kind that may serve calls at once.
func (p *Pool[S]) places(caller string) *semaphore.Weighted {
	if caller == Aside {
		return p.spare
	}
	return p.busy
}

func (p *Pool[S]) own(ctx context.Context, caller string, fresh bool) (*entry[S], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetDead()
	if p.closed {
		return nil, ErrClosed
	}
	if e := p.takeIdle(caller, fresh); e != nil {
		p.leased[e] = 1
		return e, nil
	}
	e := &entry[S]{caller: caller}
	open, most := p.open, p.options.MaxSessions
	if caller == Aside {
		open, most = p.aside, maxAside
	}
	if open >= most { // of which one is idle: the busy ones are fewer
		p.drop(p.idle[slices.IndexFunc(p.idle, func(e *entry[S]) bool { return (e.caller == Aside) == (caller == Aside) })])
	}
	p.count(e, 1)
	p.work.Add(1)
	defer p.work.Done()
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(p.ctx, cancel)()
	defer cancel()
	session, err := p.dial(ctx)
	p.mu.Lock()
	if err == nil && p.closed {
		p.mu.Unlock()
		session.Close()
		p.mu.Lock()
		err = ErrClosed
	}
	if err != nil {
		p.forget(e)
		return nil, err
	}
	e.session = session
	p.leased[e] = 1
	return e, nil
}

// takeIdle returns an idle session that is the caller's or nobody's yet, the one
// that was used last; a fresh one is nobody's yet.
func (p *Pool[S]) takeIdle(caller string, fresh bool) *entry[S] {
	for _, e := range slices.Backward(p.idle) {
		if e.unused || !fresh && caller != "" && e.caller == caller {
			p.unpark(e)
			p.count(e, -1)
			e.caller, e.unused = caller, false
			p.count(e, 1)
			return e
		}
	}
	return nil
}

// Release gives the session back. A dead one is dropped, and so is that of an
// anonymous caller. It may be called more than once.
func (l *Lease[S]) Release() { l.giveBack(false) }

// Discard gives the session back and ends it: nobody gets it any more, and the
// calls of others that are under way on a shared one come to their end before.
// After Release it does nothing.
func (l *Lease[S]) Discard() { l.giveBack(true) }

func (l *Lease[S]) giveBack(lost bool) {
	if l.released {
		return
	}
	l.released = true
	p, e := l.pool, l.entry
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leased[e]--; p.leased[e] == 0 {
		delete(p.leased, e)
	}
	if !l.exclusive {
		if lost && p.shared == e {
			p.retire()
		} else if e.retired && p.leased[e] == 0 && !p.closed {
			p.end(e.session)
		}
		return
	}
	defer p.places(e.caller).Release(1)
	switch {
	case p.closed: // which has ended it
	case lost || e.caller == "" || dead(e.session):
		p.forget(e)
		p.end(e.session)
	default:
		p.park(e)
	}
}

// park keeps a session for later.
func (p *Pool[S]) park(e *entry[S]) {
	p.idle = append(p.idle, e)
	e.timer = time.AfterFunc(p.options.IdleTimeout, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if e.timer != nil { // or it has been taken meanwhile
			p.drop(e)
		}
	})
}

func (p *Pool[S]) unpark(e *entry[S]) {
	e.timer.Stop()
	e.timer = nil
	if i := slices.Index(p.idle, e); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
}

// drop ends an idle session.
func (p *Pool[S]) drop(e *entry[S]) {
	p.unpark(e)
	p.forget(e)
	p.end(e.session)
}

// count counts n more sessions of the entry's kind.
func (p *Pool[S]) count(e *entry[S], n int) {
	if e.caller == Aside {
		p.aside += n
	} else {
		p.open += n
	}
}

// forget counts one session of the entry's kind less.
func (p *Pool[S]) forget(e *entry[S]) {
	p.count(e, -1)
	p.undecide()
}

// retire takes the shared session out. It ends with the last call on it.
func (p *Pool[S]) retire() {
	e := p.shared
	p.shared = nil
	p.undecide()
	if p.leased[e] == 0 {
		p.end(e.session)
	}
	e.retired = true
}

// undecide lets the next session tell, once none is left: the upstream may have
// been replaced by one of another revision.
func (p *Pool[S]) undecide() {
	if p.open == 0 && p.aside == 0 && p.shared == nil {
		p.mode = p.options.Mode
	}
}

func (p *Pool[S]) forgetDead() {
	if p.shared != nil && dead(p.shared.session) {
		p.retire()
	}
	for _, e := range slices.Clone(p.idle) {
		if dead(e.session) {
			p.drop(e)
		}
	}
}

// end closes a session in the background: a peer may take its time.
func (p *Pool[S]) end(session S) { p.work.Go(session.Close) }

func dead[S Session](session S) bool {
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}

// Close ends all sessions, those that serve calls too, and waits for it. It may be
// called more than once.
func (p *Pool[S]) Close() {
	p.stop()
	p.mu.Lock()
	p.closed = true
	if p.shared != nil {
		p.end(p.shared.session)
		p.shared = nil
	}
	for len(p.idle) > 0 {
		p.drop(p.idle[0])
	}
	for e := range p.leased {
		p.end(e.session)
	}
	p.mu.Unlock()
	p.work.Wait()
}
