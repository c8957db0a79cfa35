package loop

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Input is what the agent is to do, and after continue-as-new how far it is.
type Input struct {
	Question string                `json:"question"`
	Services []mcpworkflow.Service `json:"services"`
	// Budget is how often the model may be asked.
	Budget int `json:"budget"`

	// Turns are those of the runs before, and Tools what they had listed.
	Turns []Turn                `json:"turns,omitempty"`
	Tools *mcpworkflow.Snapshot `json:"tools,omitempty"`
}

// Answer is what came of it.
type Answer struct {
	Text  string `json:"text"`
	Turns int    `json:"turns"`
	// OutOfBudget says that the agent was stopped; Text is the last that the model
	// said.
	OutOfBudget bool `json:"out_of_budget,omitempty"`
}

// Agent asks the model, calls the tools that it wants, and asks again, until the
// model answers or the budget is used up. It may be killed at any point: Temporal
// has the model's replies, the calls and their results.
func Agent(ctx workflow.Context, in Input) (Answer, error) {
	a := &agent{}
	if err := a.handleApprovals(ctx); err != nil {
		return Answer{}, err
	}
	a.tools = mcpworkflow.New(mcpworkflow.Options{Services: in.Services, Snapshot: in.Tools})
	list, err := a.tools.List(ctx)
	if err != nil {
		return Answer{}, err
	}
	a.list = list

	answer := Answer{OutOfBudget: true}
	for first := true; len(in.Turns) < in.Budget; first = false {
		// A Workflow's history must not grow for ever: go on in a new run. No call
		// is under way here, and no approval awaited.
		if !first && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return Answer{}, a.goOn(ctx, in)
		}
		reply, err := a.ask(ctx, in)
		if err != nil {
			return Answer{}, err
		}
		answer.Text, answer.Turns = reply.Text, len(in.Turns)+1
		if len(reply.Calls) == 0 {
			answer.OutOfBudget = false
			return answer, nil
		}
		if answer.Turns == in.Budget {
			break // nobody would read what the tools return
		}
		outputs, err := a.callAll(ctx, answer.Turns, reply.Calls)
		if err != nil {
			return Answer{}, err
		}
		in.Turns = append(in.Turns, Turn{reply, outputs})
	}
	return answer, nil
}

// agent is the state of a run.
type agent struct {
	tools   *mcpworkflow.Client
	list    *mcpworkflow.Snapshot
	waiting []*Pending
}

// goOn ends the run for a new one. The list of tools that this one has goes along
// where there is room for it.
func (a *agent) goOn(ctx workflow.Context, in Input) error {
	in.Tools = a.list
	if fits(in) != nil {
		in.Tools = nil
	}
	if err := fits(in); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, Agent, in)
}

// fits returns an error for what is too large for Temporal, which would fail the
// Workflow task instead of the Workflow, again and again.
func fits(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := contract.CheckSize("conversation", data); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), "ConversationTooLong", nil)
	}
	return nil
}

// ask asks the model in an activity: a reply that came is never asked for again.
func (a *agent) ask(ctx workflow.Context, in Input) (reply Reply, err error) {
	c := Conversation{Instructions: a.list.Instructions(), Question: in.Question, Turns: in.Turns}
	for _, e := range a.list.Entries {
		c.Tools = append(c.Tools, Tool{Name: e.Name, Description: e.Tool.Description, InputSchema: e.Tool.InputSchema})
	}
	if err := fits(c); err != nil {
		return reply, err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Minute,
		HeartbeatTimeout:    3 * heartbeat,
		Summary:             fmt.Sprintf("turn %d", len(in.Turns)+1),
	})
	var activities *Activities
	err = workflow.ExecuteActivity(ctx, activities.Ask, c).Get(ctx, &reply)
	return reply, err
}
