package loop_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflowtest"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// script is a model that says the replies in order, and keeps what it was shown.
type script struct {
	replies []loop.Reply
	seen    []loop.Conversation
}

func (s *script) Reply(_ context.Context, c loop.Conversation) (loop.Reply, error) {
	s.seen = append(s.seen, c)
	return s.replies[len(c.Turns)], nil
}

func call(id, tool, arguments string) loop.Call { return loop.NewCall(id, tool, arguments) }

// shelf is a service with a tool that reads, one that says that it destroys, and
// one that says nothing of itself.
func shelf(description string) *mcpworkflowtest.Service {
	echo := func(input json.RawMessage) (any, error) { return input, nil }
	return mcpworkflowtest.NewService("shelf",
		mcpworkflowtest.Tool{Name: "read", Description: description, Run: echo, Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
		mcpworkflowtest.Tool{Name: "drop", Run: echo, Annotations: json.RawMessage(`{"destructiveHint":true}`)},
		mcpworkflowtest.Tool{Name: "poke", Run: echo},
	)
}

func environment(t *testing.T, model loop.Model, service *mcpworkflowtest.Service) (*testsuite.TestWorkflowEnvironment, *mcpworkflowtest.Log) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflow(loop.Agent)
	env.RegisterActivity(&loop.Activities{Model: model})
	return env, mcpworkflowtest.Register(env, worker.Options{}, service)
}

var input = loop.Input{Question: "why?", Services: []mcpworkflow.Service{{Name: "shelf"}}, Budget: 5}

func answer(t *testing.T, env *testsuite.TestWorkflowEnvironment) (a loop.Answer) {
	t.Helper()
	require.NoError(t, env.GetWorkflowResult(&a))
	return a
}

func pending(t *testing.T, env *testsuite.TestWorkflowEnvironment) (calls []loop.Pending) {
	t.Helper()
	value, err := env.QueryWorkflow(loop.QueryPending)
	require.NoError(t, err)
	require.NoError(t, value.Get(&calls))
	return calls
}

// approve sends the update. Once it is handled, rejected says why it was not
// accepted.
func approve(env *testsuite.TestWorkflowEnvironment, said loop.Approval) (rejected *error) {
	rejected = new(error)
	env.UpdateWorkflow(loop.UpdateApprove, "", &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: func(err error) { *rejected = err }, OnComplete: func(any, error) {},
	}, said)
	return rejected
}

func TestCallsOfATurnGoOutAtOnce(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{
		{Text: "let me see", Raw: json.RawMessage(`{"thoughts":[1.0]}`), Calls: []loop.Call{
			call("a", "read", `{"n":9007199254740993,"x":1.0}`),
			call("b", "read", `{"n":2}`),
			call("c", "nowhere", `{}`),
			call("d", "read", `{"n":`),
		}},
		{Text: "because"},
	}}
	env, log := environment(t, model, shelf("reads"))
	env.ExecuteWorkflow(loop.Agent, input)
	require.Equal(t, loop.Answer{Text: "because", Turns: 2}, answer(t, env))
	require.Equal(t, []string{"read", "read"}, log.Names())
	require.JSONEq(t, `{"n":9007199254740993,"x":1.0}`, string(log.Calls()[0].Input))
	require.Contains(t, string(log.Calls()[0].Input), "9007199254740993")

	require.Len(t, model.seen, 2)
	require.Len(t, model.seen[0].Tools, 3)
	turn := model.seen[1].Turns[0]
	require.Equal(t, `{"thoughts":[1.0]}`, string(turn.Reply.Raw))
	require.Equal(t, loop.Output{ID: "a", Text: `{"n":9007199254740993,"x":1.0}`}, turn.Outputs[0])
	require.Equal(t, loop.Output{ID: "b", Text: `{"n":2}`}, turn.Outputs[1])
	require.True(t, turn.Outputs[2].IsError)
	require.Contains(t, turn.Outputs[2].Text, "nowhere")
	require.True(t, turn.Outputs[3].IsError)
	require.Contains(t, turn.Outputs[3].Text, "a string")
}

func TestDestructiveCallsWaitForAPerson(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{
		{Calls: []loop.Call{call("a", "drop", `{"n":1}`), call("b", "read", `{"n":2}`), call("c", "poke", `{"n":3}`)}},
		{Text: "done"},
	}}
	env, log := environment(t, model, shelf("reads"))
	var unknown, refused, again *error
	env.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"read"}, log.Names(), "what destroys nothing waits for nobody")
		waiting := pending(t, env)
		require.Len(t, waiting, 2)
		require.Equal(t, "1.1", waiting[0].ID)
		require.Equal(t, "drop", waiting[0].Tool)
		require.Equal(t, `{"n":1}`, string(waiting[0].Arguments))
		require.Equal(t, "poke", waiting[1].Tool, "a tool that says nothing counts as destructive")

		unknown = approve(env, loop.Approval{ID: "1.2", Allow: true})
		refused = approve(env, loop.Approval{ID: "1.3", Reason: "Leave it alone."})
		again = approve(env, loop.Approval{ID: "1.3", Allow: true})
	}, 24*time.Hour)
	env.RegisterDelayedCallback(func() {
		require.ErrorContains(t, *unknown, `no call "1.2" waits`)
		require.NoError(t, *refused)
		require.ErrorContains(t, *again, `no call "1.3" waits`, "a decision stands")
		require.Equal(t, []string{"read"}, log.Names())
		require.Len(t, pending(t, env), 1)
		approve(env, loop.Approval{ID: "1.1", Allow: true})
	}, 48*time.Hour)
	env.ExecuteWorkflow(loop.Agent, input)
	require.Equal(t, loop.Answer{Text: "done", Turns: 2}, answer(t, env))
	require.Equal(t, []string{"read", "drop"}, log.Names())
	outputs := model.seen[1].Turns[0].Outputs
	require.Equal(t, loop.Output{ID: "a", Text: `{"n":1}`}, outputs[0])
	require.Equal(t, loop.Output{ID: "c", Text: "A person did not allow this call. Leave it alone.", IsError: true}, outputs[2])
}

