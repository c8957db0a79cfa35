package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
)

// arguments is the schema of a tool's arguments, ready to judge and to complete
// them. It is safe for concurrent use.
type arguments struct {
	root        *node
	multiples   multiples
	hasDefaults bool
}

// compileArguments resolves a schema. References to elsewhere are an error, and
// so are defaults that the schema itself refuses.
func compileArguments(raw json.RawMessage) (*arguments, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	if err := exactNumbers(s, raw); err != nil {
		return nil, err
	}
	args := &arguments{multiples: multiples{}, hasDefaults: bytes.Contains(raw, []byte(`"default"`))}
	// A part that refers to others cannot stand alone.
	alone := !bytes.Contains(raw, []byte(`"$ref"`)) && !bytes.Contains(raw, []byte(`"$dynamicRef"`))
	if alone {
		if err := args.multiples.take(s); err != nil {
			return nil, err
		}
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true, Loader: noLoader})
	if err != nil {
		return nil, err
	}
	args.root = &node{schema: s, resolved: resolved}
	if alone {
		args.root.addParts(s.Schema)
	}
	return args, nil
}

// noLoader is what jsonschema finds at a reference to elsewhere.
func noLoader(*url.URL) (*jsonschema.Schema, error) {
	return nil, errors.New("the reference leads out of the schema, and nothing is fetched")
}

// check returns what is wrong with arguments, a line for each fault; none for
// valid ones.
func (a *arguments) check(raw json.RawMessage) []string {
	v, err := literals(raw)
	if err != nil {
		return []string{"arguments: " + err.Error()}
	}
	faults := a.multiples.faults(a.root.schema, v, "arguments")
	if v = withNumbers(v); a.root.resolved.Validate(v) != nil {
		faults = append(a.root.explain(v, "arguments"), faults...)
	}
	const most = 20
	if more := len(faults) - most; more > 0 {
		faults = append(faults[:most], fmt.Sprintf("and %d more", more))
	}
	return faults
}

// complete returns arguments with the schema's defaults in the places of missing
// members. What is there stays as it is spelled.
func (a *arguments) complete(raw json.RawMessage) json.RawMessage {
	if !a.hasDefaults {
		return raw
	}
	return a.fill(a.root.schema, raw)
}

func (a *arguments) fill(s *jsonschema.Schema, raw json.RawMessage) json.RawMessage {
	if s = a.referred(s); s == nil {
		return raw
	}
	if items := elements(s); items != nil {
		if values, err := contract.ParseArray(raw); err == nil {
			for i, v := range values {
				values[i] = a.fill(items, v)
			}
			return contract.Array(values...)
		}
	}
	o, err := contract.ParseObject(raw)
	if err != nil || len(s.Properties) == 0 && others(s) == nil {
		return raw
	}
	if rest := others(s); rest != nil {
		o.Each(func(name string, v json.RawMessage) json.RawMessage {
			if s.Properties[name] != nil {
				return nil
			}
			return a.fill(rest, v)
		})
	}
	for _, name := range propertyNames(s) {
		p := s.Properties[name]
		if v := o.Get(name); v != nil {
			o.Set(name, a.fill(p, v))
		} else if v := a.missing(p); v != nil {
			o.Set(name, v)
		}
	}
	return o.JSON()
}

// missing returns what stands for a member that is not there, or nil. An object
// is made up only where its own defaults make it whole.
func (a *arguments) missing(p *jsonschema.Schema) json.RawMessage {
	switch {
	case p.Ref != "": // a definition that refers to itself would have no end
		return p.Default
	case p.Default != nil:
		return a.fill(p, p.Default)
	case p.Type != "object":
		return nil
	}
	made := a.fill(p, json.RawMessage("{}"))
	o, err := contract.ParseObject(made)
	if err != nil || o.Len() == 0 {
		return nil
	}
	for _, name := range p.Required {
		if !o.Has(name) {
			return nil
		}
	}
	return made
}

// referred follows a reference to the schema's own definitions, one step: the
// value under it ends the recursion. Nil is a reference that it cannot follow.
func (a *arguments) referred(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil || s.Ref == "" {
		return s
	}
	root := a.root.schema
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return root.Defs[name]
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/definitions/"); ok {
		return root.Definitions[name]
	}
	return nil
}

// elements is the schema of each element of an array, nil where there is none for
// all of them.
func elements(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.PrefixItems) > 0 {
		return nil
	}
	return s.Items
}

// others is the schema of the members that have no property, nil where a pattern
// may have one for some.
func others(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.PatternProperties) > 0 {
		return nil
	}
	return s.AdditionalProperties
}

// propertyNames returns the properties in the order of the schema.
func propertyNames(s *jsonschema.Schema) []string {
	names := slices.Clone(s.PropertyOrder)
	rest := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		if !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}
