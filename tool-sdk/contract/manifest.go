package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Limits of a manifest. They bound what one service can cost its callers.
const (
	// MaxTools is the most tools of one service.
	MaxTools = 10_000
	// MaxManifestPages is the most pages of one manifest.
	MaxManifestPages = 1_000
	// ManifestPageBytes is where a service ends a page: well under the payload
	// limit.
	ManifestPageBytes = 1 << 20
)

// Tool is one tool of a manifest. Raw is the tool object with every field that
// the service sent; the other fields are read from it.
type Tool struct {
	Raw json.RawMessage

	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage // nil where the tool declares none
	Annotations  json.RawMessage // nil where the tool declares none

	// ScheduleToCloseTimeout bounds each call; zero is no bound.
	ScheduleToCloseTimeout time.Duration
	// Encoding is never empty.
	Encoding     Encoding
	Kind         Kind   // empty where the service does not say
	UpstreamName string // empty where the name is the upstream's
}

// Hints are a tool's annotations with the defaults of the MCP specification
// (schema, ToolAnnotations): not read-only, destructive, not idempotent.
type Hints struct{ ReadOnly, Destructive, Idempotent bool }

// Hints reads the tool's annotations.
func (t Tool) Hints() Hints {
	var a struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  bool  `json:"idempotentHint"`
	}
	_ = json.Unmarshal(t.Annotations, &a) // DecodeTool checked the shape
	return Hints{
		ReadOnly:    a.ReadOnly,
		Destructive: !a.ReadOnly && (a.Destructive == nil || *a.Destructive),
		Idempotent:  a.Idempotent,
	}
}

// DecodeTool reads a tool object. The error says which field is wrong.
// Warnings are about fields that were read otherwise than they stand.
func DecodeTool(raw json.RawMessage) (t Tool, warnings []string, err error) {
	o, err := ParseObject(raw)
	if err != nil {
		return Tool{}, nil, err
	}
	t = Tool{
		Raw:          raw,
		InputSchema:  o.Get("inputSchema"),
		OutputSchema: o.Get("outputSchema"),
		Annotations:  o.Get("annotations"),
		Encoding:     EncodingValue,
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	text := func(field string) string {
		v := o.Get(field)
		if IsNull(v) {
			return ""
		}
		var s string
		if json.Unmarshal(v, &s) != nil {
			fail("%s: %s, want a string", field, TypeName(v))
		}
		return s
	}
	t.Name, t.Title, t.Description = text("name"), text("title"), text("description")
	if len(errs) == 0 {
		if err := CheckToolName(t.Name); err != nil {
			fail("name: %w", err)
		}
	}
	if err := CheckInputSchema(t.InputSchema); err != nil {
		fail("inputSchema: %w", err)
	}
	if IsNull(t.OutputSchema) {
		t.OutputSchema = nil
	} else if err := CheckSchema(t.OutputSchema); err != nil {
		fail("outputSchema: %w", err)
	}
	if IsNull(t.Annotations) {
		t.Annotations = nil
	} else if err := checkHints(t.Annotations); err != nil {
		fail("annotations: %w", err)
	}
	if meta := o.Get("_meta"); !IsNull(meta) {
		w, err := t.readMeta(meta)
		warnings = w
		if err != nil {
			fail("_meta: %w", err)
		}
	}
	return t, warnings, errors.Join(errs...)
}

func (t *Tool) readMeta(raw json.RawMessage) (warnings []string, err error) {
	meta, err := splitObject(raw)
	if err != nil {
		return nil, err
	}
	if v := meta.Get(MetaScheduleToClose); v != nil {
		var ms float64
		if json.Unmarshal(v, &ms) != nil || ms <= 0 || ms > float64(1<<53) {
			return nil, fmt.Errorf("%s: %s, want a positive number of milliseconds", MetaScheduleToClose, v)
		}
		t.ScheduleToCloseTimeout = time.Duration(min(ms, float64(1<<63-1)/1e6) * float64(time.Millisecond))
		if t.ScheduleToCloseTimeout < MinScheduleToClose {
			warnings = append(warnings, fmt.Sprintf("%s: %v is shorter than a Temporal server can keep; %v is used",
				MetaScheduleToClose, t.ScheduleToCloseTimeout, MinScheduleToClose))
			t.ScheduleToCloseTimeout = MinScheduleToClose
		}
	}
	if v := meta.Get(MetaEncoding); v != nil {
		if json.Unmarshal(v, &t.Encoding) != nil || t.Encoding != EncodingValue && t.Encoding != EncodingMCP {
			return warnings, fmt.Errorf("%s: %s, want %q or %q", MetaEncoding, v, EncodingValue, EncodingMCP)
		}
	}
	if v := meta.Get(MetaKind); v != nil {
		_ = json.Unmarshal(v, &t.Kind) // a hint
	}
	if v := meta.Get(MetaUpstreamName); v != nil {
		_ = json.Unmarshal(v, &t.UpstreamName) // a hint
	}
	return warnings, nil
}

// CheckSchema returns an error unless raw is a JSON object or boolean, the two
// forms of a JSON Schema (JSON Schema 2020-12, section 4.3).
func CheckSchema(raw json.RawMessage) error {
	if err := checkJSON(raw); err != nil {
		return err
	}
	if name := TypeName(raw); name != "an object" && name != "a boolean" {
		return fmt.Errorf("%s, want an object", name)
	}
	return nil
}

// CheckInputSchema returns an error unless raw is a JSON object whose "type" is
// "object", as MCP asks of an input schema.
func CheckInputSchema(raw json.RawMessage) error {
	if IsNull(raw) {
		return errors.New("there is none; a tool without arguments has {\"type\":\"object\"}")
	}
	o, err := ParseObject(raw)
	if err != nil {
		return err
	}
	var typ string
	if v := o.Get("type"); json.Unmarshal(v, &typ) != nil || typ != "object" {
		return fmt.Errorf("its type is %s, want \"object\"", orNothing(v))
	}
	return nil
}

func orNothing(v json.RawMessage) string {
	if v == nil {
		return "missing"
	}
	return string(v)
}

func checkHints(raw json.RawMessage) error {
	o, err := splitObject(raw)
	if err != nil {
		return err
	}
	for _, key := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if v := o.Get(key); !IsNull(v) && TypeName(v) != "a boolean" {
			return fmt.Errorf("%s: %s, want a boolean", key, TypeName(v))
		}
	}
	return nil
}

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

	// Warnings name each tool that was left out and why, and what else a
	// person should know. They are of this reader, not of the service.
	Warnings []string
}