func TestBudget(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{
		{Calls: []loop.Call{call("a", "read", `{}`)}},
		{Text: "still looking", Calls: []loop.Call{call("b", "read", `{}`)}},
	}}
	env, log := environment(t, model, shelf("reads"))
	limited := input
	limited.Budget = 2
	env.ExecuteWorkflow(loop.Agent, limited)
	require.Equal(t, loop.Answer{Text: "still looking", Turns: 2, OutOfBudget: true}, answer(t, env))
	require.Len(t, log.Names(), 1, "nobody would read the result of the last call")
}

// TestContinueAsNew: a new run has the turns of the one before, what is left of
// its budget, and its list of tools, whatever the service has by then.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{
		{Calls: []loop.Call{call("a", "read", `{"n":1}`)}},
		{Text: "more", Calls: []loop.Call{call("b", "read", `{"n":2}`)}},
		{Text: "never asked"},
	}}
	limited := input
	limited.Budget = 2
	env, _ := environment(t, model, shelf("as it was"))
	env.SetContinueAsNewSuggested(true)
	env.ExecuteWorkflow(loop.Agent, limited)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	require.Len(t, model.seen, 1)

	var carried loop.Input
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &carried))
	require.Len(t, carried.Turns, 1)
	require.Equal(t, `{"n":1}`, carried.Turns[0].Outputs[0].Text)
	env, log := environment(t, model, shelf("as it is now"))
	env.ExecuteWorkflow(loop.Agent, carried)
	require.Equal(t, loop.Answer{Text: "more", Turns: 2, OutOfBudget: true}, answer(t, env))
	require.Empty(t, log.Names())
	require.Len(t, model.seen, 2)
	require.Equal(t, model.seen[0].Tools, model.seen[1].Tools)
	require.Equal(t, "as it was", model.seen[1].Tools[2].Description)
}

// TestContinueAsNewTooLong: what is too large for a new run ends this one; a list of
// tools alone is listed anew.
func TestContinueAsNewTooLong(t *testing.T) {
	t.Parallel()
	for room, want := range map[int]string{0: "", 20_000: "again", 200_000: "again"} {
		model := &script{replies: []loop.Reply{
			1: {Text: strings.Repeat("y", 10_000), Calls: []loop.Call{call("a", "read", `{}`)}}, 2: {Text: "never asked"},
		}}
		env, _ := environment(t, model, shelf("reads"))
		env.SetContinueAsNewSuggested(true)
		long := input
		long.Turns = []loop.Turn{{Reply: loop.Reply{Text: strings.Repeat("x", contract.PayloadLimit-8_000-room)}}}
		env.ExecuteWorkflow(loop.Agent, long)
		var again *workflow.ContinueAsNewError
		if want == "" {
			require.ErrorContains(t, env.GetWorkflowError(), "conversation")
			require.NotErrorAs(t, env.GetWorkflowError(), &again)
			continue
		}
		require.ErrorAs(t, env.GetWorkflowError(), &again)
	}
}

func TestFailuresReachTheModel(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{
		{Calls: []loop.Call{call("a", "read", `{}`), call("b", "read", `{}`)}},
		{Text: "I see"},
	}}
	service := shelf("reads").Script("read",
		mcpworkflowtest.Fail(&contract.Failure{Code: contract.CodeOutcomeUnknown, Message: "The connection broke."}),
		mcpworkflowtest.Return(strings.Repeat("é", 100_000)))
	env, _ := environment(t, model, service)
	env.ExecuteWorkflow(loop.Agent, input)
	require.Equal(t, "I see", answer(t, env).Text)
	outputs := model.seen[1].Turns[0].Outputs
	require.True(t, outputs[0].IsError)
	require.Contains(t, outputs[0].Text, "The connection broke.")
	require.Less(t, len(outputs[1].Text), 70_000)
	require.True(t, strings.HasSuffix(outputs[1].Text, "é\n[cut: the result has 200000 bytes]"))
}

func TestCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{{Calls: []loop.Call{call("a", "drop", `{}`)}}}}
	env, log := environment(t, model, shelf("reads"))
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
	env.ExecuteWorkflow(loop.Agent, input)
	require.True(t, temporal.IsCanceledError(env.GetWorkflowError()), "%v", env.GetWorkflowError())
	require.Empty(t, log.Names())
}

func TestConversationTooLong(t *testing.T) {
	t.Parallel()
	model := &script{replies: []loop.Reply{{Text: "never asked"}}}
	env, _ := environment(t, model, shelf("reads"))
	long := input
	long.Turns = []loop.Turn{{Reply: loop.Reply{Text: strings.Repeat("x", contract.PayloadLimit)}}}
	env.ExecuteWorkflow(loop.Agent, long)
	require.ErrorContains(t, env.GetWorkflowError(), "conversation")
	require.Empty(t, model.seen)
}
