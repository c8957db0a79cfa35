package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/nexus-rpc/sdk-go/nexus"
)

// builder turns declarations into operations and a manifest, and collects what is
// wrong with them.
type builder struct {
	service    *Service
	names      map[string]bool
	tools      []contract.Tool
	activities []*activityRunner
	faults     []error
	warnings   []string
}

func (b *builder) fault(place string, err error) {
	b.faults = append(b.faults, fmt.Errorf("%s: %w", place, err))
}

func (b *builder) warn(place, format string, args ...any) {
	b.warnings = append(b.warnings, place+": "+fmt.Sprintf(format, args...))
}

func (b *builder) build() []nexus.RegisterableOperation {
	var operations []nexus.RegisterableOperation
	for i, e := range b.service.entries {
		if op := b.add(i, e); op != nil {
			operations = append(operations, op)
		}
	}
	options := b.service.options
	for _, name := range options.Exclude {
		if !options.ExposeAll {
			b.fault("options: Exclude", errors.New("it means nothing without ExposeAll"))
			break
		}
		if !b.names[name] {
			b.fault("options: Exclude", fmt.Errorf("there is no operation %q", name))
		}
	}
	if c := options.Capabilities; c != nil {
		if _, err := contract.ParseObject(c); err != nil {
			b.fault("options: Capabilities", err)
			return nil
		}
	}
	list, err := newListOperation(b.service, b.tools)
	if err != nil {
		b.fault("manifest", err)
		return nil
	}
	return append(operations, list)
}

// add returns the operation to register for an entry.
func (b *builder) add(i int, e entry) nexus.RegisterableOperation {
	if e.op == nil {
		b.fault(fmt.Sprintf("operation %d", i), errors.New("nil"))
		return nil
	}
	name := e.op.Name()
	options := b.service.options
	exposed := options.ExposeAll && !slices.Contains(options.Exclude, name) && !isMethod(name)
	what := "operation"
	if e.tool != nil || exposed {
		what = "tool"
	}
	place := fmt.Sprintf("%s %q", what, name)
	if b.names[name] {
		b.fault(place, errors.New("name: another operation of the service has it"))
		return nil
	}
	b.names[name] = true
	b.addActivity(place, e.op)
	switch {
	case e.tool != nil:
		return b.addTool(place, e.op, *e.tool)
	case exposed:
		tool := Tool{Description: describe(name)}
		b.warn(place, "it is exposed without a declaration: the model knows no more of it than %q", tool.Description)
		return b.addTool(place, e.op, tool)
	case name == "":
		b.fault(place, errors.New("name: the name is empty"))
	case contract.IsReserved(name):
		b.fault(place, errors.New("name: it is reserved"))
	case strings.Contains(name, "/"):
		b.fault(place, errors.New("name: the Temporal server refuses a slash"))
	}
	return e.op
}

func (b *builder) addActivity(place string, op nexus.RegisterableOperation) {
	a, ok := op.(interface{ runner() *activityRunner })
	if !ok {
		return
	}
	for _, err := range a.runner().check() {
		b.fault(place, err)
	}
	b.activities = append(b.activities, a.runner())
}

func (b *builder) addTool(place string, op nexus.RegisterableOperation, tool Tool) nexus.RegisterableOperation {
	inner, err := inspect(op)
	if err != nil {
		b.fault(place, err)
		return nil
	}
	if isLikeResult(inner.output) {
		b.fault(place, fmt.Errorf("output: the operation returns %s, whose errors would pass for values; return mcptool.Result", inner.output))
		return nil
	}
	t := &toolOperation{
		name: op.Name(), operation: inner, kind: inner.kind,
		encoding: contract.EncodingValue, repeatable: tool.Annotations.repeatable(),
	}
	if tool.Kind != "" {
		t.kind = tool.Kind
	}
	if inner.output == resultType {
		t.encoding = contract.EncodingMCP
	}
	d := declaration{tool: tool, operation: t}
	raw := d.object()
	for _, err := range d.faults {
		b.fault(place, err)
	}
	if decoded, _, err := contract.DecodeTool(raw); err != nil {
		for _, err := range unjoin(err) {
			if !d.faulty(err) {
				b.fault(place, err)
			}
		}
	} else {
		b.tools = append(b.tools, decoded)
	}
	if t.kind == contract.KindSync && !t.repeatable {
		b.warn(place, "it is synchronous and neither read-only nor idempotent: when its Worker dies, Temporal delivers the call again "+
			"and it may run twice. mcptool.NewActivityOperation runs at most once; a hint in Annotations says that twice does no harm")
	}
	return t
}

