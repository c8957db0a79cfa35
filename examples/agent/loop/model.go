package loop

import (
	"context"
	"encoding/json"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/activity"
)

// Model is a language model that may call tools.
type Model interface {
	// Reply returns what the model says next. It is asked in an activity: an error
	// is asked again, unless it is a non-retryable *temporal.ApplicationError.
	Reply(ctx context.Context, c Conversation) (Reply, error)
}

// Conversation is all that a model gets to see: it remembers nothing by itself.
type Conversation struct {
	Instructions string `json:"instructions,omitempty"`
	Question     string `json:"question"`
	Turns        []Turn `json:"turns,omitempty"`
	Tools        []Tool `json:"tools,omitempty"`
}

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Turn is what the model said, and what came of its calls.
type Turn struct {
	Reply   Reply    `json:"reply"`
	Outputs []Output `json:"outputs,omitempty"`
}

// Reply is what a model says: calls of tools, or without any its answer.
type Reply struct {
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"`
	// Raw is the reply as the provider spells it. It goes back as it came, with
	// what only the provider understands, such as the model's thoughts.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Call is a call that the model wants. Arguments are its own JSON, to the digit.
type Call struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Output is what the model is told about a call.
type Output struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
}

// NewCall is a call that the provider spelled. What is no JSON becomes a string,
// so that the tool's refusal tells the model.
func NewCall(id, tool, arguments string) Call {
	raw := json.RawMessage(arguments)
	if !json.Valid(raw) {
		raw = contract.Quote(arguments)
	}
	return Call{ID: id, Tool: tool, Arguments: raw}
}

// heartbeat is how often the activity says that it is alive. By three missed
// ones Temporal knows that its Worker has died.
const heartbeat = 3 * time.Second

// Activities are the activities of the Workflow.
type Activities struct{ Model Model }

// Ask asks the model.
func (a *Activities) Ask(ctx context.Context, c Conversation) (Reply, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return a.Model.Reply(ctx, c)
}
