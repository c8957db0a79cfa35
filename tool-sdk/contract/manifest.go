package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Limits of a manifest. They bound what one service can cost its callers.
const (
	// MaxTools is the most tools of one service, those that are left out
	// counted.
	MaxTools = 10_000
	// MaxManifestPages is the most pages of one manifest.
	MaxManifestPages = 1_000
	// MaxManifestBytes is the most bytes that the pages of one manifest have
	// together.
	MaxManifestBytes = 64 << 20
	// ManifestPageBytes is where a service ends a page: well under the payload
	// limit.
	ManifestPageBytes = 1 << 20
)

// Manifest is what a service says of itself: its tools and its `_meta`.
type Manifest struct {
	Tools      []Tool
	NextCursor string // empty on the last page

	// Version is the service's contract version; 0 where it states none.
	Version int
	// Capabilities, ServerInfo and Instructions are nil or empty where the
	// service states none.
	Capabilities json.RawMessage
	ServerInfo   json.RawMessage
	Instructions string

	// Meta is the whole `_meta` of the service, with what nobody knows; nil
	// where there is none. The fields above win over it in [Manifest.JSON].
	Meta json.RawMessage

	// Warnings name each tool that was left out and why, and what else a
	// person should know. They are of this reader, not of the service.
	Warnings []string
}

// DecodeManifest reads one page. A tool that is wrong is left out with a
// warning that names it; a document that is wrong is an error. A page without
// tools may say null.
func DecodeManifest(raw json.RawMessage) (Manifest, error) {
	c := newCollector()
	if err := c.page(raw, c.read); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	c.all.NextCursor = c.next
	return c.all, nil
}

// collector reads the pages of a manifest.
type collector struct {
	pager
	all   Manifest
	names map[string]bool
}

func newCollector() *collector {
	return &collector{pager: pager{what: "manifest", member: "tools"}, names: map[string]bool{}}
}

func (c *collector) read(o Object, elements []json.RawMessage) error {
	if c.pages == 1 {
		if err := c.all.readMeta(o.Get("_meta")); err != nil {
			return fmt.Errorf("_meta: %w", err)
		}
	}
	for _, e := range elements {
		c.add(e)
	}
	return nil
}

func (c *collector) add(raw json.RawMessage) {
	t, warnings, err := DecodeTool(raw)
	place := fmt.Sprintf("tools[%d]", c.elements)
	c.elements++
	if t.Name != "" {
		place += fmt.Sprintf(" %.80q", t.Name)
	}
	for _, w := range warnings {
		c.all.Warnings = append(c.all.Warnings, place+": "+w)
	}
	if err == nil && c.names[t.Name] {
		err = errors.New("name: another tool of the service has it")
	}
	if err != nil {
		c.all.Warnings = append(c.all.Warnings, fmt.Sprintf("%s is left out: %s", place, oneLine(err)))
		return
	}
	c.names[t.Name] = true
	c.all.Tools = append(c.all.Tools, t)
}

func (m *Manifest) readMeta(raw json.RawMessage) error {
	if IsNull(raw) {
		return nil
	}
	meta, err := splitObject(raw)
	if err != nil {
		return err
	}
	m.Meta = raw
	if v := meta.Get(MetaContract); !IsNull(v) {
		if m.Version, err = strconv.Atoi(string(v)); err != nil {
			return fmt.Errorf("%s: %s, want an integer", MetaContract, brief(v))
		}
		if m.Version > Version {
			m.Warnings = append(m.Warnings, fmt.Sprintf(
				"the service speaks contract version %d, this reader %d: what it does not know is not used", m.Version, Version))
		}
	}
	if v := meta.Get(MetaCapabilities); !IsNull(v) {
		if !isObject(v) {
			return fmt.Errorf("%s: %s, want an object", MetaCapabilities, TypeName(v))
		}
		m.Capabilities = v
	}
	if v := meta.Get(MetaServerInfo); isObject(v) {
		m.ServerInfo = v
	}
	m.Instructions, _ = text(meta.Get(MetaInstructions)) // prose
	return nil
}

