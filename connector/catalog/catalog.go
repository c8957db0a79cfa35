package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Service is one Nexus service to serve.
type Service struct {
	Name string
	// Endpoint defaults to Name.
	Endpoint string
	// Prefix goes before the names of the service's tools, joined by "_" unless
	// it ends with "_" or "-". Empty for none.
	Prefix string
}

// Source reads what services say of themselves. An [operation.Client] behind an adapter is one.
type Source interface {
	// List reads one page of a list of a service within the timeout, by the MCP
	// method: [ListTools] is its manifest. The error is operation.ErrNoAnswer
	// where Temporal took the question and no worker answered it.
	List(ctx context.Context, s Service, method, cursor string, timeout time.Duration) (json.RawMessage, error)
	// PolledSince reports whether a worker asked for the service's tasks after
	// t. It must not reach the service. An error means that it cannot tell.
	PolledSince(ctx context.Context, s Service, t time.Time) (bool, error)
}

// Options configure a [Catalog]. The zero value works.
type Options struct {
	// DiscoveryTimeout bounds the answer of each service. Defaults to 5 s.
	DiscoveryTimeout time.Duration
	// RefreshInterval is how often manifests are read again. Defaults to 30 s.
	RefreshInterval time.Duration
	// Check tells a tool that cannot be served, by an error that says why; such a
	// tool is left out with a warning. Nil serves every tool.
	Check func(contract.Tool) error
	// OnChange is called, from one goroutine at a time, with each snapshot that
	// serves otherwise than the one before it. Set it before Run.
	OnChange func(*Snapshot)
	// Logger gets warnings, each once. Defaults to slog.Default().
	Logger *slog.Logger
}

// Catalog is safe for concurrent use.
type Catalog struct {
	source  Source
	options Options

	// notify is held while OnChange runs, and guards told.
	notify sync.Mutex
	told   *Snapshot

	mu       sync.Mutex
	states   []*state // one per service, in configured order
	snapshot *Snapshot
	asked    time.Time // the last refresh for an unknown name
	logged   map[string]bool
	ready    chan struct{} // closed once every service was asked once
	isReady  bool
}

// state is what is known of one service.
type state struct {
	service  Service
	id       string             // tells it from the others
	manifest *contract.Manifest // nil until it answered once
	lists    map[string]list    // by method; missing until it was asked for once
	err      error              // of the last try
	failures int                // in a row
	failed   time.Time          // when the last failed try began
	due      time.Time          // not asked before
	asking   chan struct{}      // closed when the try under way ends; nil without one
	listing  chan struct{}      // the same for its other lists, which are read after the manifest
}

