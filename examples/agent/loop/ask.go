package loop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
)

// ask starts the Workflow and prints its answer. Calls that need an approval are
// put to the person at in, or allowed if allow says so.
func ask(ctx context.Context, c client.Client, input Input, allow bool, in io.Reader, out io.Writer) error {
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: TaskQueue}, Agent, input)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the Workflow is %s\n", run.GetID())
	type end struct {
		answer Answer
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		var e end
		e.err = run.Get(ctx, &e.answer)
		ended <- e
	}()
	lines := bufio.NewScanner(in)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case e := <-ended:
			if e.err != nil {
				return e.err
			}
			fmt.Fprintf(out, "\n%s\n\n", e.answer.Text)
			if e.answer.OutOfBudget {
				return fmt.Errorf("the budget of %d turns is used up", e.answer.Turns)
			}
			return nil
		case <-again.C:
		}
		for _, call := range pending(ctx, c, run.GetID()) {
			fmt.Fprintf(out, "it wants to call %s %s, which destroys something. Allow it? [y/N] ", call.Tool, call.Arguments)
			said := Approval{ID: call.ID, Allow: allow}
			if allow {
				fmt.Fprintln(out, "y (--allow)")
			} else {
				if !lines.Scan() { // nobody is there: whoever is may decide later
					return fmt.Errorf("nobody answers; the Workflow waits for the update %q with %s", UpdateApprove, call.ID)
				}
				said.Allow = strings.HasPrefix(strings.ToLower(lines.Text()), "y")
			}
			if err := approve(ctx, c, run.GetID(), said); err != nil {
				fmt.Fprintln(out, err) // somebody else was faster
			}
		}
	}
}

// pending are the calls that wait for a person. Without a Worker nobody tells.
func pending(ctx context.Context, c client.Client, id string) (calls []Pending) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if value, err := c.QueryWorkflow(ctx, id, "", QueryPending); err == nil {
		_ = value.Get(&calls)
	}
	return calls
}

// approve decides a call.
func approve(ctx context.Context, c client.Client, id string, said Approval) error {
	update, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: UpdateApprove, Args: []any{said}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return update.Get(ctx, nil)
}
