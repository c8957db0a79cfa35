package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/pool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// runtime is what a proxy has while a Worker serves it.
type runtime struct {
	pool    *pool.Pool[*mcpclient.Session]
	catalog *catalog
	slots   chan struct{} // a token for each call under way
	crowded *slog.Logger  // bounded: for calls without one
	failed  atomic.Int32  // lists, one after the other
	stop    context.CancelFunc
}

// listCaller is the caller of the lists that nobody in particular asks for: they
// take no session from a caller.
const listCaller = pool.Aside

// listTimeout bounds all pages of a list, beside the connection.
const listTimeout = 30 * time.Second

// slowStart is how long the start of a Worker waits for an upstream that it can do
// without.
const slowStart = 5 * time.Second

// maxFailed is how many lists, one after the other, may fail in a session: a server that
// fails for a moment is the same one after it.
const maxFailed = 3

var errSlowStart = errors.New("the server takes its time to start")

func (p *Proxy) newRuntime() *runtime {
	ctx, stop := context.WithCancel(context.Background())
	r := &runtime{slots: make(chan struct{}, callsAtOnce), crowded: mcpclient.Limited(p.log), stop: stop}
	r.pool = pool.New(func(ctx context.Context) (*mcpclient.Session, error) {
		return mcpclient.Dial(ctx, p.transport, p.dialOptions(r))
	}, pool.Options[*mcpclient.Session]{
		Mode:        map[SessionMode]pool.Mode{SessionShared: pool.Shared, SessionPerCaller: pool.PerCaller}[p.options.Session],
		Stateless:   func(s *mcpclient.Session) bool { return s.Server().Stateless },
		MaxSessions: p.options.MaxSessions,
		IdleTimeout: p.options.SessionIdleTimeout,
	})
	r.catalog = newCatalog(ctx, p.name, p.options.ListRefreshInterval, mcpclient.Limited(p.log), func(ctx context.Context) (*listing, error) {
		return p.fetch(ctx, r)
	})
	return r
}

func (p *Proxy) dialOptions(r *runtime) mcpclient.Options {
	return mcpclient.Options{
		ClientName:      p.options.ClientName,
		ClientVersion:   version(),
		ProtocolVersion: p.options.ProtocolVersion,
		MaxMessageBytes: p.options.MaxMessageBytes,
		StartupTimeout:  p.options.StartupTimeout,
		Logger:          p.log,
		Changed: func(what string) {
			if what == "tools" {
				r.catalog.changed()
			}
		},
	}
}

// version is that of this module in the program that runs.
func version() string {
	const path = "github.com/durable-mcp/durable-mcp/proxy-worker"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}

// admit takes a place for a call, if there is one.
func (r *runtime) admit() (release func(), ok bool) {
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }, true
	default:
		return nil, false
	}
}

// pause is the time between the heartbeats of a call. A cancel is heard with the
// next one, so it is a beat, and grows where hundreds of calls would keep Temporal
// busy with theirs. An activity that somebody has started by hand may have no
// heartbeat timeout.
func (r *runtime) pause(timeout time.Duration) time.Duration {
	const perSecond = 200
	pause := max(beat, time.Duration(len(r.slots))*time.Second/perSecond)
	if timeout > 0 {
		pause = min(pause, timeout/3)
	}
	return pause
}

// fetch lists the tools; over one new session where the first one turns out dead.
func (p *Proxy) fetch(ctx context.Context, r *runtime) (*listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.StartupTimeout+listTimeout, errors.New("listing the tools took too long"))
	defer cancel()
	list, err := p.fetchOnce(ctx, r, r.pool.Acquire)
	var failed *mcpclient.Error
	if errors.As(err, &failed) && failed.Lost && ctx.Err() == nil {
		list, err = p.fetchOnce(ctx, r, r.pool.AcquireNew)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return list, err
}

// acquire is how a session is had.
type acquire func(ctx context.Context, caller string) (*pool.Lease[*mcpclient.Session], error)

func (p *Proxy) fetchOnce(ctx context.Context, r *runtime, acquire acquire) (list *listing, err error) {
	lease, err := acquire(ctx, listCaller)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	session := lease.Session()
	replaced := false
	defer func() {
		failed, ok := errors.AsType[*mcpclient.Error](err)
		switch {
		case err == nil:
			r.failed.Store(0)
		case replaced, ok && failed.Lost, ctx.Err() != nil /* one that hangs */, r.failed.Add(1) >= maxFailed:
			r.failed.Store(0)
			lease.Discard()
		}
	}()
	server, err := session.Renew(ctx, minRefresh)
	if err != nil {
		// What can no longer say what it is is another server by now.
		failed, ok := errors.AsType[*mcpclient.Error](err)
		replaced = !ok || !failed.Retryable
		return nil, notListed("server/discover", err)
	}
	if !server.Has("tools") {
		list = p.options.newListing(server, nil, 0)
		list.warn("the server has no tools")
		list.finish()
		return list, nil
	}
	raw, ttl, err := lists(ctx, session)
	if err != nil {
		return nil, notListed("tools/list", err)
	}
	return p.options.newListing(server, raw, ttl), nil
}

// notListed is the error of a list, for logs too: the message of a server may hold a
// secret.
func notListed(method string, err error) error {
	if pe, ok := errors.AsType[*contract.ProtocolError](err); ok {
		return fmt.Errorf("%s: the server answered with JSON-RPC error %d", method, pe.Code)
	}
	return fmt.Errorf("%s: %w", method, err)
}

// acquireRuntime counts one user more; the first one connects and lists.
func (p *Proxy) acquireRuntime(ctx context.Context) error {
	p.starts.Lock()
	defer p.starts.Unlock()
	p.mu.Lock()
	if p.runtime != nil {
		p.users++
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	r := p.newRuntime()
	first, cancel := ctx, context.CancelFunc(func() {})
	if p.options.ContinueOnError { // what is not there in time is listed in the background
		first, cancel = context.WithTimeoutCause(ctx, slowStart, errSlowStart)
	}
	defer cancel()
	_, err := r.catalog.refresh(first)
	switch {
	case err == nil:
	case !p.options.ContinueOnError, ctx.Err() != nil:
		r.close()
		return forOperator(err)
	case errors.Is(err, errSlowStart):
		p.log.Warn("mcpproxy: the server takes its time to start; its tools are served when they are there")
	}
	r.catalog.running.Go(r.catalog.keepFresh)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtime, p.users = r, 1
	return nil
}

// forOperator adds to an error what only the operator may know of it.
func forOperator(err error) error {
	var failed *mcpclient.Error
	if errors.As(err, &failed) && failed.Detail != "" {
		return fmt.Errorf("%w: %s", err, failed.Detail)
	}
	return err
}

// current returns the runtime, nil while no Worker runs.
func (p *Proxy) current() *runtime {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runtime
}

func (p *Proxy) releaseRuntime() {
	p.mu.Lock()
	p.users--
	var last *runtime
	if p.users == 0 {
		last, p.runtime = p.runtime, nil
	}
	p.mu.Unlock()
	if last != nil {
		last.close()
	}
}

// close ends the sessions and what goes on in the background.
func (r *runtime) close() {
	r.stop()
	r.pool.Close()
	r.catalog.close()
}
