package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// multiples are the multipleOf of a schema and its parts. jsonschema would divide
// as float64: 19.99 is no multiple of 0.01 then, and 9007199254740993 one of 2.
type multiples map[*jsonschema.Schema]*big.Rat

// take moves them here. What stands elsewhere, such as in anyOf, is left for
// jsonschema to judge as well as it can.
func (m multiples) take(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	for _, name := range propertyNames(s) {
		if err := m.take(s.Properties[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, part := range []*jsonschema.Schema{elements(s), others(s)} {
		if err := m.take(part); err != nil {
			return err
		}
	}
	if s.MultipleOf != nil {
		m[s], _ = new(big.Rat).SetString(decimal(*s.MultipleOf))
		s.MultipleOf = nil
	}
	if s.Default == nil {
		return nil
	}
	v, err := literals(s.Default)
	if err != nil {
		return err
	}
	if faults := m.faults(s, v, "default"); len(faults) > 0 {
		return errors.New(faults[0])
	}
	return nil
}

// faults names the numbers that are no multiples, for a value of [literals].
func (m multiples) faults(s *jsonschema.Schema, v any, path string) []string {
	if s == nil || len(m) == 0 {
		return nil
	}
	var faults []string
	switch v := v.(type) {
	case json.Number:
		of := m[s]
		if of == nil {
			break
		}
		f, _ := of.Float64()
		words := "want a multiple of " + decimal(f)
		n := rational(v.String(), maxDigits)
		if n == nil {
			words += fmt.Sprintf(" with at most %d digits", maxDigits)
		}
		if n == nil || !n.Quo(n, of).IsInt() {
			faults = append(faults, fmt.Sprintf("%s: multipleOf: %s, %s", path, brief(v.String(), 80), words))
		}
	case []any:
		for i, e := range v {
			faults = append(faults, m.faults(elements(s), e, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			part := s.Properties[name]
			if part == nil {
				part = others(s)
			}
			faults = append(faults, m.faults(part, v[name], member(path, brief(name, 80)))...)
		}
	}
	return faults
}

// maxDigits are as many as the largest float64 has, and some.
const maxDigits = 400

// decimal spells a float64 as short as it can be told from others.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
