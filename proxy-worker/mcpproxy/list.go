package mcpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// tool is a tool as it is served.
type tool struct {
	name, upstream string
	plan           plan
	headers        []paramHeader
}

// listing is what an upstream had at one time. It does not change.
type listing struct {
	at       time.Time
	ttl      time.Duration // zero: the upstream does not say
	server   mcpclient.Server
	manifest contract.Manifest
	tools    map[string]*tool // by name
	order    []*tool
	filtered []string        // upstream names
	hidden   map[string]bool // the names that they would have
	warnings []string
	renamed  map[string]string // of those warnings that a tool has another name: in short
}

// maxAge is how old a listing may be to say that there is no such tool.
const maxAge = 5 * time.Second

// lists reads the tools of a session page by page, as they are, within the limits
// of a manifest.
func lists(ctx context.Context, s *mcpclient.Session) (tools []json.RawMessage, ttl time.Duration, err error) {
	size := 0
	_, err = contract.Collect(ctx, func(ctx context.Context, cursor string) (json.RawMessage, error) {
		var params contract.Object
		if cursor != "" {
			params.Set("cursor", contract.Quote(cursor))
		}
		raw, err := s.Call(ctx, mcpclient.Request{Method: "tools/list", Params: params.JSON()})
		if err != nil {
			return nil, err
		}
		page, err := contract.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		elements, err := contract.ParseArray(page.Get("tools"))
		if err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		tools = append(tools, elements...)
		size += len(raw)
		switch {
		case len(tools) > contract.MaxTools:
			return nil, fmt.Errorf("tools: more than %d", contract.MaxTools)
		case size > contract.MaxManifestBytes:
			return nil, fmt.Errorf("more than %d bytes", contract.MaxManifestBytes)
		}
		if d := milliseconds(page.Get("ttlMs")); d > 0 && (ttl == 0 || d < ttl) {
			ttl = d
		}
		// The names are not yet those of operations, so that the guards get the
		// cursor only.
		var rest contract.Object
		rest.Set("tools", contract.Array())
		if v := page.Get("nextCursor"); v != nil {
			rest.Set("nextCursor", v)
		}
		return rest.JSON(), nil
	})
	return tools, ttl, err
}