// HasCapability reports whether the service has an MCP server capability beyond
// tools: "resources", "prompts", "completions".
func (m *Manifest) HasCapability(name string) bool {
	o, err := ParseObject(m.Capabilities)
	return err == nil && !IsNull(o.Get(name))
}

// JSON returns the manifest as one page: the raw tools, the cursor, the `_meta`.
// It does not check that they fit in a payload, see [Manifest.Page].
func (m *Manifest) JSON() json.RawMessage {
	tools := make([]json.RawMessage, len(m.Tools))
	for i := range m.Tools {
		tools[i] = m.Tools[i].Raw
	}
	var o Object
	o.Set("tools", Array(tools...))
	if m.NextCursor != "" {
		o.Set("nextCursor", Quote(m.NextCursor))
	}
	meta, err := ParseObject(m.Meta)
	if err != nil {
		meta = Object{}
	}
	if m.Version != 0 {
		meta.Set(MetaContract, strconv.AppendInt(nil, int64(m.Version), 10))
	}
	if m.Capabilities != nil {
		meta.Set(MetaCapabilities, m.Capabilities)
	}
	if m.ServerInfo != nil {
		meta.Set(MetaServerInfo, m.ServerInfo)
	}
	if m.Instructions != "" {
		meta.Set(MetaInstructions, Quote(m.Instructions))
	}
	if meta.Len() > 0 {
		o.Set("_meta", meta.JSON())
	}
	return o.JSON()
}

// Page returns the page of a complete manifest that starts at a cursor of an
// earlier page, or the first one for "". Pages end at [ManifestPageBytes].
// An unknown cursor is an error. A cursor is the name of the page's first tool,
// so it holds as long as that tool is there.
func (m *Manifest) Page(cursor string) (Manifest, error) {
	start := 0
	if cursor != "" {
		for start = range m.Tools {
			if m.Tools[start].Name == cursor {
				break
			}
		}
		if len(m.Tools) == 0 || m.Tools[start].Name != cursor {
			return Manifest{}, fmt.Errorf("cursor: %q is none of this manifest's; list from the start again", cursor)
		}
	}
	page := *m
	page.Warnings, page.NextCursor = nil, ""
	size := 0
	for end := start; end < len(m.Tools); end++ {
		size += len(m.Tools[end].Raw)
		if size > ManifestPageBytes && end > start {
			page.Tools, page.NextCursor = m.Tools[start:end], m.Tools[end].Name
			return page, nil
		}
	}
	page.Tools = m.Tools[start:]
	return page, nil
}

// ListInput returns the input of the list operation: null, or the cursor.
func ListInput(cursor string) json.RawMessage {
	if cursor == "" {
		return json.RawMessage("null")
	}
	var o Object
	o.Set("cursor", Quote(cursor))
	return o.JSON()
}

// DecodeListInput returns the cursor of the list operation's input; null, an
// empty object and no input at all ask for the first page.
func DecodeListInput(raw json.RawMessage) (cursor string, err error) {
	if IsNull(raw) {
		return "", nil
	}
	o, err := ParseObject(raw)
	if err != nil {
		return "", fmt.Errorf("%s: input: %w", OperationListTools, err)
	}
	if v := o.Get("cursor"); !IsNull(v) {
		var ok bool
		if cursor, ok = text(v); !ok {
			return "", fmt.Errorf("%s: input: cursor: %s, want a string", OperationListTools, TypeName(v))
		}
	}
	return cursor, nil
}

// Collect reads a whole manifest page by page. The `_meta` is that of the first
// page. A cursor that comes twice, and more pages, tools or bytes than the limits
// allow, are an error, so that no service can keep a caller busy for ever. An
// error of page comes back as it is.
func Collect(ctx context.Context, page PageFunc) (Manifest, error) {
	c := newCollector()
	if err := c.walk(ctx, page, c.read); err != nil {
		return Manifest{}, err
	}
	return c.all, nil
}
