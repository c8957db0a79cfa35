package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// tagKey is the struct tag of constraints and defaults.
const tagKey = "mcp"

// applyTags puts the constraints of a type's struct tags into its schema. Faults
// come with the field's path.
func applyTags(t reflect.Type, s *jsonschema.Schema, path string) []error {
	if s == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return applyTags(t.Elem(), s, path)
	case reflect.Slice, reflect.Array:
		return applyTags(t.Elem(), s.Items, path+"[]")
	case reflect.Map:
		return applyTags(t.Elem(), s.AdditionalProperties, path+"{}")
	case reflect.Struct:
		if !isType(s, "object") || slices.Equal(s.Types, anything) {
			return nil // it encodes itself
		}
	default:
		return nil
	}
	var errs []error
	for _, f := range reflect.VisibleFields(t) {
		place := strings.TrimPrefix(path+"."+f.Name, ".")
		name, ok := fieldName(f)
		if isMisread(f) {
			errs = append(errs, fmt.Errorf("field %s: it is embedded, and encoding/json does not take its members for those of %s; "+
				"give the field a name", place, t))
			continue
		}
		p := s.Properties[name]
		if !ok || p == nil {
			continue
		}
		if isQuoted(f) {
			quote(p)
		}
		if tag, ok := f.Tag.Lookup(tagKey); ok {
			for _, err := range applyTag(tag, p) {
				errs = append(errs, fmt.Errorf("field %s: %s tag: %w", place, tagKey, err))
			}
			for _, err := range emptyRanges(p) {
				errs = append(errs, fmt.Errorf("field %s: %s tag: %w", place, tagKey, err))
			}
			if p.Default != nil { // what has a default may be left out
				s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
			}
		}
		errs = append(errs, applyTags(f.Type, p, place)...)
	}
	return errs
}

// emptyRanges finds bounds that no value keeps.
func emptyRanges(s *jsonschema.Schema) []error {
	var errs []error
	above := func(low string, a float64, high string, b float64, equal bool) {
		if a > b || equal && a == b {
			errs = append(errs, fmt.Errorf("no value is within %s=%v and %s=%v", low, a, high, b))
		}
	}
	for _, s := range []*jsonschema.Schema{s, s.Items} {
		if s == nil {
			continue
		}
		for low, a := range map[string]*float64{"minimum": s.Minimum, "exclusiveMinimum": s.ExclusiveMinimum} {
			for high, b := range map[string]*float64{"maximum": s.Maximum, "exclusiveMaximum": s.ExclusiveMaximum} {
				if a != nil && b != nil {
					above(low, *a, high, *b, low != "minimum" || high != "maximum")
				}
			}
		}
		if s.MinLength != nil && s.MaxLength != nil {
			above("minLength", float64(*s.MinLength), "maxLength", float64(*s.MaxLength), false)
		}
		if s.MinItems != nil && s.MaxItems != nil {
			above("minItems", float64(*s.MinItems), "maxItems", float64(*s.MaxItems), false)
		}
	}
	return errs
}

// fieldName returns the name that encoding/json gives a field, and whether it
// gives it one.
func fieldName(f reflect.StructField) (string, bool) {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	embedded := f.Anonymous && isStruct(f.Type)
	if !f.IsExported() && !embedded || tag == "-" || embedded && name == "" {
		return "", false
	}
	if name == "" {
		return f.Name, true
	}
	return name, true
}

// isMisread tells the embedded fields that jsonschema takes for their members where
// encoding/json does not: it gives them a name, or leaves them out.
func isMisread(f reflect.StructField) bool {
	_, named := fieldName(f)
	return f.Anonymous && (named || isStruct(f.Type) && f.Tag.Get("json") == "-")
}

func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// isQuoted reports whether encoding/json puts a field's value into a string.
func isQuoted(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !slices.Contains(strings.Split(options, ","), "string") {
		return false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); k {
	case reflect.Bool, reflect.String:
		return true
	default:
		return reflect.Int <= k && k <= reflect.Float64
	}
}

