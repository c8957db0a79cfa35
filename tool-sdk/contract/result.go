package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is an MCP CallToolResult (or an input-required result) as bytes.
// Its methods read parts of it; none decodes and encodes the whole.
type Result struct{ raw json.RawMessage }

// DecodeResult checks the shape that the MCP specification asks of a
// CallToolResult: an object whose content, where there is any, is an array of
// objects. Content types and fields that nobody knows pass.
func DecodeResult(raw json.RawMessage) (Result, error) {
	o, err := ParseObject(raw)
	if err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	if content := o.Get("content"); !IsNull(content) {
		blocks, err := splitArray(content)
		if err != nil {
			return Result{}, fmt.Errorf("result: content: %w", err)
		}
		for i, b := range blocks {
			if !isObject(b) {
				return Result{}, fmt.Errorf("result: content[%d]: %s, want an object", i, TypeName(b))
			}
		}
	}
	if v := o.Get("isError"); !IsNull(v) && TypeName(v) != "a boolean" {
		return Result{}, fmt.Errorf("result: isError: %s, want a boolean", TypeName(v))
	}
	if v := o.Get("_meta"); !IsNull(v) && !isObject(v) {
		return Result{}, fmt.Errorf("result: _meta: %s, want an object", TypeName(v))
	}
	return Result{raw}, nil
}

// ValueResult wraps the value of a tool with the value encoding, as bytes:
// an object is structured content and its JSON as one text block; a string that
// text; any other value its JSON as text; null no block. With an output schema
// the value is structured content whatever its type. The text copy has no HTML
// escapes and every digit.
func ValueResult(value json.RawMessage, hasOutputSchema bool) (Result, error) {
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	if err := checkJSON(value); err != nil {
		return Result{}, fmt.Errorf("value: %w", err)
	}
	value = bytes.TrimSpace(value)
	var o Object
	o.Set("content", Array(textCopy(value)...))
	if isObject(value) || hasOutputSchema {
		o.Set("structuredContent", value)
	}
	return Result{o.JSON()}, nil
}

// textCopy returns the blocks that stand for a value where there is only text.
func textCopy(value json.RawMessage) []json.RawMessage {
	switch TypeName(value) {
	case "null":
		return nil
	case "a string":
		return []json.RawMessage{textBlock(value)}
	}
	return []json.RawMessage{textBlock(Quote(string(UnescapeHTML(value))))}
}

// WithTextCopy returns the result with a text block for its structured content, as
// [ValueResult] makes one, unless it has a text block: for readers that know no
// structured content.
func (r Result) WithTextCopy() Result {
	structured := r.Structured()
	if _, has := r.Text(); has || IsNull(structured) {
		return r
	}
	o, err := splitObject(r.JSON())
	if err != nil {
		return r
	}
	o.Set("content", Array(append(r.Content(), textCopy(structured)...)...))
	return Result{o.JSON()}
}

// TextResult is a result of one text block.
func TextResult(text string, isError bool) Result {
	var o Object
	o.Set("content", Array(textBlock(Quote(text))))
	if isError {
		o.Set("isError", json.RawMessage("true"))
	}
	return Result{o.JSON()}
}

func textBlock(quoted json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"type":"text","text":` + string(quoted) + `}`)
}

// JSON returns the result's bytes; `{"content":[]}` for the zero Result.
func (r Result) JSON() json.RawMessage {
	if r.raw == nil {
		return json.RawMessage(`{"content":[]}`)
	}
	return r.raw
}

// MarshalJSON implements [json.Marshaler].
func (r Result) MarshalJSON() ([]byte, error) { return r.JSON(), nil }

// UnmarshalJSON implements [json.Unmarshaler], by [DecodeResult]: a result goes
// through Temporal like any other value.
func (r *Result) UnmarshalJSON(data []byte) error {
	read, err := DecodeResult(bytes.Clone(data))
	if err != nil {
		return err
	}
	*r = read
	return nil
}

func (r Result) get(key string) json.RawMessage {
	o, err := splitObject(r.JSON())
	if err != nil {
		return nil
	}
	return o.Get(key)
}

// IsError reports whether the tool reported an error.
func (r Result) IsError() bool { return string(r.get("isError")) == "true" }

// NeedsInput reports whether this is an input-required result.
func (r Result) NeedsInput() bool {
	typ, _ := text(r.get("resultType"))
	return typ == "input_required"
}

// Structured returns the structured content as bytes, nil where there is none.
func (r Result) Structured() json.RawMessage { return r.get("structuredContent") }

// Meta returns one value of the result's `_meta`, nil where there is none.
func (r Result) Meta(key string) json.RawMessage {
	meta := r.get("_meta")
	if !isObject(meta) {
		return nil
	}
	o, err := splitObject(meta)
	if err != nil {
		return nil
	}
	return o.Get(key)
}

// Content returns the content blocks as bytes.
func (r Result) Content() []json.RawMessage {
	content := r.get("content")
	if IsNull(content) {
		return nil
	}
	blocks, _ := splitArray(content)
	return blocks
}

// Text returns the text blocks joined by newlines, and whether there is any.
func (r Result) Text() (string, bool) {
	var texts []string
	for _, b := range r.Content() {
		block, err := splitObject(b)
		if err != nil {
			continue
		}
		if typ, _ := text(block.Get("type")); typ != "text" {
			continue
		}
		t, _ := text(block.Get("text"))
		texts = append(texts, t)
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// Unmarshal decodes the value that the result carries into v: the structured
// content, or where there is none the text as JSON, or null where there is no
// content at all. A *string gets text as it is. Numbers land exactly where v's
// types can hold them.
func (r Result) Unmarshal(v any) error {
	if s := r.Structured(); s != nil {
		return json.Unmarshal(s, v)
	}
	if len(r.Content()) == 0 {
		return json.Unmarshal([]byte("null"), v)
	}
	t, ok := r.Text()
	if !ok {
		return errors.New("result: neither structured content nor text to decode")
	}
	if s, ok := v.(*string); ok {
		*s = t
		return nil
	}
	return json.Unmarshal([]byte(t), v)
}

// WithMeta returns the result with one key of its `_meta` set. The value must be
// valid JSON.
func (r Result) WithMeta(key string, value json.RawMessage) Result {
	o, err := splitObject(r.JSON())
	if err != nil {
		return r
	}
	var meta Object
	if m := o.Get("_meta"); isObject(m) {
		meta, _ = splitObject(m)
	}
	meta.Set(key, value)
	o.Set("_meta", meta.JSON())
	return Result{o.JSON()}
}
