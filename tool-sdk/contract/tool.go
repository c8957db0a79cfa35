package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
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
	hint := func(string) (value, given bool) { return false, false }
	if o, err := ParseObject(t.Annotations); err == nil {
		hint = func(key string) (value, given bool) {
			v := o.Get(key)
			return string(v) == "true", !IsNull(v)
		}
	}
	readOnly, _ := hint("readOnlyHint")
	idempotent, _ := hint("idempotentHint")
	destructive, given := hint("destructiveHint")
	return Hints{
		ReadOnly:    readOnly,
		Destructive: !readOnly && (destructive || !given),
		Idempotent:  idempotent,
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
	str := func(field string) (s string, ok bool) {
		v := o.Get(field)
		if IsNull(v) {
			return "", true
		}
		if s, ok = text(v); !ok {
			fail("%s: %s, want a string", field, TypeName(v))
		}
		return s, ok
	}
	name, ok := str("name")
	if t.Name = name; ok {
		if err := CheckToolName(name); err != nil {
			fail("name: %w", err)
		}
	}
	t.Title, _ = str("title")
	t.Description, _ = str("description")
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
	if v := meta.Get(MetaScheduleToClose); !IsNull(v) {
		var ms float64
		if json.Unmarshal(v, &ms) != nil || ms <= 0 {
			return nil, fmt.Errorf("%s: %s, want a positive number of milliseconds", MetaScheduleToClose, brief(v))
		}
		t.ScheduleToCloseTimeout = milliseconds(ms)
		if t.ScheduleToCloseTimeout < MinScheduleToClose {
			warnings = append(warnings, fmt.Sprintf("%s: %v is shorter than a Temporal server can keep; %v is used",
				MetaScheduleToClose, t.ScheduleToCloseTimeout, MinScheduleToClose))
			t.ScheduleToCloseTimeout = MinScheduleToClose
		}
	}
	if v := meta.Get(MetaEncoding); !IsNull(v) {
		encoding, _ := text(v)
		if t.Encoding = Encoding(encoding); t.Encoding != EncodingValue && t.Encoding != EncodingMCP {
			return warnings, fmt.Errorf("%s: %s, want %q or %q", MetaEncoding, brief(v), EncodingValue, EncodingMCP)
		}
	}
	// The rest are hints.
	kind, _ := text(meta.Get(MetaKind))
	t.Kind = Kind(kind)
	t.UpstreamName, _ = text(meta.Get(MetaUpstreamName))
	return warnings, nil
}

// milliseconds returns the longest duration there is for what is longer.
func milliseconds(ms float64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	if ms >= float64(most) {
		return time.Duration(most) * time.Millisecond
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// CheckSchema returns an error unless raw is a JSON object or boolean, the two
// forms of a JSON Schema (JSON Schema 2020-12, section 4.3).
func CheckSchema(raw json.RawMessage) error {
	if err := checkJSON(raw); err != nil {
		return err
	}
	if name := TypeName(raw); name != "an object" && name != "a boolean" {
		return fmt.Errorf("%s, want an object or a boolean", name)
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
	v := o.Get("type")
	if typ, _ := text(v); typ != "object" {
		return fmt.Errorf("type: %s, want \"object\"", brief(v))
	}
	return nil
}

// brief is a value for a message, of bounded length.
func brief(v json.RawMessage) string {
	switch {
	case v == nil:
		return "missing"
	case len(v) > 80:
		return strings.ToValidUTF8(string(v[:80]), "") + "…"
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
