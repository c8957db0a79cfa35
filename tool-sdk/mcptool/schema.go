package mcptool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

var (
	noValue      = reflect.TypeFor[nexus.NoValue]()
	rawValue     = reflect.TypeFor[converter.RawValue]()
	rawMessage   = reflect.TypeFor[json.RawMessage]()
	resultType   = reflect.TypeFor[Result]()
	protoMessage = reflect.TypeFor[proto.Message]()

	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// anything is the list of all JSON types. It stands for the empty schema while
// jsonschema works, which would make a pointer to it allow null and nothing else.
var anything = []string{"null", "array", "boolean", "number", "object", "string"}

// known are types whose JSON is not what their Go kind says.
var known = map[reflect.Type]*jsonschema.Schema{
	rawMessage:                     {Types: anything},
	rawValue:                       {Types: anything},
	reflect.TypeFor[json.Number](): {Type: "number"},
	reflect.TypeFor[big.Int]():     {Type: "integer"},
}

// inBase64 is what encoding/json makes of bytes.
var inBase64 = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}

// standard are types that jsonschema knows better than their methods tell.
var standard = map[reflect.Type]bool{
	reflect.TypeFor[time.Time](): true, reflect.TypeFor[slog.Level](): true,
	reflect.TypeFor[big.Rat](): true, reflect.TypeFor[big.Float](): true,
}

// inputSchema returns the schema of a tool's arguments of a Go type.
func inputSchema(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 {
		return nil, fmt.Errorf("the operation takes the interface %s, and JSON does not say which type stands for it", t)
	}
	if t == noValue || isOpaque(t) {
		return &jsonschema.Schema{Type: "object"}, nil
	}
	s, err := typeSchema(t)
	if err != nil {
		return nil, err
	}
	if s.Types != nil && slices.Contains(s.Types, "object") { // a pointer: null is no object
		s.Type, s.Types = "object", nil
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("the operation takes %s, whose JSON is no object", t)
	}
	return s, nil
}

// outputSchema returns the schema of a tool's result of a Go type, nil for a type
// that says nothing.
func outputSchema(t reflect.Type) (*jsonschema.Schema, error) {
	if t == noValue || t == resultType || isOpaque(t) {
		return nil, nil
	}
	s, err := typeSchema(t)
	if err != nil {
		return nil, err
	}
	if s.Types == nil && s.Type == "" {
		return nil, nil
	}
	if t.Kind() == reflect.Map && s.Type == "object" { // a nil one is written as null
		s.Type, s.Types = "", []string{"null", "object"}
	}
	return s, nil
}

// isOpaque tells types whose JSON their Go form says nothing about.
func isOpaque(t reflect.Type) bool {
	return t.Kind() == reflect.Interface || t == rawMessage || t == rawValue || t.Implements(protoMessage)
}

// typeSchema returns the schema of a Go type as encoding/json writes and reads it.
func typeSchema(t reflect.Type) (*jsonschema.Schema, error) {
	custom := map[reflect.Type]*jsonschema.Schema{}
	collectCustom(t, custom, map[reflect.Type]bool{})
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: custom})
	if err != nil {
		return nil, fmt.Errorf("%w; a raw JSON Schema in the declaration may say what the type cannot", err)
	}
	err = errors.Join(applyTags(t, s, "")...)
	forget(s)
	nilMaps(s)
	return s, err
}

// collectCustom finds the types that encode themselves.
func collectCustom(t reflect.Type, custom map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if s := known[t]; s != nil {
		custom[t] = s
		return
	}
	if standard[t] {
		return
	}
	if t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer {
		switch p := reflect.PointerTo(t); {
		case p.Implements(jsonMarshaler) || p.Implements(jsonUnmarshaler):
			custom[t] = &jsonschema.Schema{Types: anything}
			return
		case p.Implements(textMarshaler) || p.Implements(textUnmarshaler):
			custom[t] = &jsonschema.Schema{Type: "string"}
			return
		}
	}
	if isBytes(t) {
		custom[t] = inBase64
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collectCustom(t.Elem(), custom, seen)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous && isStruct(f.Type) || !f.Anonymous && f.IsExported() {
				collectCustom(f.Type, custom, seen)
			}
		}
	default:
	}
}

// isBytes reports whether encoding/json writes a slice in base64: one of bytes,
// under whatever name, that do not encode themselves.
func isBytes(t reflect.Type) bool {
	if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Uint8 {
		return false
	}
	p := reflect.PointerTo(t.Elem())
	return !p.Implements(jsonMarshaler) && !p.Implements(textMarshaler)
}

// forget puts the empty schema where [anything] stood for it.
func forget(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, anything) {
		s.Types = nil
	}
	for _, p := range s.Properties {
		forget(p)
	}
	forget(s.Items)
	forget(s.AdditionalProperties)
}

// nilMaps allows null for the maps in a schema, since a nil one is written so;
// jsonschema does this for slices. What the schema itself is stays.
func nilMaps(s *jsonschema.Schema) {
	inner := []*jsonschema.Schema{s.Items, s.AdditionalProperties}
	for _, p := range s.Properties {
		inner = append(inner, p)
	}
	for _, p := range inner {
		if p == nil {
			continue
		}
		nilMaps(p)
		if p.Type == "object" && p.AdditionalProperties != nil && p.AdditionalProperties.Not == nil {
			p.Type, p.Types = "", []string{"null", "object"}
		}
	}
}

// schemaJSON returns a schema's JSON without HTML escapes.
func schemaJSON(s *jsonschema.Schema) (json.RawMessage, error) {
	data, err := json.Marshal(s)
	return contract.UnescapeHTML(data), err
}
