package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/workflow"
)

// The handle pattern: state that several calls share lives in one Workflow, and
// the model gets a handle for it. A handle is 128 random bits, so that nobody can
// guess one: whoever has it may use the list. It works from every connector, and
// after every restart.

type createTopicListInput struct{}

type createTopicListOutput struct {
	Handle string `json:"handle" jsonschema:"for remember_topic"`
}

type rememberTopicInput struct {
	Handle string `json:"handle" jsonschema:"from create_topic_list" mcp:"pattern=^[0-9a-f]{32}$"`
	Topic  string `json:"topic" jsonschema:"what to remember" mcp:"minLength=1,maxLength=200"`
}

type rememberTopicOutput struct {
	Topics []string `json:"topics"`
}

func newHandle() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return hex.EncodeToString(bits[:])
}

// topicListID is the ID of the Workflow behind a handle. The prefix keeps a
// handle from reaching any other Workflow.
func topicListID(handle string) string { return "topic-list-" + handle }

// createTopicList starts the Workflow from an activity that may be repeated: if
// its Worker dies after the start, the second attempt makes a second list, and
// the first, whose handle nobody has, ends by itself.
func createTopicList(idle time.Duration) *mcptool.ActivityOperation[createTopicListInput, createTopicListOutput] {
	return mcptool.NewActivityOperation("create_topic_list",
		func(ctx context.Context, _ createTopicListInput) (createTopicListOutput, error) {
			handle := newHandle()
			_, err := activity.GetClient(ctx).ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID: topicListID(handle), TaskQueue: activity.GetInfo(ctx).TaskQueue,
			}, TopicList, topicList{Idle: idle})
			return createTopicListOutput{Handle: handle}, mcptool.Retry(err)
		}, mcptool.ActivityOptions{Repeatable: true})
}

// rememberTopic sends a Workflow Update. Its ID is that of the Nexus request, so
// a call that Temporal delivers twice adds its topic once.
var rememberTopic = nexus.NewSyncOperation("remember_topic",
	func(ctx context.Context, in rememberTopicInput, o nexus.StartOperationOptions) (out rememberTopicOutput, err error) {
		update, err := temporalnexus.GetClient(ctx).UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: topicListID(in.Handle), UpdateName: updateRemember, UpdateID: o.RequestID,
			Args: []any{in.Topic}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = update.Get(ctx, &out.Topics)
		}
		if errors.As(err, new(*serviceerror.NotFound)) {
			return out, mcptool.ToolError("There is no list with this handle: it was unused for too long, was ended, or never was. " +
				"Create a new one with create_topic_list.")
		}
		return out, err
	})

type deleteTopicListInput struct {
	Handle string `json:"handle" jsonschema:"from create_topic_list" mcp:"pattern=^[0-9a-f]{32}$"`
}

type deleteTopicListOutput struct {
	Deleted bool `json:"deleted" jsonschema:"false where there was no such list any more"`
}

// deleteTopicList ends the Workflow at once. A call that Temporal delivers twice
// finds nothing to delete the second time, which is no error.
var deleteTopicList = nexus.NewSyncOperation("delete_topic_list",
	func(ctx context.Context, in deleteTopicListInput, _ nexus.StartOperationOptions) (deleteTopicListOutput, error) {
		err := temporalnexus.GetClient(ctx).TerminateWorkflow(ctx, topicListID(in.Handle), "", "delete_topic_list")
		if errors.As(err, new(*serviceerror.NotFound)) {
			return deleteTopicListOutput{}, nil
		}
		return deleteTopicListOutput{Deleted: err == nil}, err
	})

const (
	updateRemember = "remember"
	maxTopics      = 100
)

// topicList is the state of a TopicList.
type topicList struct {
	Idle   time.Duration
	Topics []string
}

// TopicList is the Workflow behind a handle. It ends when nobody has used the
// list for the idle time, or when it is cancelled, and returns the topics.
func TopicList(ctx workflow.Context, list topicList) ([]string, error) {
	uses := 0
	remember := func(_ workflow.Context, topic string) ([]string, error) {
		uses++
		if !slices.Contains(list.Topics, topic) {
			list.Topics = append(list.Topics, topic)
		}
		return list.Topics, nil
	}
	// What a validator refuses leaves no trace in the history.
	hasRoom := func(topic string) error {
		if len(list.Topics) >= maxTopics && !slices.Contains(list.Topics, topic) {
			return mcptool.ToolError("The list is full. Create another one with create_topic_list.")
		}
		return nil
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, updateRemember, remember, workflow.UpdateHandlerOptions{Validator: hasRoom}); err != nil {
		return nil, err
	}
	for {
		before := uses
		used, err := workflow.AwaitWithTimeout(ctx, list.Idle, func() bool { return uses != before })
		switch {
		case err != nil:
			return nil, err // cancelled
		case !used:
			return list.Topics, nil
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return nil, workflow.NewContinueAsNewError(ctx, TopicList, list)
		}
	}
}
