package catalog

// An internal test: how a URI is held against a template does not show from
// outside, since it decides only who is asked first.

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestFits(t *testing.T) {
	t.Parallel()

	for template, uris := range map[string]map[string]bool{
		"a:///{id}":         {"a:///7": true, "a:///": true, "b:///7": false, "xa:///7": false},
		"a:///{id}/b":       {"a:///7/b": true, "a:///7/b/c": false, "a:///7": false, "a:///b/b/b": true},
		"a:///{x}/{+y}.txt": {"a:///1/2/3.txt": true, "a:///1.txt": false},
		"a:///fixed":        {"a:///fixed": true, "a:///fixed2": false},
		"{+any}":            {"whatever": true},
		"a:///{broken":      {"a:///x": false},
		"":                  {"": true, "a": false},
	} {
		for uri, want := range uris {
			require.Equal(t, want, fits(template, uri), "%s %s", template, uri)
		}
	}
}

func TestServicesAreIdentified(t *testing.T) {
	t.Parallel()

	states := []*state{
		{service: Service{Name: "a b/c=", Endpoint: "x"}}, {service: Service{Name: "twin", Endpoint: "one"}},
		{service: Service{Name: "twin", Endpoint: "t/wo"}},
	}
	require.Equal(t, "a+b%2Fc%3D", identify(states[0].service, states))
	require.Equal(t, "twin=one", identify(states[1].service, states))
	require.Equal(t, "twin=t%2Fwo", identify(states[2].service, states))
}

// FuzzLocate: a URI that somebody asks for leads to services that are there, and
// comes back as it was asked for.
func FuzzLocate(f *testing.F) {
	one, two := Service{Name: "a b/c=", Endpoint: "x"}, Service{Name: "twin", Endpoint: "t/wo"}
	resources := &contract.Manifest{Capabilities: json.RawMessage(`{"resources":{}}`)}
	states := []*state{
		{service: one, manifest: resources}, {service: two, manifest: resources}, {service: Service{Name: "twin", Endpoint: "one"}},
	}
	for _, s := range states {
		s.id = identify(s.service, states)
	}
	snapshot := build(states)
	for _, seed := range [][2]string{
		{"a:///{id}/b", "a:///7/b"}, {"{+any}", "nexus:a+b%2Fc%3D/a:///1"}, {"{", "nexus:twin=t%2Fwo/"}, {"}{", "nexus:twin/x"}, {"a{}a{}a", "aaaa"}, {"", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, template, uri string) {
		if fits(template, uri) {
			literal, _, _ := strings.Cut(template, "{")
			require.True(t, strings.HasPrefix(uri, literal))
		}
		for _, located := range [][]Target{snapshot.Locate(uri), snapshot.LocateRef(uri)} {
			for _, target := range located {
				require.Contains(t, []string{one.Name, two.Name}, target.Service.Name)
				require.Equal(t, uri, target.Served(target.URI))
			}
		}
		apart := snapshot.Locate(apartURI(states[1].id, uri))
		require.Len(t, apart, 1)
		require.Equal(t, two, apart[0].Service)
		require.Equal(t, uri, apart[0].URI)
	})
}
