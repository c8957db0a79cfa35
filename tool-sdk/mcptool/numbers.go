package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
)

// literals returns JSON with its numbers as they are spelled.
func literals(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// withNumbers returns a value of [literals] as jsonschema validates it, in its
// place: integers of up to 64 bits are exact; other numbers are float64, of the
// same kind and on the same side of every bound.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = withNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = withNumbers(e)
		}
	case json.Number:
		return number(v.String())
	}
	return v
}

// number returns an int64, a uint64, or a float64 that is finite.
func number(literal string) any {
	if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(literal, 10, 64); err == nil {
		return u
	}
	f, _ := strconv.ParseFloat(literal, 64)
	switch {
	case math.IsInf(f, 0): // infinity has no place in a comparison of jsonschema
		return math.Copysign(math.MaxFloat64, f)
	case f == 0 && strings.ContainsAny(mantissa(literal), "123456789"):
		return math.Copysign(math.SmallestNonzeroFloat64, f)
	}
	return f
}

func mantissa(literal string) string {
	m, _, _ := strings.Cut(strings.ToLower(literal), "e")
	return m
}

// exactFloat returns a bound of a schema. jsonschema keeps bounds as float64, so
// an integer that is none is refused: it would let its neighbour pass.
func exactFloat(literal string) (float64, error) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number in the range of a float64", literal)
	}
	if exact, ok := new(big.Int).SetString(literal, 10); ok {
		if kept, _ := big.NewFloat(f).Int(nil); kept.Cmp(exact) != 0 {
			return 0, fmt.Errorf("%s cannot be compared exactly; %s can", literal, kept)
		}
	}
	return f, nil
}

// rational returns the number that a literal stands for, nil where that has more
// digits, or so many before or behind the point. What a big.Rat takes grows with
// the square of their number, and a short literal may stand for very many.
func rational(literal string, digits int) *big.Rat {
	if len(literal) > 2*digits {
		return nil
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(literal), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > digits || n < -digits {
			return nil
		}
	}
	r, _ := new(big.Rat).SetString(literal)
	return r
}

// exactValue returns a value of an enum or const for comparison.
func exactValue(raw json.RawMessage) (any, error) {
	v, err := literals(raw)
	v = withNumbers(v)
	if f, ok := v.(float64); ok && err == nil {
		if exact, isInt := new(big.Int).SetString(string(raw), 10); isInt {
			if kept, _ := big.NewFloat(f).Int(nil); kept.Cmp(exact) != 0 {
				return nil, fmt.Errorf("%s cannot be compared exactly", raw)
			}
		}
	}
	return v, err
}

// exactNumbers puts the numbers of a schema's JSON in the places where jsonschema
// has rounded ones, and refuses those that it cannot keep. The properties get the
// order that they have in the JSON.
func exactNumbers(s *jsonschema.Schema, raw json.RawMessage) error {
	if s == nil || contract.TypeName(raw) != "an object" { // true and false
		return nil
	}
	o, err := contract.ParseObject(raw)
	if err != nil {
		return err
	}
	for _, bound := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		if v := o.Get(bound); !contract.IsNull(v) {
			f, err := exactFloat(string(v))
			if err == nil && bound == "multipleOf" && f <= 0 {
				err = errors.New("it is not above zero")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", bound, err)
			}
		}
	}
	if values, err := contract.ParseArray(o.Get("enum")); err == nil && len(values) == len(s.Enum) {
		for i, v := range values {
			if s.Enum[i], err = exactValue(v); err != nil {
				return fmt.Errorf("enum: %w", err)
			}
		}
	}
	if v := o.Get("const"); v != nil && s.Const != nil {
		if *s.Const, err = exactValue(v); err != nil {
			return fmt.Errorf("const: %w", err)
		}
	}
	return exactChildren(s, o)
}

func exactChildren(s *jsonschema.Schema, o contract.Object) error {
	maps := map[string]map[string]*jsonschema.Schema{
		"properties": s.Properties, "patternProperties": s.PatternProperties, "$defs": s.Defs,
		"definitions": s.Definitions, "dependentSchemas": s.DependentSchemas,
	}
	for key, children := range maps {
		members, err := contract.ParseObject(o.Get(key))
		if err != nil {
			continue
		}
		for _, name := range distinct(members.Keys()) {
			if err := exactNumbers(children[name], members.Get(name)); err != nil {
				return fmt.Errorf("%s: %s: %w", key, name, err)
			}
		}
		if key == "properties" {
			s.PropertyOrder = distinct(members.Keys())
		}
	}
	lists := map[string][]*jsonschema.Schema{
		"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf, "prefixItems": s.PrefixItems, "items": s.ItemsArray,
	}
	for key, children := range lists {
		elements, err := contract.ParseArray(o.Get(key))
		if err != nil || len(elements) != len(children) {
			continue
		}
		for i, child := range children {
			if err := exactNumbers(child, elements[i]); err != nil {
				return fmt.Errorf("%s[%d]: %w", key, i, err)
			}
		}
	}
	single := map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "not": s.Not,
		"if": s.If, "then": s.Then, "else": s.Else, "additionalProperties": s.AdditionalProperties,
		"propertyNames": s.PropertyNames, "unevaluatedItems": s.UnevaluatedItems, "unevaluatedProperties": s.UnevaluatedProperties,
	}
	for key, child := range single {
		if err := exactNumbers(child, o.Get(key)); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// distinct drops what came before.
func distinct(keys []string) []string {
	kept := make([]string, 0, len(keys))
	for _, k := range keys {
		if !slices.Contains(kept, k) {
			kept = append(kept, k)
		}
	}
	return kept
}
