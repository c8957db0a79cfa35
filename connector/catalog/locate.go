package catalog

import (
	"net/url"
	"slices"
	"strings"
)

// apartScheme starts the URIs of resources whose own URI another service has:
// the service, escaped as in a query, a slash, and the URI as it is.
const apartScheme = "nexus:"

func apartURI(service, uri string) string { return apartScheme + service + "/" + uri }

// apartName is the name of a prompt whose own name another service has.
func apartName(service, name string) string { return name + "@" + service }

// identify returns what tells a service from the others: its name, and its
// endpoint where another service has the name too.
func identify(s Service, all []*state) string {
	id := url.QueryEscape(s.Name)
	if slices.ContainsFunc(all, func(o *state) bool { return o.service != s && o.service.Name == s.Name }) {
		id += "=" + url.QueryEscape(s.Endpoint)
	}
	return id
}

// Target is a service that may have a resource, under the URI that it has there.
type Target struct {
	Service Service
	URI     string
	// Guess tells that nothing says that the service has it: it has not listed the
	// resource, nor does the URI name it.
	Guess bool

	apart string // what identifies the service, where the URI was asked for so
}

// Served returns the URI under which clients find a URI of the target's service.
func (t Target) Served(uri string) string {
	if t.apart == "" {
		return uri
	}
	return apartURI(t.apart, uri)
}

// Locate returns the services that may have the resource, in the order to ask
// them: the one that listed it, or that its URI names; else those with a template
// that it fits, and then all others that have resources.
func (s *Snapshot) Locate(uri string) []Target {
	if item, ok := s.items[ListResources].find(uri); ok {
		return []Target{s.target(item, uri)}
	}
	if t, ok := s.named(uri); ok {
		return []Target{t}
	}
	var fitting, others []Target
	for _, st := range s.Services {
		if st.Manifest == nil || !st.Manifest.HasCapability(Resources) {
			continue
		}
		t := Target{Service: st.Service, URI: uri, Guess: true}
		if slices.ContainsFunc(st.templates, func(template string) bool { return fits(template, uri) }) {
			fitting = append(fitting, t)
		} else {
			others = append(others, t)
		}
	}
	return append(fitting, others...)
}

// LocateRef is [Snapshot.Locate] for the reference of a completion, which may be
// a URI template.
func (s *Snapshot) LocateRef(uri string) []Target {
	if item, ok := s.items[ListTemplates].find(uri); ok {
		return []Target{s.target(item, uri)}
	}
	return s.Locate(uri)
}

func (s *Snapshot) target(item Item, asked string) Target {
	t := Target{Service: item.Service, URI: item.Own()}
	if t.URI != asked {
		t.apart = s.ids[item.Service]
	}
	return t
}

// named reads a URI of the form that names its service.
func (s *Snapshot) named(uri string) (Target, bool) {
	rest, ok := strings.CutPrefix(uri, apartScheme)
	id, own, found := strings.Cut(rest, "/")
	if !ok || !found {
		return Target{}, false
	}
	for _, st := range s.Services {
		if s.ids[st.Service] == id {
			return Target{Service: st.Service, URI: own, apart: id}, true
		}
	}
	return Target{}, false
}

// fits reports whether a URI may be an expansion of a template (RFC 6570): the
// literal parts are there, in order. The service knows the rest.
func fits(template, uri string) bool {
	first := true
	for template != "" {
		literal, rest, expression := strings.Cut(template, "{")
		at := strings.Index(uri, literal)
		switch {
		case at < 0 || first && at > 0:
			return false
		case !expression && !first:
			return strings.HasSuffix(uri, literal)
		case !expression:
			return uri == literal
		}
		uri = uri[at+len(literal):]
		if _, template, expression = strings.Cut(rest, "}"); !expression {
			return false // no template
		}
		first = false
	}
	return !first || uri == ""
}
