package contracttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/converter"
)

// pageTools is how many tools a page of the scripted service has: a caller has
// to go through several.
const pageTools = 10

// scripted is one tool of the scripted service. What it answers is fixed.
type scripted struct {
	name        string
	description string
	encoding    contract.Encoding
	// outputSchema is empty where the tool declares none.
	outputSchema string
	// timeoutMs is the schedule-to-close timeout; zero is none.
	timeoutMs int
	// run is nil where there is no such operation.
	run func(input json.RawMessage) (json.RawMessage, error)
	// hangs makes an operation that starts and never completes.
	hangs bool
}

// NewService returns the scripted service: each of its tools is one row of the
// tables of results and failures, and answers alike to every call. Register it
// with a Worker behind a Nexus endpoint and let [Caller] call it. It needs
// neither Workflows nor activities.
func NewService(name string) *nexus.Service {
	service := nexus.NewService(name)
	service.MustRegister(rawOperation(contract.OperationListTools, listTools))
	for _, t := range tools() {
		switch {
		case t.hangs:
			service.MustRegister(&hanging{name: t.name})
		case t.run != nil:
			service.MustRegister(rawOperation(t.name, t.run))
		}
	}
	return service
}

func rawOperation(name string, run func(input json.RawMessage) (json.RawMessage, error)) nexus.RegisterableOperation {
	return nexus.NewSyncOperation(name, func(_ context.Context, in converter.RawValue, _ nexus.StartOperationOptions) (converter.RawValue, error) {
		input, err := resultmap.JSON(in)
		if err != nil {
			return converter.RawValue{}, resultmap.OperationError(resultmap.FromError(err))
		}
		output, err := run(input)
		if err != nil {
			return converter.RawValue{}, err
		}
		return resultmap.RawValue(output), nil
	})
}

// hanging is an operation that starts and never completes. Who asks it to cancel
// gets no more than the acknowledgement.
type hanging struct {
	nexus.UnimplementedOperation[converter.RawValue, converter.RawValue]
	name string
}

func (h *hanging) Name() string { return h.name }

func (h *hanging) Start(context.Context, converter.RawValue, nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[converter.RawValue], error) {
	return &nexus.HandlerStartOperationResultAsync{OperationToken: "never"}, nil
}

func (h *hanging) Cancel(context.Context, string, nexus.CancelOperationOptions) error { return nil }

// listTools answers with [pageTools] tools at a time. The cursor is the number of
// the first.
func listTools(input json.RawMessage) (json.RawMessage, error) {
	all := tools()
	cursor, err := contract.DecodeListInput(input)
	start := 0
	if err == nil && cursor != "" {
		if start, err = strconv.Atoi(cursor); err == nil && (start <= 0 || start >= len(all) || start%pageTools != 0) {
			err = fmt.Errorf("cursor: %q is none of this manifest's", cursor)
		}
	}
	if err != nil {
		return nil, &nexus.HandlerError{Type: nexus.HandlerErrorTypeBadRequest, Message: err.Error()}
	}
	end := min(start+pageTools, len(all))
	page := contract.Manifest{
		Version:      contract.Version,
		ServerInfo:   json.RawMessage(`{"name":"contracttest","version":"1"}`),
		Instructions: "Each tool is one row of the contract's tables.",
	}
	for _, t := range all[start:end] {
		page.Tools = append(page.Tools, contract.Tool{Raw: t.json()})
	}
	if end < len(all) {
		page.NextCursor = strconv.Itoa(end)
	}
	return page.JSON(), nil
}

func (s scripted) json() json.RawMessage {
	var tool, meta contract.Object
	tool.Set("name", contract.Quote(s.name))
	tool.Set("description", contract.Quote(s.description))
	tool.Set("inputSchema", json.RawMessage(`{"type":"object"}`))
	if s.outputSchema != "" {
		tool.Set("outputSchema", json.RawMessage(s.outputSchema))
	}
	if s.encoding == contract.EncodingMCP {
		meta.Set(contract.MetaEncoding, contract.Quote(string(contract.EncodingMCP)))
	}
	if s.timeoutMs > 0 {
		meta.Set(contract.MetaScheduleToClose, json.RawMessage(strconv.Itoa(s.timeoutMs)))
	}
	kind := contract.KindSync
	if s.hangs {
		kind = contract.KindWorkflow
	}
	meta.Set(contract.MetaKind, contract.Quote(string(kind)))
	tool.Set("_meta", meta.JSON())
	return tool.JSON()
}