// New returns a catalog of services, in the order in which they own a name that
// several have. The error names every fault of the list.
func New(source Source, services []Service, options Options) (*Catalog, error) {
	if options.DiscoveryTimeout <= 0 {
		options.DiscoveryTimeout = 5 * time.Second
	}
	if options.RefreshInterval <= 0 {
		options.RefreshInterval = 30 * time.Second
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	c := &Catalog{source: source, options: options, logged: map[string]bool{}, ready: make(chan struct{})}
	var errs []error
	if len(services) == 0 {
		errs = append(errs, errors.New("catalog: no service to serve"))
	}
	for i, s := range services {
		if s.Endpoint == "" {
			s.Endpoint = s.Name
		}
		if s.Name == "" {
			errs = append(errs, fmt.Errorf("catalog: services[%d]: the name is empty", i))
		}
		if err := contract.CheckPrefix(s.Prefix); err != nil {
			errs = append(errs, fmt.Errorf("catalog: service %q: %w", s.Name, err))
		}
		same := func(o *state) bool { return o.service == s }
		if slices.ContainsFunc(c.states, same) {
			errs = append(errs, fmt.Errorf("catalog: service %q on endpoint %q is named twice", s.Name, s.Endpoint))
		}
		c.states = append(c.states, &state{service: s})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, s := range c.states {
		s.id = identify(s.service, c.states)
	}
	c.snapshot = build(c.states)
	c.told = c.snapshot
	return c, nil
}

// Snapshot returns what is known now. It never blocks.
func (c *Catalog) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot
}

// Ready waits until every service has answered or failed once, at most the
// discovery timeout, or until ctx ends; then it returns what is known. It asks
// the services that nobody has asked yet.
func (c *Catalog) Ready(ctx context.Context) *Snapshot {
	idle, _ := c.claim(func(s *state) bool { return s.manifest == nil && s.failures == 0 })
	for _, s := range idle {
		go c.askOne(context.WithoutCancel(ctx), s)
	}
	t := time.NewTimer(c.options.DiscoveryTimeout)
	defer t.Stop()
	select {
	case <-c.ready:
	case <-t.C:
	case <-ctx.Done():
	}
	return c.Snapshot()
}

// minAsk is the least time between two refreshes for unknown names, so that a
// client that calls such names keeps no service busy.
const minAsk = time.Second

// Lookup returns the tool with the served name. For a name that nobody knows
// the services are asked again first, once for all callers that wait.
func (c *Catalog) Lookup(ctx context.Context, name string) (e Entry, ok bool) {
	find := func(s *Snapshot) bool { e, ok = s.Find(name); return ok }
	if !find(c.Snapshot()) && !find(c.Ready(ctx)) {
		c.askAgain(ctx)
		find(c.Snapshot())
	}
	return e, ok
}

// LookupPrompt is [Catalog.Lookup] for a prompt.
func (c *Catalog) LookupPrompt(ctx context.Context, name string) (item Item, ok bool) {
	find := func(s *Snapshot) bool { item, ok = s.FindPrompt(name); return ok }
	if !find(c.Snapshot()) && !find(c.ReadyLists(ctx)) {
		c.askAgain(ctx)
		c.awaitLists(ctx, everyState)
		find(c.Snapshot())
	}
	return item, ok
}

// askAgain asks the services for a name that nobody knows.
func (c *Catalog) askAgain(ctx context.Context) {
	c.mu.Lock()
	wants := refreshable
	if time.Since(c.asked) < minAsk {
		wants = func(*state) bool { return false } // the answers that are on their way count all the same
	} else {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	c.ask(ctx, wants)
}

// Refresh asks every service that answered the last time, or has not been asked
// yet, and those that failed once they are due. It returns when all have
// answered or failed, or ctx ends.
func (c *Catalog) Refresh(ctx context.Context) {
	c.ask(ctx, refreshable)
	c.awaitLists(ctx, everyState)
}

func everyState(*state) bool { return true }

func refreshable(s *state) bool { return s.failures == 0 || due(s) }

func due(s *state) bool { return !time.Now().Before(s.due) }

// Run keeps the catalog fresh until ctx ends.
func (c *Catalog) Run(ctx context.Context) {
	var tries sync.WaitGroup
	defer tries.Wait()
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		idle, _ := c.claim(due)
		for _, s := range idle {
			tries.Go(func() { c.askOne(ctx, s) })
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tickInterval is how soon a service that is due is asked.
const tickInterval = 500 * time.Millisecond

// ask reads the manifests of the services that want to be asked, all at once,
// and returns when they and those that were being asked already have answered,
// or ctx ends. The tries go on then, for others who wait.
func (c *Catalog) ask(ctx context.Context, wants func(*state) bool) {
	idle, tries := c.claim(wants)
	for _, s := range idle {
		go c.askOne(context.WithoutCancel(ctx), s)
	}
	for _, done := range tries {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// claim marks those services as being asked that want it and are not yet; the
// caller must ask each. tries are the ends of all tries that are under way.
func (c *Catalog) claim(wants func(*state) bool) (idle []*state, tries []<-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.states {
		if s.asking == nil && s.listing == nil && wants(s) {
			s.asking = make(chan struct{})
			idle = append(idle, s)
		}
		if s.asking != nil {
			tries = append(tries, s.asking)
		}
	}
	return idle, tries
}

func (c *Catalog) askOne(ctx context.Context, s *state) {
	c.mu.Lock()
	lastErr, failed := s.err, s.failed
	c.mu.Unlock()
	if !c.worthAsking(ctx, s.service, lastErr, failed) {
		c.finish(s, func() { s.due = time.Now().Add(pollInterval) })
		return
	}
	began := time.Now()
	deadline := began.Add(c.options.DiscoveryTimeout)
	m, err := c.manifest(ctx, s.service, deadline)
	c.finish(s, func() {
		switch {
		case err == nil:
			s.err, s.failures, s.manifest = nil, 0, &m
			s.due = time.Now().Add(c.options.RefreshInterval)
			s.listing = make(chan struct{})
		case ctx.Err() == nil:
			s.err, s.failed = err, began
			s.failures++
			s.due = time.Now().Add(retryAfter(s.failures))
		}
	})
	if err != nil {
		return
	}
	// The tools are served, and their names looked up, while more is read.
	lists := c.lists(ctx, s, &m, deadline)
	c.update(func() {
		if ctx.Err() == nil {
			s.lists = lists
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	close(s.listing)
	s.listing = nil
}

// manifest reads a service's whole manifest by the deadline.
func (c *Catalog) manifest(ctx context.Context, s Service, deadline time.Time) (contract.Manifest, error) {
	m, err := contract.Collect(ctx, c.pages(s, ListTools, deadline))
	if err != nil || c.options.Check == nil {
		return m, err
	}
	kept := make([]contract.Tool, 0, len(m.Tools))
	for _, t := range m.Tools {
		if err := c.options.Check(t); err != nil {
			m.Warnings = append(m.Warnings, fmt.Sprintf("tool %q is left out: %v", t.Name, err))
			continue
		}
		kept = append(kept, t)
	}
	m.Tools = kept
	return m, nil
}

// pages returns what reads the pages of one list of a service by the deadline.
func (c *Catalog) pages(s Service, method string, deadline time.Time) contract.PageFunc {
	read := 0
	return func(ctx context.Context, cursor string) (json.RawMessage, error) {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, fmt.Errorf("%s has more than the %d pages that were read within %v", method, read, c.options.DiscoveryTimeout)
		}
		read++
		return c.source.List(ctx, s, method, cursor, left)
	}
}

// finish ends a try. Who waits for it goes on after that: what it sees then is
// served already.
func (c *Catalog) finish(s *state, record func()) {
	c.update(record)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(s.asking)
	s.asking = nil
}

// update records what came of a try and tells of the change.
func (c *Catalog) update(record func()) {
	c.mu.Lock()
	record()
	c.publish()
	c.mu.Unlock()
	told := c.tell()
	c.mu.Lock()
	defer c.mu.Unlock()
	// Another service may have answered meanwhile, and not be served yet.
	if !c.isReady && told.everyServiceAsked() {
		c.isReady = true
		close(c.ready)
	}
}

// worthAsking reports whether a try may end otherwise than the last one. A try
// that reaches no worker counts as a failure in the server's circuit breaker,
// and six in a row block the endpoint for a minute; so after one, the task queue
// is looked at until a worker has shown up there.
func (c *Catalog) worthAsking(ctx context.Context, s Service, lastErr error, failed time.Time) bool {
	if !errors.Is(lastErr, operation.ErrNoAnswer) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.DiscoveryTimeout)
	defer cancel()
	polled, err := c.source.PolledSince(ctx, s, failed)
	return polled || err != nil
}

// pollInterval is how often the task queue of a service that is away is looked
// at.
const pollInterval = time.Second

// retryAfter is the pause after failures in a row: 1 s, doubling to 30 s.
func retryAfter(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 5), 30*time.Second)
}

// publish makes a snapshot of the states. c.mu is held.
func (c *Catalog) publish() {
	c.snapshot = build(c.states)
	now := map[string]bool{}
	for _, w := range c.snapshot.Warnings() {
		now[w] = true
		if !c.logged[w] {
			c.options.Logger.Warn(w)
		}
	}
	c.logged = now
}

// tell hands the latest snapshot on if what it serves differs from what was told
// last, and returns it.
func (c *Catalog) tell() *Snapshot {
	c.notify.Lock()
	defer c.notify.Unlock()
	s := c.Snapshot()
	if s.serves(c.told) {
		return s
	}
	c.told = s
	if c.options.OnChange != nil {
		c.options.OnChange(s)
	}
	return s
}
