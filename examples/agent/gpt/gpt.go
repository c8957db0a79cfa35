// Package gpt asks models of OpenAI.
package gpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// model is a model behind OpenAI's Responses API.
type model struct {
	client openai.Client
	key    string
	name   string
}

// Default is the model where nobody names one.
const Default = openai.ChatModelGPT6Sol

// New returns a model. Where the API is comes from OPENAI_BASE_URL, as the SDK
// has it. Temporal asks again where it may, so the SDK does not.
func New(key, name string, options ...option.RequestOption) loop.Model {
	options = append([]option.RequestOption{option.WithAPIKey(key), option.WithMaxRetries(0)}, options...)
	return &model{client: openai.NewClient(options...), key: key, name: name}
}

// Reply implements [loop.Model].
func (m *model) Reply(ctx context.Context, c loop.Conversation) (loop.Reply, error) {
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(c.Question, responses.EasyInputMessageRoleUser)}
	for _, turn := range c.Turns {
		var items []json.RawMessage
		if err := json.Unmarshal(turn.Reply.Raw, &items); err != nil {
			return loop.Reply{}, fmt.Errorf("a reply is not one of OpenAI's: %w", err)
		}
		for _, item := range items {
			input = append(input, param.Override[responses.ResponseInputItemUnionParam](item))
		}
		for _, o := range turn.Outputs {
			// The API has no place for isError.
			said := o.Text
			if o.IsError {
				said = "Error: " + said
			}
			output := responses.ResponseInputItemParamOfFunctionCallOutput(said)
			output.OfFunctionCallOutput.CallID = openai.String(o.ID)
			input = append(input, output)
		}
	}
	params := responses.ResponseNewParams{
		Model: m.name,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
		// The Workflow keeps the conversation, and OpenAI nothing. So the model's
		// thoughts travel with it.
		Store:   openai.Bool(false),
		Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
	}
	if c.Instructions != "" {
		params.Instructions = openai.String(c.Instructions)
	}
	for _, t := range c.Tools {
		// Strict wants schemas of a form that few tools have.
		tool := responses.FunctionToolParam{Name: t.Name, Strict: openai.Bool(false)}
		tool.SetExtraFields(map[string]any{"parameters": t.InputSchema})
		if t.Description != "" {
			tool.Description = openai.String(t.Description)
		}
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &tool})
	}

	response, err := m.client.Responses.New(ctx, params)
	var refusal *openai.Error
	switch {
	case errors.As(err, &refusal):
		return loop.Reply{}, loop.Failure("OpenAI", m.key, refusal.StatusCode, refusal.Message)
	case err != nil:
		return loop.Reply{}, loop.Failure("OpenAI", m.key, 0, err.Error())
	case response.Status == responses.ResponseStatusIncomplete:
		return loop.Reply{}, loop.CutOff("OpenAI")
	case response.Status != responses.ResponseStatusCompleted:
		return loop.Reply{}, loop.Failure("OpenAI", m.key, 0, response.Error.Message)
	}
	reply := loop.Reply{Text: response.OutputText()}
	items := make([]json.RawMessage, len(response.Output))
	for i, item := range response.Output {
		items[i] = json.RawMessage(item.RawJSON())
		if item.Type == "function_call" {
			call := item.AsFunctionCall()
			reply.Calls = append(reply.Calls, loop.NewCall(call.CallID, call.Name, call.Arguments))
		}
	}
	reply.Raw, err = json.Marshal(items)
	return reply, err
}
