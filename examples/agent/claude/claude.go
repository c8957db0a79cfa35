// Package claude asks models of Anthropic.
package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
)

// model is a model behind Anthropic's Messages API.
type model struct {
	client anthropic.Client
	key    string
	name   string
}

// Default is the model where nobody names one.
const Default = anthropic.ModelClaudeSonnet5_5

// New returns a model. Where the API is comes from ANTHROPIC_BASE_URL, as
// the SDK has it. Temporal asks again where it may, so the SDK does not.
func New(key, name string, options ...option.RequestOption) loop.Model {
	options = append([]option.RequestOption{option.WithAPIKey(key), option.WithMaxRetries(0)}, options...)
	return &model{client: anthropic.NewClient(options...), key: key, name: name}
}

// Reply implements [loop.Model].
func (m *model) Reply(ctx context.Context, c loop.Conversation) (loop.Reply, error) {
	params := anthropic.MessageNewParams{
		Model:     m.name,
		MaxTokens: 16_000,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(c.Question))},
	}
	if c.Instructions != "" {
		params.System = []anthropic.TextBlockParam{{Text: c.Instructions}}
	}
	for _, t := range c.Tools {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](t.InputSchema)}
		if t.Description != "" {
			tool.Description = anthropic.String(t.Description)
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	for _, turn := range c.Turns {
		var said anthropic.Message
		if err := json.Unmarshal(turn.Reply.Raw, &said); err != nil {
			return loop.Reply{}, fmt.Errorf("a reply is not one of Anthropic's: %w", err)
		}
		// The results of calls that were made at once go back in one message.
		results := make([]anthropic.ContentBlockParamUnion, len(turn.Outputs))
		for i, o := range turn.Outputs {
			results[i] = anthropic.NewToolResultBlock(o.ID, o.Text, o.IsError)
		}
		params.Messages = append(params.Messages, said.ToParam(), anthropic.NewUserMessage(results...))
	}

	message, err := m.client.Messages.New(ctx, params)
	var refusal *anthropic.Error
	switch {
	case errors.As(err, &refusal):
		return loop.Reply{}, loop.Failure("Anthropic", m.key, refusal.StatusCode, refusal.RawJSON())
	case err != nil:
		return loop.Reply{}, loop.Failure("Anthropic", m.key, 0, err.Error())
	case message.StopReason == anthropic.StopReasonMaxTokens, message.StopReason == anthropic.StopReasonModelContextWindowExceeded:
		return loop.Reply{}, loop.CutOff("Anthropic")
	}
	reply := loop.Reply{Raw: json.RawMessage(message.RawJSON())}
	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			reply.Text += block.Text
		case anthropic.ToolUseBlock:
			reply.Calls = append(reply.Calls, loop.NewCall(block.ID, block.Name, string(block.Input)))
		}
	}
	return reply, nil
}