// isLikeResult tells the types that are a CallToolResult and not a [Result], which
// alone is sent as one.
func isLikeResult(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		return t.Elem() == resultType || isLikeResult(t.Elem())
	}
	return t == reflect.TypeFor[contract.Result]()
}

func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// declaration makes the tool object of a manifest.
type declaration struct {
	tool      Tool
	operation *toolOperation
	faults    []error
}

func (d *declaration) fault(field string, err error) {
	d.faults = append(d.faults, fmt.Errorf("%s: %w", field, err))
}

func (d *declaration) faultEach(field string, err error) {
	for _, err := range unjoin(err) {
		d.fault(field, err)
	}
}

// faulty tells whether the field that an error is about has a fault already.
func (d *declaration) faulty(err error) bool {
	field, _, _ := strings.Cut(err.Error(), ":")
	return slices.ContainsFunc(d.faults, func(f error) bool { return strings.HasPrefix(f.Error(), field+":") })
}

func (d *declaration) object() json.RawMessage {
	tool := d.tool
	var o contract.Object
	o.Set("name", contract.Quote(d.operation.name))
	if tool.Title != "" {
		o.Set("title", contract.Quote(tool.Title))
	}
	if strings.TrimSpace(tool.Description) == "" {
		d.fault("description", errors.New("missing"))
	}
	o.Set("description", contract.Quote(tool.Description))
	if schema := d.input(); schema != nil {
		o.Set("inputSchema", schema)
	}
	if schema := d.output(); schema != nil {
		o.Set("outputSchema", schema)
	}
	d.set(&o, "annotations", tool.Annotations)
	if len(tool.Icons) > 0 {
		d.set(&o, "icons", tool.Icons)
	}
	if meta := d.meta(); meta.Len() > 0 {
		o.Set("_meta", meta.JSON())
	}
	return o.JSON()
}

func (d *declaration) set(o *contract.Object, key string, v any) {
	data, err := encode(v)
	if err != nil {
		d.fault(key, err)
	} else if string(data) != "{}" {
		o.Set(key, data)
	}
}

// input returns the input schema, nil where there is a fault.
func (d *declaration) input() json.RawMessage {
	raw := d.tool.InputSchema
	if len(raw) == 0 {
		var err error
		if raw, err = derived(inputSchema(d.operation.operation.input)); err != nil {
			d.faultEach("inputSchema", err)
			return nil
		}
	} else if err := contract.CheckInputSchema(raw); err != nil {
		d.fault("inputSchema", err)
		return nil
	}
	args, err := compileArguments(raw)
	if err != nil {
		d.fault("inputSchema", err)
		return nil
	}
	d.operation.arguments = args
	return raw
}

func derived(s *jsonschema.Schema, err error) (json.RawMessage, error) {
	if err != nil || s == nil {
		return nil, err
	}
	return schemaJSON(s)
}

func (d *declaration) output() json.RawMessage {
	raw := d.tool.OutputSchema
	if len(raw) > 0 {
		if contract.IsNull(raw) {
			return nil
		}
		err := contract.CheckSchema(raw)
		if err == nil {
			_, err = compileArguments(raw)
		}
		if err != nil {
			d.fault("outputSchema", err)
			return nil
		}
		return raw
	}
	raw, err := derived(outputSchema(d.operation.operation.output))
	if err != nil {
		d.faultEach("outputSchema", err)
	}
	return raw
}

func (d *declaration) meta() contract.Object {
	var o contract.Object
	for _, key := range sortedKeys(d.tool.Meta) {
		if ownsKey(key) {
			d.fault("_meta", fmt.Errorf("%q: the contract owns this key", key))
			continue
		}
		data, err := encode(d.tool.Meta[key])
		if err != nil {
			d.fault("_meta", fmt.Errorf("%q: %w", key, err))
			continue
		}
		o.Set(key, data)
	}
	switch timeout := d.tool.ScheduleToCloseTimeout; {
	case timeout == 0:
	case timeout < contract.MinScheduleToClose:
		d.fault("ScheduleToCloseTimeout", fmt.Errorf("%s; the Temporal server cannot keep less than %s: calls would time out on their way to the Worker",
			timeout, contract.MinScheduleToClose))
	default:
		o.Set(contract.MetaScheduleToClose, json.RawMessage(fmt.Sprint(timeout.Milliseconds())))
	}
	if d.operation.encoding != contract.EncodingValue {
		o.Set(contract.MetaEncoding, contract.Quote(string(d.operation.encoding)))
	}
	switch kind := d.operation.kind; kind {
	case "":
	case contract.KindSync, contract.KindWorkflow, contract.KindActivity, contract.KindUpdate:
		o.Set(contract.MetaKind, contract.Quote(string(kind)))
	default:
		d.fault("Kind", fmt.Errorf("%q: no such kind", kind))
	}
	return o
}
