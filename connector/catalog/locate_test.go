package catalog

// An internal test: how a URI is held against a template does not show from
// outside, since it decides only who is asked first.

import (
	"testing"

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
