package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

func createList(t *testing.T, c tools) (handle string) {
	t.Helper()
	var list createTopicListOutput
	c.ok(t, "create_topic_list", map[string]any{}, &list)
	require.Regexp(t, `^[0-9a-f]{32}$`, list.Handle)
	return list.Handle
}

func remember(t *testing.T, c tools, handle, topic string) []string {
	t.Helper()
	var list rememberTopicOutput
	c.ok(t, "remember_topic", map[string]any{"handle": handle, "topic": topic}, &list)
	return list.Topics
}

const noList = "There is no list with this handle"

func TestHandlesAreApart(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Minute)

	one, other := createList(t, c), createList(t, c)
	require.NotEqual(t, one, other)
	require.Equal(t, []string{"tea"}, remember(t, c, one, "tea"))
	require.Equal(t, []string{"coffee"}, remember(t, c, other, "coffee"))
	require.Equal(t, []string{"tea", "milk"}, remember(t, c, one, "milk"))
	require.Equal(t, []string{"tea", "milk"}, remember(t, c, one, "tea"), "a topic is on a list once")
}

func TestHandleReachesNothingElse(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Minute)

	remembering := func(handle string) map[string]any { return map[string]any{"handle": handle, "topic": "tea"} }
	require.Contains(t, c.refused(t, "remember_topic", remembering(newHandle())), noList, "nobody ever got this handle")

	var report brewReportOutput
	c.ok(t, "brew_report", map[string]any{"topic": "tea", "seconds": 1}, &report)
	for _, foreign := range []string{report.WorkflowID, "", "../" + newHandle(), newHandle() + "0", topicListID(newHandle())} {
		require.Contains(t, c.refused(t, "remember_topic", remembering(foreign)), "arguments.handle: pattern", "%q", foreign)
	}
}

func TestListEndsWhenUnused(t *testing.T) {
	t.Parallel()
	c := serve(t, 5*time.Second)

	handle := createList(t, c)
	require.Equal(t, []string{"tea"}, remember(t, c, handle, "tea"))
	var topics []string
	require.NoError(t, temporal.GetWorkflow(t.Context(), topicListID(handle), "").Get(t.Context(), &topics))
	require.Equal(t, []string{"tea"}, topics)
	require.Contains(t, c.refused(t, "remember_topic", map[string]any{"handle": handle, "topic": "milk"}), noList)
}

func TestListCanBeCancelled(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Hour)

	handle := createList(t, c)
	remember(t, c, handle, "tea")
	require.NoError(t, temporal.CancelWorkflow(t.Context(), topicListID(handle), ""))
	require.Error(t, temporal.GetWorkflow(t.Context(), topicListID(handle), "").Get(t.Context(), nil))
	require.Contains(t, c.refused(t, "remember_topic", map[string]any{"handle": handle, "topic": "milk"}), noList)
}

func TestListCanBeDeleted(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Hour)

	handle, other := createList(t, c), createList(t, c)
	remember(t, c, handle, "tea")
	var out deleteTopicListOutput
	c.ok(t, "delete_topic_list", map[string]any{"handle": handle}, &out)
	require.True(t, out.Deleted)
	require.Contains(t, c.refused(t, "remember_topic", map[string]any{"handle": handle, "topic": "milk"}), noList)
	c.ok(t, "delete_topic_list", map[string]any{"handle": handle}, &out)
	require.False(t, out.Deleted)
	require.Equal(t, []string{"tea"}, remember(t, c, other, "tea"))
}

func TestListIsFull(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Minute)

	handle := newHandle()
	full := topicList{Idle: time.Minute}
	for i := range maxTopics {
		full.Topics = append(full.Topics, fmt.Sprint(i))
	}
	_, err := temporal.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: topicListID(handle), TaskQueue: c.queue}, TopicList, full)
	require.NoError(t, err)
	require.Len(t, remember(t, c, handle, "0"), maxTopics)
	require.Contains(t, c.refused(t, "remember_topic", map[string]any{"handle": handle, "topic": "tea"}), "The list is full")
}

// TestEachUseStartsTheIdleTimeAnew is about an hour, which the test environment
// skips.
func TestEachUseStartsTheIdleTimeAnew(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet())
	env := suite.NewTestWorkflowEnvironment()
	began := env.Now()
	rememberLater(t, env, 20*time.Minute, "tea")
	rememberLater(t, env, 40*time.Minute, "milk")
	env.ExecuteWorkflow(TopicList, topicList{Idle: 30 * time.Minute})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, 70*time.Minute, env.Now().Sub(began))
	var topics []string
	require.NoError(t, env.GetWorkflowResult(&topics))
	require.Equal(t, []string{"tea", "milk"}, topics)
}

// TestLongListStartsAnew: a Workflow's history must not grow for ever.
func TestLongListStartsAnew(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet())
	env := suite.NewTestWorkflowEnvironment()
	env.SetContinueAsNewSuggested(true)
	rememberLater(t, env, time.Minute, "tea")
	env.ExecuteWorkflow(TopicList, topicList{Idle: time.Hour})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var list topicList
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &list))
	require.Equal(t, topicList{Idle: time.Hour, Topics: []string{"tea"}}, list)
}

func rememberLater(t *testing.T, env *testsuite.TestWorkflowEnvironment, after time.Duration, topic string) {
	t.Helper()
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(updateRemember, topic, &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { require.NoError(t, err) },
			OnComplete: func(_ any, err error) { require.NoError(t, err) },
		}, topic)
	}, after)
}
