package mcpworkflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// outcome is how a call ended, as the Workflow saw it, as JSON.
func outcome(result contract.Result, err error) converter.RawValue {
	var o contract.Object
	var f *contract.Failure
	switch {
	case err == nil:
		o.Set("result", result.JSON())
	case temporal.IsCanceledError(err):
		o.Set("canceled", json.RawMessage("true"))
	case errors.As(err, &f) && f.Protocol() != nil:
		o.Set("protocol", f.Protocol().JSON())
	default:
		o.Set("error", contract.Quote(err.Error()))
	}
	return resultmap.RawValue(o.JSON())
}

// The Workflow client passes the suite that every caller of tools runs against
// itself, each call from a Workflow of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "contract")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(contracttest.NewService(p.name))
		workflowNamed(w, "call", func(ctx workflow.Context, in converter.RawValue) (converter.RawValue, error) {
			input, err := contract.ParseObject(in.Payload().GetData())
			if err != nil {
				return converter.RawValue{}, err
			}
			var name string
			if err := json.Unmarshal(input.Get("tool"), &name); err != nil {
				return converter.RawValue{}, err
			}
			tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: p.name}}})
			return outcome(tools.Call(ctx, name, input.Get("arguments"))), nil
		})
	})
	contracttest.Caller(t, func(ctx context.Context, tool string, arguments json.RawMessage) contracttest.Outcome {
		var input contract.Object
		input.Set("tool", contract.Quote(tool))
		if arguments != nil {
			input.Set("arguments", arguments)
		}
		var output converter.RawValue
		if err := p.start(t, "call", resultmap.RawValue(input.JSON())).Get(ctx, &output); err != nil {
			return contracttest.Outcome{Err: err}
		}
		o, err := contract.ParseObject(output.Payload().GetData())
		switch {
		case err != nil:
			return contracttest.Outcome{Err: err}
		case o.Has("result"):
			return contracttest.Outcome{Result: o.Get("result")}
		case o.Has("canceled"):
			return contracttest.Outcome{Canceled: true}
		case o.Has("protocol"):
			p, err := contract.DecodeProtocolError(o.Get("protocol"))
			return contracttest.Outcome{Protocol: p, Err: err}
		}
		return contracttest.Outcome{Err: errors.New(string(o.Get("error")))}
	})
}
