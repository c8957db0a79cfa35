package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
)

// mapKey is the member that holds the map of servers; without it the document
// is the map.
const mapKey = "mcpServers"

// Options are what a file does not say. The zero value works.
type Options struct {
	// Lookup returns an environment variable. Defaults to [os.LookupEnv].
	Lookup func(string) (string, bool)
	// Home returns what ~ stands for. Defaults to [os.UserHomeDir].
	Home func() (string, error)
	// ContinueOnError holds for servers that do not say.
	ContinueOnError bool
	// PrefixWithServerName makes the key the prefix of servers that do not say.
	PrefixWithServerName bool
	// Only are the keys of the servers to read; the others are as if disabled.
	// Empty: all.
	Only []string
}

// File is what a file says.
type File struct {
	// Servers are in the file's order, without those that are disabled.
	Servers []Server
	// Skipped are the servers that could not be resolved here and that may be missing.
	Skipped []Skipped
	// Disabled are the keys of the servers that are switched off.
	Disabled []string
	Warnings []string
}

// Skipped is a server that goes without, for continue_on_error.
type Skipped struct {
	Key, Path string
	Err       error
}

// Error is a file that is wrong. Faults has one line for each thing that is;
// Warnings, which may be the reason, are said with them.
type Error struct {
	Source   string
	Faults   []string
	Warnings []string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Source + ": ")
	if len(e.Faults) == 1 {
		b.WriteString(e.Faults[0])
	} else {
		fmt.Fprintf(&b, "%d faults\n  %s", len(e.Faults), strings.Join(e.Faults, "\n  "))
	}
	for _, w := range e.Warnings {
		b.WriteString("\n  warning: " + w)
	}
	return b.String()
}

// maxBytes bounds a file; one with a thousand servers has less.
const maxBytes = 16 << 20

// Load reads the file that source names: a path, a file:// path, or - for stdin.
// Its errors are an [*Error].
func Load(source string, stdin io.Reader, o Options) (*File, error) {
	name := source
	if source == "-" {
		name = "standard input"
	}
	data, err := read(source, stdin)
	if err != nil {
		return nil, &Error{Source: name, Faults: []string{err.Error()}}
	}
	f, faults := parse(data, o)
	if len(faults) > 0 {
		return nil, &Error{name, faults, f.Warnings}
	}
	return f, nil
}

func read(source string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if source != "-" {
		path, err := localPath(source)
		if err != nil {
			return nil, err
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, reason(err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	switch {
	case err != nil:
		return nil, reason(err)
	case len(data) > maxBytes:
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	return data, nil
}

// reason leaves out the operation and the path, which the message has already.
func reason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func localPath(source string) (string, error) {
	rest, ok := strings.CutPrefix(source, "file://")
	if !ok {
		return source, nil
	}
	rest = strings.TrimPrefix(rest, "localhost")
	path, err := url.PathUnescape(rest)
	switch {
	case err != nil:
		return "", errors.New("the file:// path has a % that is no escape; write it %25")
	case path == "":
		return "", errors.New("the file:// path is empty")
	}
	return path, nil
}

func parse(data []byte, o Options) (*File, []string) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	if o.Home == nil {
		o.Home = os.UserHomeDir
	}
	root, twice, err := parseJSON(data)
	if err != nil {
		return &File{}, []string{err.Error()}
	}
	f := &File{}
	all := faults{twice}
	path, servers := "", root
	if nested := root.member(mapKey); nested != nil {
		path, servers = mapKey, nested
		for _, m := range root.members {
			if m.key != mapKey {
				f.Warnings = append(f.Warnings, fmt.Sprintf("%s: unknown key, ignored; %s (line %d)", join("", m.key), suggestion(m.key, []string{mapKey}), m.value.line))
			}
		}
	}
	if servers.kind != kindObject {
		where := path
		if where == "" {
			where = "the document"
		}
		all.add(where, servers, "want an object of servers, but it is %s", servers.kind)
		return f, all.lines
	}
	if len(servers.members) == 0 {
		all.lines = append(all.lines, "there is no server in it")
	}
	all.lines = append(all.lines, unknownNames(o.Only, servers)...)
	for _, m := range servers.members {
		f.server(&all, join(path, m.key), m, o)
	}
	f.clashes(&all)
	return f, all.lines
}

func unknownNames(only []string, servers *node) (lines []string) {
	known := make([]string, len(servers.members))
	for i, m := range servers.members {
		known[i] = m.key
	}
	for _, name := range only {
		if n := servers.member(name); n == nil && len(known) > 0 {
			lines = append(lines, fmt.Sprintf("there is no server %q; %s", name, suggestion(name, known)))
		} else if n != nil && isDisabled(n) {
			lines = append(lines, fmt.Sprintf("the server %q is disabled", name))
		}
	}
	return lines
}

func isDisabled(n *node) bool {
	d := n.member("disabled")
	return d != nil && d.truth
}

// server adds one entry's server, unless it is switched off.
func (f *File) server(all *faults, path string, m member, o Options) {
	e := &entry{faults: all, warnings: &f.Warnings, lookup: o.Lookup}
	switch {
	case m.value.kind != kindObject:
		e.object(path, m.value)
		return
	case isDisabled(m.value):
		f.Disabled = append(f.Disabled, m.key)
		return
	case len(o.Only) > 0 && !slices.Contains(o.Only, m.key):
		return
	}
	entry, _ := e.object(path, m.value, serverKeys...)
	entry.boolean("disabled")
	s := entry.server(m.key, o)
	switch {
	case len(e.unresolved.lines) == 0:
		f.Servers = append(f.Servers, s)
	case s.Options.ContinueOnError:
		f.Skipped = append(f.Skipped, Skipped{s.Key, s.Path, errors.New(strings.Join(e.unresolved.lines, "; "))})
	default:
		all.lines = append(all.lines, e.unresolved.lines...)
	}
}

// clashes are servers that callers could not tell apart.
func (f *File) clashes(all *faults) {
	services, prefixes := map[string]*Server{}, map[string]*Server{}
	for i := range f.Servers {
		s := &f.Servers[i]
		if first := services[s.Service]; first != nil && first.Key == s.Key {
			continue // a key that is there twice, which is said
		} else if first != nil {
			all.lines = append(all.lines, fmt.Sprintf("%s: it has the same service name as %s; give one of them another service", s.Path, first.Path))
		} else {
			services[s.Service] = s
		}
		if s.Options.Prefix == "" {
			continue
		}
		if first := prefixes[s.Options.Prefix]; first != nil && (first.prefixFromKey || s.prefixFromKey) {
			all.lines = append(all.lines, fmt.Sprintf("%s: it has the same prefix as %s, made of its key; give one of them a prefix", s.Path, first.Path))
		} else if first == nil {
			prefixes[s.Options.Prefix] = s
		}
	}
}
