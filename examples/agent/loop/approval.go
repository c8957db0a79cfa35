package loop

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// QueryPending is the query for the calls that wait for a person: []Pending.
	QueryPending = "pending"
	// UpdateApprove is the update that decides one: an Approval.
	UpdateApprove = "approve"
)

// Pending is a call that waits for a person.
type Pending struct {
	// ID is the agent's own: no two calls of a Workflow have the same.
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`

	decision *Approval
}

// Approval is what a person says about a call.
type Approval struct {
	ID    string `json:"id"`
	Allow bool   `json:"allow"`
	// Reason is for the model, where the call is not allowed.
	Reason string `json:"reason,omitempty"`
}

func (a *agent) handleApprovals(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, QueryPending, func() ([]*Pending, error) { return a.waiting, nil })
	if err != nil {
		return err
	}
	approve := func(_ workflow.Context, said Approval) error {
		a.find(said.ID).decision = &said
		return nil
	}
	// What a validator refuses leaves no trace in the history.
	isWaiting := func(said Approval) error {
		if p := a.find(said.ID); p == nil || p.decision != nil {
			return temporal.NewApplicationError(fmt.Sprintf("no call %q waits for an approval", said.ID), "NotWaiting")
		}
		return nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, UpdateApprove, approve, workflow.UpdateHandlerOptions{Validator: isWaiting})
}

func (a *agent) find(id string) *Pending {
	if i := slices.IndexFunc(a.waiting, func(p *Pending) bool { return p.ID == id }); i >= 0 {
		return a.waiting[i]
	}
	return nil
}

// approval waits until a person has decided, for as long as it takes.
func (a *agent) approval(ctx workflow.Context, id string, call Call) (Approval, error) {
	p := &Pending{ID: id, Tool: call.Tool, Arguments: call.Arguments}
	a.waiting = append(a.waiting, p)
	err := workflow.Await(ctx, func() bool { return p.decision != nil })
	a.waiting = slices.DeleteFunc(a.waiting, func(other *Pending) bool { return other == p })
	if err != nil {
		return Approval{}, err
	}
	return *p.decision, nil
}
