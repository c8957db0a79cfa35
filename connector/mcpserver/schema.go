package mcpserver

import (
	"encoding/json"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// runningSchema describes the structured content of a running result.
const runningSchema = `{"type":"object","properties":{"status":{"const":"running"},"operation_id":{"type":"string"}},"required":["status","operation_id"]}`

// withRunning returns the union of a tool's output schema and that of a running
// result, so that no served schema lies. References in the schema are relative
// to its root, so they are moved with it.
func withRunning(schema json.RawMessage) json.RawMessage {
	var union contract.Object
	if o, err := contract.ParseObject(schema); err == nil {
		// A dialect is stated at the root only.
		if dialect := o.Get("$schema"); dialect != nil {
			union.Set("$schema", dialect)
			o.Delete("$schema")
			schema = o.JSON()
		}
		if contract.CheckInputSchema(schema) == nil {
			union.Set("type", contract.Quote("object"))
		}
		schema = moveRefs(schema, "/anyOf/0", false, 0)
	}
	union.Set("anyOf", contract.Array(schema, json.RawMessage(runningSchema)))
	return union.JSON()
}

// schemaMaps are the keywords whose value maps names to schemas, and
// literalValues those whose value is no schema at all (JSON Schema 2020-12 and
// before).
var (
	schemaMaps    = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true, "dependencies": true}
	literalValues = map[string]bool{"const": true, "enum": true, "default": true, "examples": true}
)

// maxSchemaDepth bounds the work on one schema: a reference deeper down stays as
// it is.
const maxSchemaDepth = 100

// moveRefs puts path in front of every reference into the schema's own root.
// isMap says that the object's keys are names, not keywords. A schema with an
// $id is a root of its own and stays.
func moveRefs(raw json.RawMessage, path string, isMap bool, depth int) json.RawMessage {
	if depth > maxSchemaDepth {
		return raw
	}
	switch contract.TypeName(raw) {
	case "an array":
		elements, err := contract.ParseArray(raw)
		if err != nil {
			return raw
		}
		for i := range elements {
			elements[i] = moveRefs(elements[i], path, false, depth+1)
		}
		return contract.Array(elements...)
	case "an object":
		o, err := contract.ParseObject(raw)
		if err != nil || !isMap && isRoot(o.Get("$id")) {
			return raw
		}
		o.Each(func(key string, value json.RawMessage) json.RawMessage {
			switch {
			case isMap:
				return moveRefs(value, path, false, depth+1)
			case key == "$ref" || key == "$dynamicRef":
				return moveRef(value, path)
			case literalValues[key]:
				return value
			}
			return moveRefs(value, path, schemaMaps[key], depth+1)
		})
		return o.JSON()
	}
	return raw
}

// isRoot tells an $id from an anchor, which up to draft-07 is an $id too.
func isRoot(id json.RawMessage) bool {
	var s string
	return json.Unmarshal(id, &s) == nil && s != "" && !strings.HasPrefix(s, "#")
}

func moveRef(raw json.RawMessage, path string) json.RawMessage {
	var ref string
	if json.Unmarshal(raw, &ref) != nil {
		return raw
	}
	if ref == "" || ref == "#" || strings.HasPrefix(ref, "#/") {
		return contract.Quote("#" + path + strings.TrimPrefix(ref, "#"))
	}
	return raw
}
