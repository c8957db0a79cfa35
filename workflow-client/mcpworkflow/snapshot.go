package mcpworkflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Entry is one tool as a Workflow calls it.
type Entry struct {
	// Name is the name to call: the prefix of the service and the tool's name.
	Name    string
	Service Service
	Tool    contract.Tool
}

// ServiceState is what one service answered.
type ServiceState struct {
	Service Service
	// Manifest is nil for a service that did not answer.
	Manifest *contract.Manifest
	// Error says why it did not; empty if it did.
	Error string
	// Warnings name the tools that are left out, and why.
	Warnings []string
}

// Snapshot is what the services have, at the moment when they were asked. It does
// not change. As JSON it can be part of a Workflow's input or result, and be
// handed to the next run by continue-as-new; mind that a payload holds 2 MiB.
type Snapshot struct {
	// Entries are sorted by name.
	Entries []Entry
	// Services are in the order of [Options.Services].
	Services []ServiceState

	drift string // how the services differ from it, where that was checked
}

// Find returns the tool with the name.
func (s *Snapshot) Find(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.Entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Entry{}, false
	}
	return s.Entries[i], true
}

// Warnings returns what a person should know, in order: services that did not
// answer, tools that are left out, and that the services have other tools by now.
// A snapshot from JSON has them too, but for the last: that is for its client to
// find out.
func (s *Snapshot) Warnings() []string {
	var all []string
	if s.drift != "" {
		all = append(all, s.drift)
	}
	for _, st := range s.Services {
		if st.Error != "" {
			all = append(all, fmt.Sprintf("service %q (endpoint %q) does not answer: %s", st.Service.Name, st.Service.Endpoint, st.Error))
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

// Hash returns 32 hex digits that two snapshots share only if they have the same
// tools, member for member, under the same names and of the same services. What
// a trip as JSON changes does not count: white space, key order, the spelling of
// escapes.
func (s *Snapshot) Hash() string {
	tools := make([]json.RawMessage, len(s.Entries))
	for i, e := range s.Entries {
		tools[i] = contract.Array(contract.Quote(e.Name), contract.Quote(e.Service.Name), contract.Quote(e.Service.Endpoint), e.Tool.Raw)
	}
	return contract.Digest(contract.Array(tools...))
}

// stateJSON is a service of a snapshot as JSON.
type stateJSON struct {
	Service
	Manifest json.RawMessage `json:"manifest,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Warnings are those of the manifest as the service sent it: what they name
	// is left out of the manifest here.
	Warnings []string `json:"warnings,omitempty"`
}

type snapshotJSON struct {
	Services []stateJSON `json:"services"`
}

// MarshalJSON implements [json.Marshaler].
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	out := snapshotJSON{Services: make([]stateJSON, len(s.Services))}
	for i, st := range s.Services {
		out.Services[i] = stateJSON{Service: st.Service, Error: st.Error}
		if st.Manifest != nil {
			out.Services[i].Manifest, out.Services[i].Warnings = st.Manifest.JSON(), st.Manifest.Warnings
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	var in snapshotJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("mcpworkflow: snapshot: %w", err)
	}
	answers := make([]answer, len(in.Services))
	for i, st := range in.Services {
		answers[i] = answer{service: st.Service, fault: st.Error}
		if st.Manifest != nil {
			m, err := contract.DecodeManifest(st.Manifest)
			if err != nil {
				return fmt.Errorf("mcpworkflow: snapshot: service %q: %w", st.Name, err)
			}
			m.Warnings = st.Warnings
			answers[i].manifest = &m
		}
	}
	*s = *build(answers)
	return nil
}

func (s *Snapshot) services() []Service {
	all := make([]Service, len(s.Services))
	for i, st := range s.Services {
		all[i] = st.Service
	}
	return all
}

// answer is what came of asking one service.
type answer struct {
	service  Service
	manifest *contract.Manifest
	fault    string
}

// build merges what the services said. Their order decides who owns a name that
// several have.
func build(answers []answer) *Snapshot {
	snapshot := &Snapshot{}
	owners := map[string]Service{}
	for _, a := range answers {
		state := ServiceState{Service: a.service, Manifest: a.manifest, Error: a.fault}
		warn := func(format string, args ...any) {
			state.Warnings = append(state.Warnings, fmt.Sprintf("service %q: ", a.service.Name)+fmt.Sprintf(format, args...))
		}
		var tools []contract.Tool
		if a.manifest != nil {
			for _, w := range a.manifest.Warnings {
				warn("%s", w)
			}
			tools = a.manifest.Tools
		}
		for _, tool := range tools {
			name := contract.Prefixed(a.service.Prefix, tool.Name)
			owner, taken := owners[name]
			switch err := contract.CheckToolName(name); {
			case err != nil:
				warn("tool %q is left out: with the prefix, %v", tool.Name, err)
			case taken:
				warn("tool %q is left out: service %q has a tool that is called %q too; give one of the two a Service.Prefix",
					tool.Name, owner.Name, name)
			default:
				owners[name] = a.service
				snapshot.Entries = append(snapshot.Entries, Entry{Name: name, Service: a.service, Tool: tool})
			}
		}
		snapshot.Services = append(snapshot.Services, state)
	}
	slices.SortFunc(snapshot.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return snapshot
}