// quote makes a schema one of a string with what it described in it.
func quote(s *jsonschema.Schema) {
	if slices.Equal(s.Types, anything) {
		return // the type encodes itself
	}
	s.Minimum, s.Maximum = nil, nil
	if s.Type != "" {
		s.Type = "string"
		return
	}
	s.Types = []string{"null", "string"}
}

// applyTag applies "key=value,key=value" to a field's schema.
func applyTag(tag string, s *jsonschema.Schema) []error {
	if tag == "" {
		return []error{errors.New("empty")}
	}
	var errs []error
	for _, part := range split(tag, ',') {
		key, value, given := strings.Cut(part, "=")
		if err := applyKeyword(s, strings.TrimSpace(key), unescape(value, ','), given); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part, err))
		}
	}
	return errs
}

func applyKeyword(s *jsonschema.Schema, key, value string, given bool) error {
	switch key {
	case "minItems", "maxItems", "uniqueItems", "title", "default":
	default:
		if isType(s, "array") && s.Items != nil {
			s = s.Items
		}
	}
	if flag := map[string]*bool{"uniqueItems": &s.UniqueItems}[key]; flag != nil {
		if given && value != "true" {
			return errors.New("it stands alone")
		}
		*flag = true
		return nil
	}
	if !given {
		return errors.New("want keyword=value")
	}
	if number := map[string]**float64{
		"minimum": &s.Minimum, "maximum": &s.Maximum, "multipleOf": &s.MultipleOf,
		"exclusiveMinimum": &s.ExclusiveMinimum, "exclusiveMaximum": &s.ExclusiveMaximum,
	}[key]; number != nil {
		return setNumber(s, number, value)
	}
	if count := map[string]**int{
		"minLength": &s.MinLength, "maxLength": &s.MaxLength, "minItems": &s.MinItems, "maxItems": &s.MaxItems,
	}[key]; count != nil {
		return setCount(s, count, key, value)
	}
	switch key {
	case "pattern":
		s.Pattern = value
		return want(s, "string")
	case "format":
		s.Format = value
	case "title":
		s.Title = value
	case "enum":
		return setEnum(s, value)
	case "default":
		literal, err := literal(s, value)
		s.Default = literal
		return err
	default:
		return errors.New("no such keyword")
	}
	return nil
}

func setNumber(s *jsonschema.Schema, dst **float64, value string) error {
	f, err := exactFloat(value)
	if err != nil {
		return err
	}
	if dst == &s.MultipleOf && f <= 0 {
		return errors.New("it is not above zero")
	}
	*dst = &f
	if isType(s, "integer") {
		return nil
	}
	return want(s, "number")
}

func setCount(s *jsonschema.Schema, dst **int, key, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no count", value)
	}
	*dst = &n
	if strings.HasSuffix(key, "Items") {
		return want(s, "array")
	}
	return want(s, "string")
}

func setEnum(s *jsonschema.Schema, value string) error {
	for _, v := range split(value, '|') {
		raw, err := literal(s, unescape(v, '|'))
		if err != nil {
			return err
		}
		exact, err := exactValue(raw)
		if err != nil {
			return err
		}
		s.Enum = append(s.Enum, exact)
	}
	return nil
}

// literal returns the JSON of a tag's value for a field: text for a string, JSON
// for the rest.
func literal(s *jsonschema.Schema, value string) (json.RawMessage, error) {
	if isType(s, "string") {
		return json.Marshal(value)
	}
	if !json.Valid([]byte(value)) {
		return nil, fmt.Errorf("%q is no JSON", value)
	}
	return json.RawMessage(value), nil
}

func isType(s *jsonschema.Schema, typ string) bool {
	return s.Type == typ || slices.Contains(s.Types, typ)
}

func want(s *jsonschema.Schema, typ string) error {
	if isType(s, typ) {
		return nil
	}
	return fmt.Errorf("the field is no %s", typ)
}

// split cuts at separators without a backslash before them.
func split(s string, sep byte) []string {
	var parts []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case sep:
			parts, start = append(parts, s[start:i]), i+1
		}
	}
	return append(parts, s[start:])
}

func unescape(s string, sep byte) string {
	return strings.ReplaceAll(s, `\`+string(sep), string(sep))
}
