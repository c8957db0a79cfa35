package loop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/workflow"
)

// maxOutput is the most bytes of a result that the model gets.
const maxOutput = 64 << 10

// callAll makes the calls of a turn at once and waits for all of them. Those that
// need an approval wait for it, and hold up no other.
func (a *agent) callAll(ctx workflow.Context, turn int, calls []Call) ([]Output, error) {
	outputs, faults := make([]Output, len(calls)), make([]error, len(calls))
	wg := workflow.NewWaitGroup(ctx)
	for i, call := range calls {
		wg.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wg.Done()
			outputs[i], faults[i] = a.call(ctx, fmt.Sprintf("%d.%d", turn, i+1), call)
		})
	}
	wg.Wait(ctx)
	return outputs, errors.Join(faults...)
}

// call makes one call. Whatever goes wrong with it, the model is told and may do
// something about it. The only error is that the Workflow is cancelled.
func (a *agent) call(ctx workflow.Context, id string, call Call) (Output, error) {
	// A tool that says nothing of itself counts as destructive, as MCP has it.
	if entry, ok := a.list.Find(call.Tool); ok && entry.Tool.Hints().Destructive {
		approval, err := a.approval(ctx, id, call)
		if err != nil {
			return Output{}, err
		}
		if !approval.Allow {
			text := strings.TrimSpace("A person did not allow this call. " + approval.Reason)
			return Output{ID: call.ID, Text: text, IsError: true}, nil
		}
	}
	result, err := a.tools.Call(ctx, call.Tool, call.Arguments)
	var failure *contract.Failure
	switch {
	case errors.As(err, &failure):
		return Output{ID: call.ID, Text: failure.Message, IsError: true}, nil
	case err != nil:
		return Output{}, err
	}
	return Output{ID: call.ID, Text: text(result), IsError: result.IsError()}, nil
}

// text is what a model can read of a result.
func text(result contract.Result) string {
	s, _ := result.Text()
	if strings.TrimSpace(s) == "" { // a provider refuses an empty text
		s = string(result.JSON())
	}
	if len(s) > maxOutput {
		s = strings.ToValidUTF8(s[:maxOutput], "") + fmt.Sprintf("\n[cut: the result has %d bytes]", len(s))
	}
	return s
}