func milliseconds(raw json.RawMessage) time.Duration {
	var ms float64
	if contract.IsNull(raw) || json.Unmarshal(raw, &ms) != nil || ms <= 0 || ms > float64(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// newListing makes a manifest of an upstream's tools.
func (o *Options) newListing(server mcpclient.Server, raw []json.RawMessage, ttl time.Duration) *listing {
	l := &listing{at: time.Now(), ttl: ttl, server: server, tools: map[string]*tool{}, hidden: map[string]bool{}}
	names := make([]string, 0, len(raw)) // of those that have one
	objects := make([]contract.Object, 0, len(raw))
	seen := map[string]bool{}
	for i, r := range raw {
		object, name, err := named(r)
		switch {
		case err != nil:
			l.warn("tools[%d] is left out: %v", i, err)
		case seen[name]:
			l.warn("tool %.80q is left out: another tool of the server has the name", name)
		default:
			seen[name] = true
			names, objects = append(names, name), append(objects, object)
		}
	}
	operations := operationNames(o.Prefix, names)
	for i, name := range names {
		if !o.serves(name) {
			l.filtered = append(l.filtered, name)
			l.hidden[operations[name]] = true
			continue
		}
		l.add(&tool{name: operations[name], upstream: name, plan: o.plan(name, objects[i].Get("annotations"))}, objects[i], o.Prefix)
	}
	for name := range o.ToolPolicies {
		if !seen[name] {
			l.warn("there is a policy for the tool %q, and the server has no such tool", name)
		}
	}
	const left = "the server's %s: left out, since it takes %d bytes; at most %d are allowed"
	if n := len(server.Info); n > maxAbout {
		l.server.Info = nil
		l.warn(left, "description of itself", n, maxAbout)
	}
	if n := len(contract.Quote(server.Instructions)); n > maxAbout {
		l.server.Instructions = ""
		l.warn(left, "text of instructions", n, maxAbout)
	}
	slices.Sort(l.warnings)
	l.finish()
	return l
}

func (l *listing) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

func named(raw json.RawMessage) (o contract.Object, name string, err error) {
	if o, err = contract.ParseObject(raw); err != nil {
		return o, "", err
	}
	if v := o.Get("name"); contract.TypeName(v) != "a string" {
		return o, "", fmt.Errorf("name: %s, want a string", contract.TypeName(v))
	}
	if err := json.Unmarshal(o.Get("name"), &name); err != nil || name == "" {
		return o, "", fmt.Errorf("name: it is empty")
	}
	return o, name, nil
}

// add makes a tool of the manifest, or a warning.
func (l *listing) add(t *tool, object contract.Object, prefix string) {
	leaveOut := func(err error) {
		l.warn("tool %.80q is left out: %s", t.upstream, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	var meta contract.Object
	if v := object.Get("_meta"); !contract.IsNull(v) {
		var err error
		if meta, err = contract.ParseObject(v); err != nil {
			leaveOut(fmt.Errorf("_meta: %w", err))
			return
		}
	}
	meta.Delete(contract.MetaUpstreamName)
	meta.Set(contract.MetaEncoding, contract.Quote(string(contract.EncodingMCP)))
	meta.Set(contract.MetaKind, contract.Quote(string(contract.KindActivity)))
	meta.Set(contract.MetaScheduleToClose, json.RawMessage(fmt.Sprint(t.plan.policy.ScheduleToCloseTimeout.Milliseconds())))
	if t.name != t.upstream {
		meta.Set(contract.MetaUpstreamName, contract.Quote(t.upstream))
	}
	if t.name != prefix+t.upstream {
		l.warn("tool %.80q is served as %q: its name cannot be that of an operation", t.upstream, t.name)
		if l.renamed == nil {
			l.renamed = map[string]string{}
		}
		l.renamed[l.warnings[len(l.warnings)-1]] = fmt.Sprintf("%.80q as %s", t.upstream, t.name)
	}
	object.Set("name", contract.Quote(t.name))
	object.Set("_meta", meta.JSON())
	raw := object.JSON()
	if len(raw) > contract.ManifestPageBytes { // nothing more is read of it
		leaveOut(fmt.Errorf("it takes %d bytes, at most %d are allowed", len(raw), contract.ManifestPageBytes))
		return
	}
	decoded, warnings, err := contract.DecodeTool(raw)
	if err == nil {
		t.headers, err = paramHeaders(decoded.InputSchema)
	}
	if err == nil && l.tools[t.name] != nil {
		err = fmt.Errorf("the name %q is that of another tool", t.name)
	}
	if err != nil {
		leaveOut(err)
		return
	}
	for _, w := range warnings {
		l.warn("tool %.80q: %s", t.upstream, w)
	}
	l.tools[t.name] = t
	l.order = append(l.order, t)
	l.manifest.Tools = append(l.manifest.Tools, decoded)
}

// finish sets what the manifest says of the service.
func (l *listing) finish() {
	m := &l.manifest
	m.Version = contract.Version
	m.ServerInfo = l.server.Info
	m.Instructions = l.server.Instructions
	m.Capabilities, m.Meta = nil, nil
	var capabilities contract.Object
	for _, name := range []string{"resources", "prompts", "completions"} {
		if l.server.Has(name) {
			capabilities.Set(name, json.RawMessage("{}")) // no subscription, no word of changes
		}
	}
	if capabilities.Len() > 0 {
		m.Capabilities = capabilities.JSON()
	}
	if warnings := bounded(l.warnings); len(warnings) > 0 {
		quoted := make([]json.RawMessage, len(warnings))
		for i, w := range warnings {
			quoted[i] = contract.Quote(w)
		}
		var meta contract.Object
		meta.Set(contract.MetaWarnings, contract.Array(quoted...))
		m.Meta = meta.JSON()
	}
}

// What a manifest has beside its tools goes with each of its pages.
const (
	maxAbout    = 64 << 10 // bytes of instructions, or of what the server says of itself
	maxWarnings = 100
	maxWarning  = 500 // bytes
)

// bounded returns as many warnings as a manifest has room for, each in short.
func bounded(warnings []string) []string {
	shown := make([]string, 0, min(len(warnings), maxWarnings+1))
	for _, w := range warnings[:min(len(warnings), maxWarnings)] {
		if len(w) > maxWarning {
			w = strings.ToValidUTF8(w[:maxWarning], "") + "…"
		}
		shown = append(shown, w)
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more warnings", more))
	}
	return shown
}

// outdated returns the listing with a warning that it could not be made anew.
func (l *listing) outdated(server string) *listing {
	next := *l
	next.warnings = append([]string{fmt.Sprintf(
		"the tools were listed last at %s; the server %q does not answer since", l.at.UTC().Format(time.RFC3339), server)}, l.warnings...)
	next.finish()
	return &next
}
