package loop_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

const examples = "github.com/durable-mcp/durable-mcp/examples/"

// opened returns a stage with a dev server, the tools of lucky-number, and the
// programs.
func opened(t *testing.T) (*stage.Stage, *stage.Temporal) {
	t.Helper()
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			require.FailNow(t, how)
		}
		t.Skip(how)
	}
	st, err := stage.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	require.NoError(t, st.Build(t.Context(), examples+"lucky-number", examples+"agent/rehearsal"))
	temporal, err := st.StartTemporal(t.Context(), cli)
	require.NoError(t, err)
	t.Cleanup(temporal.Client.Close)
	child, err := st.Start("lucky-number", st.Program("lucky-number"), []string{"--ensure-endpoint"}, temporal.Env())
	require.NoError(t, err)
	require.NoError(t, child.AwaitLog(t.Context(), "lucky-number is ready"))
	return st, temporal
}

func startWorker(t *testing.T, st *stage.Stage, temporal *stage.Temporal) *stage.Child {
	t.Helper()
	child, err := st.Start("worker", st.Program("rehearsal"), []string{"worker"}, temporal.Env())
	require.NoError(t, err)
	require.NoError(t, child.AwaitLog(t.Context(), "agent is ready"))
	return child
}

func until(t *testing.T, what string, ask func(context.Context) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return ask(t.Context()) }, time.Minute, 100*time.Millisecond, what)
}

// history is all that Temporal keeps of a Workflow run.
func history(t *testing.T, c client.Client, id string) (events []*historypb.HistoryEvent) {
	t.Helper()
	all := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		event, err := all.Next()
		require.NoError(t, err)
		events = append(events, event)
	}
	return events
}

// TestWorkerIsKilled: in the middle of a call, and again while a call waits for a
// person, the Worker dies by kill -9. The next one goes on, and nothing that was
// done is done again.
func TestWorkerIsKilled(t *testing.T) {
	t.Parallel()
	st, temporal := opened(t)
	c := temporal.Client

	first := startWorker(t, st, temporal)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: loop.TaskQueue}, loop.Agent, loop.Input{
		Question: "How are things?", Services: []mcpworkflow.Service{{Name: "lucky-number"}}, Budget: 5,
	})
	require.NoError(t, err)
	until(t, "brew_report runs", func(ctx context.Context) bool {
		d, err := c.DescribeWorkflow(ctx, run.GetID(), "")
		require.NoError(t, err)
		for _, o := range d.RawResponse.GetPendingNexusOperations() {
			if o.GetOperation() == "brew_report" && o.GetState() == enumspb.PENDING_NEXUS_OPERATION_STATE_STARTED {
				return true
			}
		}
		return false
	})
	first.Kill()

	second := startWorker(t, st, temporal)
	var calls []loop.Pending
	until(t, "a call waits for a person", func(ctx context.Context) bool {
		if value, err := c.QueryWorkflow(ctx, run.GetID(), "", loop.QueryPending); err == nil {
			require.NoError(t, value.Get(&calls))
		}
		return len(calls) > 0
	})
	require.Len(t, calls, 1)
	require.Equal(t, "delete_topic_list", calls[0].Tool)
	second.Kill()

	// Two people say yes while no Worker lives: the next one gets both at once.
	said := make(chan error, 2)
	for range cap(said) {
		go func() {
			update, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
				WorkflowID: run.GetID(), UpdateName: loop.UpdateApprove, WaitForStage: client.WorkflowUpdateStageCompleted,
				Args: []any{loop.Approval{ID: calls[0].ID, Allow: true}},
			})
			if err == nil {
				err = update.Get(t.Context(), nil)
			}
			said <- err
		}()
	}
	third := startWorker(t, st, temporal)
	one, other := <-said, <-said
	require.NotEqual(t, one == nil, other == nil, "one decision counts, not two: %v, %v", one, other)

	var answer loop.Answer
	require.NoError(t, run.Get(t.Context(), &answer), "its log is %s", third.Log)
	require.Equal(t, 4, answer.Turns)
	for _, part := range []string{`"number":21`, "the leaves say of the harvest", `{"deleted":true}`} {
		require.Contains(t, answer.Text, part)
	}
	called := map[string]int{}
	for _, event := range history(t, c, run.GetID()) {
		if a := event.GetNexusOperationScheduledEventAttributes(); a != nil {
			called[a.GetOperation()]++
		}
	}
	require.Equal(t, map[string]int{
		contract.OperationListTools: 1, "lucky_number": 2, "brew_report": 1, "create_topic_list": 1, "remember_topic": 1, "delete_topic_list": 1,
	}, called)
}

// TestAsk is what README.md shows: a person says no, then yes.
func TestAsk(t *testing.T) {
	t.Parallel()
	st, temporal := opened(t)
	startWorker(t, st, temporal)
	ask := func(input string, args ...string) string {
		t.Helper()
		child, err := st.Command("ask", st.Program("rehearsal"), append([]string{"ask"}, args...), temporal.Env())
		require.NoError(t, err)
		var out bytes.Buffer
		child.Cmd.Stdin, child.Cmd.Stdout = strings.NewReader(input), &out
		require.NoError(t, child.Cmd.Run(), "%s", out.String())
		return out.String()
	}
	out := ask("n\n", "How are things?")
	require.Contains(t, out, "it wants to call delete_topic_list")
	require.Contains(t, out, "The list: A person did not allow this call.")
	require.Contains(t, ask("y\n", "How are things?"), `The list: {"deleted":true}`)
	require.Contains(t, ask("", "--allow", "How are things?"), `The list: {"deleted":true}`)
}
