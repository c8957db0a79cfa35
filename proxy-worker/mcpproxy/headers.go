package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Arguments as headers, by MCP 2026-07-28, streamable HTTP, "Custom Headers":
// a property of the input schema that has x-mcp-header names the header that
// carries its argument too.
const (
	keyParamHeader    = "x-mcp-header"
	paramHeaderPrefix = "Mcp-Param-"
)

// paramHeader is an argument that travels as a header too.
type paramHeader struct {
	path   []string // of property names
	header string
}

// maxSchemaDepth bounds how deep properties are looked for.
const maxSchemaDepth = 32

// paramHeaders reads those of an input schema. With an error the tool must not be
// offered.
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	var found []paramHeader
	if !strings.Contains(string(schema), keyParamHeader) {
		return nil, nil
	}
	err := collectParamHeaders(schema, nil, &found)
	seen := map[string]bool{}
	for _, h := range found {
		name := strings.ToLower(h.header)
		if seen[name] && err == nil {
			err = fmt.Errorf("%s: %q stands at two properties", keyParamHeader, h.header)
		}
		seen[name] = true
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

func collectParamHeaders(schema json.RawMessage, path []string, found *[]paramHeader) error {
	if len(path) > maxSchemaDepth {
		return nil
	}
	o, _ := contract.ParseObject(schema) // a schema may be a boolean, which has no properties
	properties, _ := contract.ParseObject(o.Get("properties"))
	values := map[string]json.RawMessage{} // of a name that stands twice the last counts
	properties.Each(func(name string, value json.RawMessage) json.RawMessage {
		values[name] = value
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property, err := contract.ParseObject(values[name])
		if err != nil {
			continue
		}
		inner := append(slices.Clip(path), name)
		if value := property.Get(keyParamHeader); value != nil {
			header, err := headerName(value, property.Get("type"))
			if err != nil {
				return fmt.Errorf("%s at property %q: %w", keyParamHeader, strings.Join(inner, "."), err)
			}
			*found = append(*found, paramHeader{inner, header})
		}
		if err := collectParamHeaders(values[name], inner, found); err != nil {
			return err
		}
	}
	return nil
}

func headerName(value, typ json.RawMessage) (string, error) {
	switch string(typ) {
	case `"string"`, `"integer"`, `"boolean"`:
	default:
		return "", errors.New("the property is none of string, integer and boolean")
	}
	var name string
	if json.Unmarshal(value, &name) != nil || name == "" {
		return "", errors.New("want the name of a header")
	}
	if !streamable.ValidName(name) {
		return "", fmt.Errorf("%.80q cannot be part of a header's name", name)
	}
	return name, nil
}

// headersOf returns the headers that a call's arguments ask for, as text that the
// link encodes. What is absent, null or of another type has none.
func headersOf(list []paramHeader, arguments json.RawMessage) map[string]string {
	headers := map[string]string{}
	for _, h := range list {
		value := arguments
		for _, name := range h.path {
			o, err := contract.ParseObject(value)
			if err != nil {
				value = nil
				break
			}
			value = o.Get(name)
		}
		if text, ok := headerText(value); ok {
			headers[paramHeaderPrefix+h.header] = text
		}
	}
	return headers
}

func headerText(value json.RawMessage) (string, bool) {
	switch contract.TypeName(value) {
	case "a boolean":
		return string(value), true
	case "a number":
		const most = 1<<53 - 1
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > most {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	case "a string":
		var s string
		if json.Unmarshal(value, &s) != nil {
			return "", false
		}
		return s, true
	}
	return "", false
}
