package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// CheckResult returns the value, or a failure that names the sizes if it would
// not fit in one Temporal payload. A Workflow that returns more would never end.
// It is for the last line of a Workflow or of an activity:
//
//	return mcptool.CheckResult(report)
//
// It is deterministic. Sync tools and activities of [NewActivityOperation] are
// checked anyway.
func CheckResult[T any](v T) (T, error) {
	// What Temporal will send: its JSON converter escapes <, > and &.
	payload, err := converter.GetDefaultDataConverter().ToPayload(v)
	if err == nil {
		err = contract.CheckSize("result", payload.GetData())
	} else {
		err = unencodable(err)
	}
	if err != nil {
		var zero T
		return zero, final(err)
	}
	return v, nil
}

// encodeResult returns the result of a tool as JSON that fits in a payload.
func encodeResult(v any) (json.RawMessage, error) {
	if r, ok := v.(Result); ok && r.err == nil {
		if _, err := contract.DecodeResult(r.raw.JSON()); err != nil {
			return nil, unencodable(err)
		}
	}
	data, err := encode(v)
	if err != nil {
		return nil, unencodable(err)
	}
	if err := contract.CheckSize("result", data); err != nil {
		return nil, err
	}
	return data, nil
}

func unencodable(err error) error {
	if failure, ok := errors.AsType[*contract.Failure](err); ok {
		return failure
	}
	return &contract.Failure{
		Code: contract.CodeFailed, Cause: err,
		Message: fmt.Sprintf("The tool's result cannot be JSON: %v.", err),
	}
}

// encode returns a value as JSON without HTML escapes. Raw JSON keeps its
// numbers.
func encode(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return json.RawMessage("null"), nil
	case converter.RawValue:
		return resultmap.JSON(v)
	case json.RawMessage:
		if len(v) == 0 {
			return json.RawMessage("null"), nil
		}
		if !json.Valid(v) || !utf8.Valid(v) {
			return nil, errors.New("the raw JSON is not valid")
		}
		return bytes.TrimSpace(v), nil
	case proto.Message:
		payload, err := converter.NewProtoJSONPayloadConverter().ToPayload(v)
		if err != nil {
			return nil, err
		}
		return payload.GetData(), nil
	}
	if t := reflect.TypeOf(v); t == noValue {
		return json.RawMessage("null"), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
