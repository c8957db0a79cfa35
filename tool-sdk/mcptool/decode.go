package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/sdk/converter"
)

// decode returns arguments as a value of a Go type. The error says which member
// the type cannot hold.
func decode(raw json.RawMessage, t reflect.Type) (reflect.Value, error) {
	v := reflect.New(t)
	switch {
	case t == noValue:
		return v.Elem(), nil
	case t == rawMessage:
		return reflect.ValueOf(bytes.Clone(raw)).Convert(t), nil
	case t == rawValue:
		return reflect.ValueOf(resultmap.RawValue(bytes.Clone(raw))), nil
	case t.Implements(protoMessage):
		err := converter.NewProtoJSONPayloadConverter().FromPayload(resultmap.RawValue(raw).Payload(), v.Interface())
		return v.Elem(), err
	}
	dec := json.NewDecoder(bytes.NewReader(only(raw, t)))
	dec.UseNumber()
	err := dec.Decode(v.Interface())
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		path := "arguments"
		if mismatch.Field != "" {
			path += "." + mismatch.Field
		}
		err = fmt.Errorf("%s: type: %s does not fit in %s", path, brief(mismatch.Value, 80), mismatch.Type)
	} else if err != nil {
		err = fmt.Errorf("arguments: %w", err)
	}
	return v.Elem(), err
}

// only returns JSON with what the schema has judged and nothing else: for a
// struct, encoding/json would also take members whose names differ in case, and
// mix duplicates. Integers that are spelled like 1.0 or 1e3 become plain.
func only(raw json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler) {
		return raw
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return plainInteger(raw)
	case reflect.Slice, reflect.Array:
		elements, err := contract.ParseArray(raw)
		if err != nil {
			return raw
		}
		for i, e := range elements {
			elements[i] = only(e, t.Elem())
		}
		return contract.Array(elements...)
	case reflect.Map:
		o, err := contract.ParseObject(raw)
		if err != nil {
			return raw
		}
		o.Each(func(_ string, v json.RawMessage) json.RawMessage { return only(v, t.Elem()) })
		return o.JSON()
	case reflect.Struct:
		o, err := contract.ParseObject(raw)
		if err != nil {
			return raw
		}
		var kept contract.Object
		for _, f := range fieldsOf(t) {
			if v := o.Get(f.name); v != nil {
				kept.Set(f.name, only(v, f.typ))
			}
		}
		return kept.JSON()
	default:
		return raw
	}
}

type field struct {
	name string
	typ  reflect.Type
}

var fieldCache sync.Map // from reflect.Type to []field

func fieldsOf(t reflect.Type) []field {
	if fields, ok := fieldCache.Load(t); ok {
		return fields.([]field)
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if name, ok := fieldName(f); ok {
			fields = append(fields, field{name, f.Type})
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

// plainInteger respells an integer that encoding/json does not know for one.
func plainInteger(raw json.RawMessage) json.RawMessage {
	if contract.TypeName(raw) != "a number" || !bytes.ContainsAny(raw, ".eE") {
		return raw
	}
	const most = 100 // digits; a larger one fits in no integer type
	if r := rational(string(raw), most); r != nil && r.IsInt() {
		return json.RawMessage(r.Num().String())
	}
	return raw
}
