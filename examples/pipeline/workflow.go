package main

import (
	"errors"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/workflow"
)

// Report is what came of the calls.
type Report struct {
	Done int `json:"done"`
	// Luckiest has the highest number.
	Luckiest string `json:"luckiest"`
	Number   int    `json:"number"`
	// Refused are those that the tool said no to, and why.
	Refused map[string]string `json:"refused,omitempty"`
	// Unknown may or may not have had their effect: somebody has to find out.
	Unknown []string `json:"unknown,omitempty"`
	// Failed are the rest, by the class of the failure.
	Failed map[string][]string `json:"failed,omitempty"`
}

type luckyNumber struct {
	Name   string `json:"name"`
	Number int    `json:"number"`
}

// Pipeline calls the tool for every name at once, and takes the results as they
// come. It may be killed at any point: Temporal has the calls.
func Pipeline(ctx workflow.Context, names []string) (Report, error) {
	tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "lucky-number"}}})
	if _, err := tools.List(ctx); err != nil {
		return Report{}, err
	}
	report := Report{Refused: map[string]string{}, Failed: map[string][]string{}}
	again := map[string]bool{}
	selector := workflow.NewSelector(ctx)
	left := 0
	var stopped error

	var call func(name string)
	call = func(name string) {
		left++
		future := tools.CallAsync(ctx, "lucky_number", map[string]string{"name": name}, mcpworkflow.WithTimeout(time.Minute))
		selector.AddFuture(future.Future(), func(workflow.Future) {
			left--
			got, err := mcpworkflow.As[luckyNumber](ctx, future)
			var failure *contract.Failure
			switch {
			case err == nil:
				report.add(got)
			case !errors.As(err, &failure):
				stopped = err // the Workflow is cancelled; a call that its service cancelled has failed
			case failure.Code == contract.CodeToolError:
				report.Refused[name] = failure.Message
			case failure.Code == contract.CodeOutcomeUnknown:
				report.Unknown = append(report.Unknown, name)
			case failure.Code == contract.CodeTimedOut && !again[name]:
				again[name] = true // the tool only reads: it may run again
				call(name)
			default:
				class := string(failure.Code)
				report.Failed[class] = append(report.Failed[class], name)
			}
		})
	}
	for _, name := range names {
		call(name)
	}
	for left > 0 && stopped == nil {
		selector.Select(ctx)
	}
	return report, stopped
}

func (r *Report) add(n luckyNumber) {
	r.Done++
	if n.Number > r.Number {
		r.Luckiest, r.Number = n.Name, n.Number
	}
}
