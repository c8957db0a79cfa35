package mcpproxy

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// catalog keeps the tools of an upstream, listed anew when it says that they
// changed, when what it listed is too old, and every now and then.
type catalog struct {
	fetch    func(ctx context.Context) (*listing, error)
	interval time.Duration
	server   string
	log      *slog.Logger
	ctx      context.Context // ends with the catalog
	changes  chan struct{}   // holds one word of a change
	running  sync.WaitGroup

	current  atomic.Pointer[listing] // nil before the first
	outdated atomic.Bool             // the last refresh failed

	mu     sync.Mutex
	flight *flight
}

// flight is a refresh for everybody who wants one.
type flight struct {
	done chan struct{}
	list *listing
	err  error
}

const (
	// settle is how long changes are collected before the tools are listed.
	settle = 50 * time.Millisecond
	// minRefresh bounds how often an upstream makes itself be listed, by a time to
	// live or by its word of changes.
	minRefresh = time.Second
	// maxRenamed is how many tools one line of the log names.
	maxRenamed = 20
)

func newCatalog(ctx context.Context, server string, interval time.Duration, log *slog.Logger, fetch func(context.Context) (*listing, error)) *catalog {
	return &catalog{fetch: fetch, interval: interval, server: server, log: log, ctx: ctx, changes: make(chan struct{}, 1)}
}

// changed asks for a refresh soon. It does not block.
func (c *catalog) changed() {
	select {
	case c.changes <- struct{}{}:
	default: // somebody has
	}
}

// list returns the tools as they were last listed, nil before the first time.
func (c *catalog) list() *listing { return c.current.Load() }

// refresh lists the tools now. Who comes while that is done waits for the same
// answer. It belongs to the catalog: it goes on when ctx ends.
func (c *catalog) refresh(ctx context.Context) (*listing, error) {
	f := c.start()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-f.done:
		return f.list, f.err
	}
}

func (c *catalog) start() *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight != nil {
		return c.flight
	}
	f := &flight{done: make(chan struct{})}
	if f.err = c.ctx.Err(); f.err != nil { // close waits for no more
		close(f.done)
		return f
	}
	c.flight = f
	c.running.Go(func() {
		f.list, f.err = c.fetch(c.ctx)
		c.store(f)
		c.mu.Lock()
		c.flight = nil
		c.mu.Unlock()
		close(f.done)
	})
	return f
}

// close waits for what is under way, after the end of the catalog's context.
func (c *catalog) close() {
	c.mu.Lock()
	c.mu.Unlock() //nolint:staticcheck // what start has begun is counted, and it begins no more
	c.running.Wait()
}

func (c *catalog) store(f *flight) {
	old := c.current.Load()
	switch {
	case f.err == nil:
		c.outdated.Store(false)
		c.current.Store(f.list)
		c.report(old, f.list)
	case c.ctx.Err() != nil:
	case old != nil && !c.outdated.Swap(true):
		c.log.Warn("mcpproxy: the tools could not be listed anew, the last list stays", errorAttributes(f.err)...)
		c.current.Store(old.outdated(c.server))
	case old == nil:
		c.log.Warn("mcpproxy: the tools could not be listed", errorAttributes(f.err)...)
	}
}

// report logs what is new in a list.
func (c *catalog) report(old, list *listing) {
	known := map[string]bool{}
	if old != nil {
		for _, w := range old.warnings {
			known[w] = true
		}
	}
	var renamed []string
	for _, w := range list.warnings {
		short, harmless := list.renamed[w]
		switch {
		case known[w]:
		case harmless:
			renamed = append(renamed, short)
		default:
			c.log.Warn("mcpproxy: " + w)
		}
	}
	if n := len(renamed); n > 0 {
		c.log.Info("mcpproxy: tools are served under other names", "tools", n, "first", strings.Join(renamed[:min(n, maxRenamed)], ", "))
	}
	if old == nil || len(old.order) != len(list.order) {
		c.log.Info("mcpproxy: tools listed", "tools", len(list.order))
	}
}

// keepFresh refreshes until the catalog ends.
func (c *catalog) keepFresh() {
	timer := time.NewTimer(c.pause())
	defer timer.Stop()
	var changed time.Time // when a change last had them listed
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		case <-c.changes:
			timer.Reset(max(settle, minRefresh-time.Since(changed)))
			select {
			case <-c.ctx.Done():
				return
			case <-timer.C:
			}
			select {
			case <-c.changes: // the same burst
			default:
			}
			c.land() // what is under way may have begun before the change
			changed = time.Now()
		}
		_, _ = c.refresh(c.ctx) // is logged
		timer.Reset(c.pause())
	}
}

// land waits for the refresh that is under way.
func (c *catalog) land() {
	c.mu.Lock()
	f := c.flight
	c.mu.Unlock()
	if f != nil {
		<-f.done
	}
}

func (c *catalog) pause() time.Duration {
	list := c.current.Load()
	switch {
	case list == nil:
		return min(c.interval, defaultMaximumInterval)
	case list.ttl > 0:
		return min(c.interval, max(list.ttl, minRefresh))
	}
	return c.interval
}

// errNoSuchTool says that neither the list nor a new one has a tool.
var errNoSuchTool = errors.New("there is no such tool")

// lookup returns a tool, listing anew if the list is too old to say that there is
// none.
func (c *catalog) lookup(ctx context.Context, name string) (*tool, error) {
	list := c.list()
	if !list.answers(name) {
		var err error
		if list, err = c.refresh(ctx); err != nil {
			return nil, err
		}
	}
	if t := list.tools[name]; t != nil {
		return t, nil
	}
	return nil, errNoSuchTool
}

// answers reports whether the list says what there is under a name.
func (l *listing) answers(name string) bool {
	return l != nil && (l.tools[name] != nil || l.hidden[name] || time.Since(l.at) < maxAge)
}
