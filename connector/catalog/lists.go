package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// The list methods of MCP. ListTools is answered by the manifest.
const (
	ListTools     = "tools/list"
	ListResources = "resources/list"
	ListTemplates = "resources/templates/list"
	ListPrompts   = "prompts/list"
)

// Capabilities of an MCP server beyond tools that services may have.
const (
	Resources   = "resources"
	Prompts     = "prompts"
	Completions = "completions"
)

// listKind is a list that a service has beside its manifest.
type listKind struct {
	method     string
	capability string // of the services that have it
	member     string // of a result, that has the elements
	key        string // the member of an element that names it
}

var listKinds = []listKind{
	{ListResources, Resources, "resources", "uri"},
	{ListTemplates, Resources, "resourceTemplates", "uriTemplate"},
	{ListPrompts, Prompts, "prompts", "name"},
}

// list is what is known of one list of a service.
type list struct {
	items    []contract.Item
	warnings []string
	err      error // of the last try; the items are of an earlier one then
}

// lists reads every list that the manifest says there is, all at once. One that
// does not come keeps what it had.
func (c *Catalog) lists(ctx context.Context, s *state, m *contract.Manifest, deadline time.Time) map[string]list {
	c.mu.Lock()
	before := s.lists
	c.mu.Unlock()
	var (
		mu      sync.Mutex
		reading sync.WaitGroup
		lists   = map[string]list{}
	)
	for _, kind := range listKinds {
		if !m.HasCapability(kind.capability) {
			continue
		}
		reading.Go(func() {
			var l list
			l.items, l.warnings, l.err = contract.CollectItems(ctx, kind.member, kind.key, c.pages(s.service, kind.method, deadline))
			if l.err != nil {
				l.items = before[kind.method].items
			}
			mu.Lock()
			defer mu.Unlock()
			lists[kind.method] = l
		})
	}
	reading.Wait()
	return lists
}

// ReadyLists is [Catalog.Ready] that waits, within the same time, for the
// services' other lists too.
func (c *Catalog) ReadyLists(ctx context.Context) *Snapshot {
	ctx, cancel := context.WithTimeout(ctx, c.options.DiscoveryTimeout)
	defer cancel()
	c.Ready(ctx)
	c.awaitLists(ctx, func(s *state) bool { return s.lists == nil })
	return c.Snapshot()
}

// awaitLists waits for the lists that are being read, of those services that want
// it.
func (c *Catalog) awaitLists(ctx context.Context, wants func(*state) bool) {
	c.mu.Lock()
	var reading []<-chan struct{}
	for _, s := range c.states {
		if s.listing != nil && wants(s) {
			reading = append(reading, s.listing)
		}
	}
	c.mu.Unlock()
	for _, done := range reading {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// Item is a resource, a resource template or a prompt as it is served.
type Item struct {
	// Key is the served URI, URI template or name.
	Key     string
	Service Service
	// Raw is the service's own object.
	Raw json.RawMessage

	own string
}

// Own returns what the service itself calls it.
func (i Item) Own() string { return i.own }

// Resources returns the resources that are served, sorted by URI.
func (s *Snapshot) Resources() []Item { return s.items[ListResources].all }

// Templates returns the resource templates that are served, sorted by template.
func (s *Snapshot) Templates() []Item { return s.items[ListTemplates].all }

// Prompts returns the prompts that are served, sorted by name.
func (s *Snapshot) Prompts() []Item { return s.items[ListPrompts].all }

// FindPrompt returns the prompt with the served name.
func (s *Snapshot) FindPrompt(name string) (Item, bool) { return s.items[ListPrompts].find(name) }

// Offers reports whether some service has a capability, or may have it: nobody
// knows of one that has never answered.
func (s *Snapshot) Offers(capability string) bool {
	return slices.ContainsFunc(s.Services, func(st ServiceState) bool {
		return st.Manifest == nil || st.Manifest.HasCapability(capability)
	})
}

// Has reports whether a service has a capability.
func (s *Snapshot) Has(service Service, capability string) bool {
	return slices.ContainsFunc(s.Services, func(st ServiceState) bool {
		return st.Service == service && st.Manifest != nil && st.Manifest.HasCapability(capability)
	})
}

// SameResources reports whether both snapshots serve the same resources and
// templates.
func (s *Snapshot) SameResources(o *Snapshot) bool {
	return sameItems(s.Resources(), o.Resources()) && sameItems(s.Templates(), o.Templates())
}

// SamePrompts reports whether both snapshots serve the same prompts.
func (s *Snapshot) SamePrompts(o *Snapshot) bool { return sameItems(s.Prompts(), o.Prompts()) }

func sameItems(a, b []Item) bool {
	return slices.EqualFunc(a, b, func(a, b Item) bool {
		return a.Key == b.Key && a.Service == b.Service && bytes.Equal(a.Raw, b.Raw)
	})
}

// served are the items of one list method over all services.
type served struct {
	all   []Item
	byKey map[string]int
}

func (s served) find(key string) (Item, bool) {
	i, ok := s.byKey[key]
	if !ok {
		return Item{}, false
	}
	return s.all[i], true
}

// merge puts the lists of the services together. A key that several have is the
// first one's; the others' are served under a key that names their service.
func merge(states []*state, method string, key func(Service, string) string, apart func(service, key string) string) served {
	var out served
	taken := map[string]bool{}
	for _, st := range states {
		for _, item := range st.lists[method].items {
			name := key(st.service, item.Key)
			if taken[name] {
				name = apart(st.id, name)
			}
			if taken[name] {
				continue // a service called one of its own by a name that is kept for others
			}
			taken[name] = true
			out.all = append(out.all, Item{Key: name, Service: st.service, Raw: item.Raw, own: item.Key})
		}
	}
	slices.SortFunc(out.all, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	out.byKey = make(map[string]int, len(out.all))
	for i, item := range out.all {
		out.byKey[item.Key] = i
	}
	return out
}

// describeLists says what is known of the lists of a service.
func (st *state) describeLists(to *ServiceState) {
	to.listed = st.lists != nil
	for _, kind := range listKinds {
		l := st.lists[kind.method]
		if l.err != nil {
			to.ListErr = errors.Join(to.ListErr, l.err)
			to.Warnings = append(to.Warnings, fmt.Sprintf("service %q: %s does not come: %v", st.service.Name, kind.method, l.err))
		}
		for _, w := range l.warnings {
			to.Warnings = append(to.Warnings, fmt.Sprintf("service %q: %s", st.service.Name, w))
		}
	}
	to.Resources, to.Prompts = len(st.lists[ListResources].items), len(st.lists[ListPrompts].items)
	for _, item := range st.lists[ListTemplates].items {
		to.templates = append(to.templates, item.Key)
	}
	to.Templates = len(to.templates)
}