// DecodeManifest reads one page. A tool that is wrong is left out with a
// warning that names it; a document that is wrong is an error.
func DecodeManifest(raw json.RawMessage) (Manifest, error) {
	o, err := ParseObject(raw)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	var m Manifest
	if v := o.Get("nextCursor"); !IsNull(v) {
		if err := json.Unmarshal(v, &m.NextCursor); err != nil {
			return Manifest{}, fmt.Errorf("manifest: nextCursor: %s, want a string", TypeName(v))
		}
	}
	if err := m.readMeta(o.Get("_meta")); err != nil {
		return Manifest{}, fmt.Errorf("manifest: _meta: %w", err)
	}
	list := o.Get("tools")
	if list == nil {
		return Manifest{}, errors.New("manifest: tools: missing")
	}
	elements, err := splitArray(list)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: tools: %w", err)
	}
	if len(elements) > MaxTools {
		return Manifest{}, fmt.Errorf("manifest: tools: %d of them, at most %d are allowed", len(elements), MaxTools)
	}
	names := make(map[string]bool, len(elements))
	for i, e := range elements {
		m.add(i, e, names)
	}
	return m, nil
}

func (m *Manifest) add(i int, raw json.RawMessage, names map[string]bool) {
	t, warnings, err := DecodeTool(raw)
	place := fmt.Sprintf("tools[%d]", i)
	if t.Name != "" {
		place += fmt.Sprintf(" %.80q", t.Name)
	}
	for _, w := range warnings {
		m.Warnings = append(m.Warnings, place+": "+w)
	}
	if err == nil && names[t.Name] {
		err = errors.New("name: another tool of the service has it")
	}
	if err != nil {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s is left out: %s", place, oneLine(err)))
		return
	}
	names[t.Name] = true
	m.Tools = append(m.Tools, t)
}

func (m *Manifest) readMeta(raw json.RawMessage) error {
	if IsNull(raw) {
		return nil
	}
	meta, err := splitObject(raw)
	if err != nil {
		return err
	}
	if v := meta.Get(MetaContract); v != nil {
		if json.Unmarshal(v, &m.Version) != nil {
			return fmt.Errorf("%s: %s, want an integer", MetaContract, v)
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
	if v := meta.Get(MetaInstructions); v != nil {
		_ = json.Unmarshal(v, &m.Instructions) // prose
	}
	return nil
}

// JSON returns the manifest as one page: the raw tools, the cursor, the `_meta`.
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
	var meta Object
	if m.Version != 0 {
		meta.Set(MetaContract, fmt.Appendf(nil, "%d", m.Version))
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
// An unknown cursor is an error.
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
		if json.Unmarshal(v, &cursor) != nil {
			return "", fmt.Errorf("%s: input: cursor: %s, want a string", OperationListTools, TypeName(v))
		}
	}
	return cursor, nil
}

// Collect reads a whole manifest page by page. The `_meta` is that of the first
// page. A cursor that comes twice, more than [MaxManifestPages] pages or more
// than [MaxTools] tools are an error, so that no service can keep a caller busy
// for ever.
func Collect(ctx context.Context, page func(ctx context.Context, cursor string) (json.RawMessage, error)) (Manifest, error) {
	var all Manifest
	seen := map[string]bool{}
	for n := 0; ; n++ {
		if n == MaxManifestPages {
			return Manifest{}, fmt.Errorf("manifest: more than %d pages", MaxManifestPages)
		}
		raw, err := page(ctx, all.NextCursor)
		if err != nil {
			return Manifest{}, err
		}
		m, err := DecodeManifest(raw)
		if err != nil {
			return Manifest{}, err
		}
		if n == 0 {
			all = m
		} else {
			all.merge(m)
		}
		switch {
		case len(all.Tools) > MaxTools:
			return Manifest{}, fmt.Errorf("manifest: more than %d tools", MaxTools)
		case all.NextCursor == "":
			return all, nil
		case seen[all.NextCursor]:
			return Manifest{}, fmt.Errorf("manifest: the cursor %.80q comes twice", all.NextCursor)
		}
		seen[all.NextCursor] = true
	}
}

func (m *Manifest) merge(page Manifest) {
	names := make(map[string]bool, len(m.Tools))
	for i := range m.Tools {
		names[m.Tools[i].Name] = true
	}
	for _, t := range page.Tools {
		if names[t.Name] {
			page.Warnings = append(page.Warnings, fmt.Sprintf("%q is left out: another tool of the service has the name", t.Name))
			continue
		}
		m.Tools = append(m.Tools, t)
	}
	m.Warnings = append(m.Warnings, page.Warnings...)
	m.NextCursor = page.NextCursor
}
