package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Entry is one tool as it is served.
type Entry struct {
	// Name is the served name: the prefix of the service and the tool's name.
	Name    string
	Service Service
	Tool    contract.Tool
}

// ServiceState is what is known of one service.
type ServiceState struct {
	Service Service
	// Manifest is nil for a service that has never answered.
	Manifest *contract.Manifest
	// Err is why the last try failed, nil if it did not. The tools of an
	// earlier answer stay served.
	Err error
	// Warnings name the tools that are left out, and why, and the lists that do
	// not come.
	Warnings []string
	// ListErr is why the last try at the service's other lists failed. What an
	// earlier answer had stays served.
	ListErr error
	// Resources, Templates and Prompts are how many of each the service has.
	Resources, Templates, Prompts int

	listed    bool // its other lists were asked for once
	templates []string
}

// Snapshot is the catalog at one moment. It does not change.
type Snapshot struct {
	// Entries are sorted by name.
	Entries []Entry
	// Services are in configured order.
	Services []ServiceState

	byName map[string]int
	items  map[string]served // by list method
	ids    map[Service]string
}

// Find returns the tool with the served name.
func (s *Snapshot) Find(name string) (Entry, bool) {
	i, ok := s.byName[name]
	if !ok {
		return Entry{}, false
	}
	return s.Entries[i], true
}

// Owner returns the entry of an operation, for a name to show.
func (s *Snapshot) Owner(endpoint, service, operation string) (Entry, bool) {
	for _, e := range s.Entries {
		if e.Service.Endpoint == endpoint && e.Service.Name == service && e.Tool.Name == operation {
			return e, true
		}
	}
	return Entry{}, false
}

// Complete reports whether every service answered the last time.
func (s *Snapshot) Complete() bool {
	return !slices.ContainsFunc(s.Services, func(st ServiceState) bool { return st.Err != nil || st.Manifest == nil })
}

// CompleteLists is [Snapshot.Complete] for the services' other lists too.
func (s *Snapshot) CompleteLists() bool {
	return s.Complete() && !slices.ContainsFunc(s.Services, func(st ServiceState) bool { return !st.listed || st.ListErr != nil })
}

// everyServiceAsked reports whether each has answered or failed once.
func (s *Snapshot) everyServiceAsked() bool {
	return !slices.ContainsFunc(s.Services, func(st ServiceState) bool { return st.Err == nil && st.Manifest == nil })
}

// Answered reports whether any service has ever answered.
func (s *Snapshot) Answered() bool {
	return slices.ContainsFunc(s.Services, func(st ServiceState) bool { return st.Manifest != nil })
}

// Warnings returns what a person should know, in order.
func (s *Snapshot) Warnings() []string {
	var all []string
	for _, st := range s.Services {
		if st.Err != nil {
			kept := ""
			if st.Manifest != nil {
				kept = " The tools that it had before stay served."
			}
			all = append(all, fmt.Sprintf("service %q (endpoint %q) does not answer: %v%s",
				st.Service.Name, st.Service.Endpoint, st.Err, kept))
		}
		all = append(all, st.Warnings...)
	}
	return all
}

// Instructions returns what the services tell a model, each under its name.
func (s *Snapshot) Instructions() string {
	var parts []string
	for _, st := range s.Services {
		if st.Manifest != nil && st.Manifest.Instructions != "" {
			parts = append(parts, st.Service.Name+": "+st.Manifest.Instructions)
		}
	}
	return strings.Join(parts, "\n\n")
}

// build merges what the services said. The order of the services decides who
// owns a name that several have.
func build(states []*state) *Snapshot {
	snapshot := &Snapshot{byName: map[string]int{}, items: map[string]served{}, ids: map[Service]string{}}
	owners := map[string]Entry{}
	for _, st := range states {
		public := ServiceState{Service: st.service, Manifest: st.manifest, Err: st.err}
		if st.manifest != nil {
			warn := func(format string, args ...any) {
				public.Warnings = append(public.Warnings, fmt.Sprintf("service %q: ", st.service.Name)+fmt.Sprintf(format, args...))
			}
			for _, w := range st.manifest.Warnings {
				warn("%s", w)
			}
			for _, tool := range st.manifest.Tools {
				e := Entry{Name: contract.Prefixed(st.service.Prefix, tool.Name), Service: st.service, Tool: tool}
				if err := contract.CheckToolName(e.Name); err != nil {
					warn("tool %q is left out: with the prefix, %v", tool.Name, err)
					continue
				}
				if owner, taken := owners[e.Name]; taken {
					warn("tool %q is left out: service %q has a tool that is served as %q too; give one of the two a prefix (--service %s=%s,prefix=P)",
						tool.Name, owner.Service.Name, e.Name, st.service.Name, st.service.Endpoint)
					continue
				}
				owners[e.Name] = e
			}
		}
		st.describeLists(&public)
		snapshot.Services = append(snapshot.Services, public)
		snapshot.ids[st.service] = st.id
	}
	own := func(_ Service, key string) string { return key }
	prefixed := func(s Service, name string) string { return contract.Prefixed(s.Prefix, name) }
	snapshot.items[ListResources] = merge(states, ListResources, own, apartURI)
	snapshot.items[ListTemplates] = merge(states, ListTemplates, own, apartURI)
	snapshot.items[ListPrompts] = merge(states, ListPrompts, prefixed, apartName)
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		snapshot.byName[name] = len(snapshot.Entries)
		snapshot.Entries = append(snapshot.Entries, owners[name])
	}
	return snapshot
}

// serves reports whether both snapshots serve the same.
func (s *Snapshot) serves(o *Snapshot) bool {
	return s.SameResources(o) && s.SamePrompts(o) && slices.EqualFunc(s.Entries, o.Entries, func(a, b Entry) bool {
		return a.Name == b.Name && a.Service == b.Service && bytes.Equal(a.Tool.Raw, b.Tool.Raw)
	})
}
