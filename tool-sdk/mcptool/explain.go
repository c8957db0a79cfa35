package mcptool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
)

// node is a part of a schema that can be asked alone, so that a fault has a place
// in the arguments. jsonschema itself names places in the schema, and stops at
// the first fault, in no fixed order.
type node struct {
	schema     *jsonschema.Schema
	resolved   *jsonschema.Resolved
	properties map[string]*node
	items      *node
	values     *node // of members that have no property
}

func (n *node) addParts(draft string) {
	part := func(s *jsonschema.Schema) *node {
		if s == nil {
			return nil
		}
		s = s.CloneSchemas()
		if s.Schema == "" {
			s.Schema = draft
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			return nil
		}
		p := &node{schema: s, resolved: resolved}
		p.addParts(draft)
		return p
	}
	n.properties = map[string]*node{}
	for name, s := range n.schema.Properties {
		if p := part(s); p != nil {
			n.properties[name] = p
		}
	}
	n.items = part(elements(n.schema))
	if rest := others(n.schema); !isFalse(rest) {
		n.values = part(rest)
	}
}

// explain returns the faults of a value that the node refuses: those of its parts
// first, then its own; the words of jsonschema where it knows none.
func (n *node) explain(v any, path string) []string {
	var faults []string
	ask := func(part *node, v any, path string) {
		if part != nil && part.resolved.Validate(v) != nil {
			faults = append(faults, part.explain(v, path)...)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range propertyNames(n.schema) {
			if e, ok := v[name]; ok {
				ask(n.properties[name], e, member(path, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if n.schema.Properties[name] == nil {
				ask(n.values, v[name], member(path, brief(name, 80)))
			}
		}
	case []any:
		for i, e := range v {
			ask(n.items, e, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	faults = append(faults, ownFaults(n.schema, v, path)...)
	if len(faults) == 0 {
		if err := n.resolved.Validate(v); err != nil {
			faults = []string{path + ": " + theirWords(err)}
		}
	}
	return faults
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func member(path, name string) string {
	if plainName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + strconv.Quote(name) + "]"
}

// theirWords takes the path in the schema apart from jsonschema's message.
func theirWords(err error) string {
	message := strings.Join(strings.Fields(err.Error()), " ")
	where := ""
	for {
		rest, ok := strings.CutPrefix(message, "validating ")
		if !ok {
			break
		}
		where, message, _ = strings.Cut(rest, ": ")
	}
	if where != "" && where != "root" {
		message = "schema " + where + ": " + message
	}
	return brief(message, 500)
}

// ownFaults names the rules that a value breaks itself, apart from its parts.
func ownFaults(s *jsonschema.Schema, v any, path string) []string {
	var faults []string
	fault := func(rule, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s: %s: %s", path, rule, fmt.Sprintf(format, args...)))
	}
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if got := typeOf(v); len(types) > 0 && !slices.Contains(types, got) && (got != "integer" || !slices.Contains(types, "number")) {
		fault("type", "%s, want %s", show(v), strings.Join(types, " or "))
		return faults
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, v) }) {
		fault("enum", "%s is none of %s", show(v), show(s.Enum))
	}
	switch v := v.(type) {
	case string:
		lengthFaults(s, v, fault)
	case []any:
		sizeFaults(s, len(v), fault)
	case map[string]any:
		memberFaults(s, v, path, &faults)
	default:
		boundFaults(s, v, fault)
	}
	return faults
}

type faultFunc = func(rule, format string, args ...any)

func lengthFaults(s *jsonschema.Schema, v string, fault faultFunc) {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength {
		fault("minLength", "%d characters, want at least %d", n, *s.MinLength)
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		fault("maxLength", "%d characters, want at most %d", n, *s.MaxLength)
	}
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			fault("pattern", "%s does not match %s", show(v), s.Pattern)
		}
	}
}

func sizeFaults(s *jsonschema.Schema, n int, fault faultFunc) {
	if s.MinItems != nil && n < *s.MinItems {
		fault("minItems", "%d items, want at least %d", n, *s.MinItems)
	}
	if s.MaxItems != nil && n > *s.MaxItems {
		fault("maxItems", "%d items, want at most %d", n, *s.MaxItems)
	}
}

func memberFaults(s *jsonschema.Schema, v map[string]any, path string, faults *[]string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			*faults = append(*faults, member(path, name)+": required: missing")
		}
	}
	if !isFalse(s.AdditionalProperties) || len(s.PatternProperties) > 0 {
		return
	}
	var unknown []string
	for name := range v {
		if s.Properties[name] == nil {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		*faults = append(*faults, fmt.Sprintf("%s: additionalProperties: unknown, want one of %s",
			member(path, brief(name, 80)), strings.Join(propertyNames(s), ", ")))
	}
}

// isFalse tells the schema false, which jsonschema reads as {"not": {}}.
func isFalse(s *jsonschema.Schema) bool {
	return s != nil && s.Not != nil && reflect.ValueOf(*s.Not).IsZero()
}

func boundFaults(s *jsonschema.Schema, v any, fault faultFunc) {
	n := rat(v)
	if n == nil {
		return
	}
	check := func(rule string, bound *float64, words string, broken func(sign int) bool) {
		if bound != nil && broken(n.Cmp(new(big.Rat).SetFloat64(*bound))) {
			fault(rule, "%s, want %s %s", show(v), words, decimal(*bound))
		}
	}
	check("minimum", s.Minimum, "at least", func(sign int) bool { return sign < 0 })
	check("maximum", s.Maximum, "at most", func(sign int) bool { return sign > 0 })
	check("exclusiveMinimum", s.ExclusiveMinimum, "more than", func(sign int) bool { return sign <= 0 })
	check("exclusiveMaximum", s.ExclusiveMaximum, "less than", func(sign int) bool { return sign >= 0 })
}

func rat(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case uint64:
		return new(big.Rat).SetUint64(v)
	case float64:
		return new(big.Rat).SetFloat64(v)
	}
	return nil
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if !rat(v).IsInt() {
			return "number"
		}
	}
	return "integer"
}

// show returns a value as short JSON.
func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return brief(string(contract.UnescapeHTML(data)), 80)
}

func brief(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
