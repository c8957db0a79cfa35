package claude_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/durable-mcp/durable-mcp/examples/agent/claude"
	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

const key = "sk-ant-planted-0123456789"

// request is a request as Anthropic's API takes it.
type request struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	System    []struct{ Text string }
	Tools     []struct {
		Name        string
		Description string
		InputSchema json.RawMessage `json:"input_schema"`
	}
	Messages []struct {
		Role    string
		Content []json.RawMessage
	}
}

// api answers each request with the next of the answers, and keeps the requests.
func api(t *testing.T, answers ...func(w http.ResponseWriter)) (loop.Model, *[]request) {
	t.Helper()
	var requests []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got request
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &got) != nil || r.URL.Path != "/v1/messages" ||
			r.Header.Get("X-Api-Key") != key || len(requests) >= len(answers) {
			http.Error(w, "unexpected: "+r.URL.Path+string(data), http.StatusTeapot)
			return
		}
		requests = append(requests, got)
		w.Header().Set("Content-Type", "application/json")
		answers[len(requests)-1](w)
	}))
	t.Cleanup(server.Close)
	return claude.New(key, "claude-test", option.WithBaseURL(server.URL)), &requests
}

func says(stop, content string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","stop_sequence":null,
			"usage":{"input_tokens":1,"output_tokens":1},"stop_reason":%q,"content":%s}`, stop, content)
	}
}

func refuses(status int, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"some_error","message":%q}}`, message)
	}
}

const schema = `{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{"type":"number","default":1.0}},"$defs":{"x":true},"additionalProperties":false}`

func TestTurns(t *testing.T) {
	t.Parallel()
	model, requests := api(t,
		says("tool_use", `[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"toolu_1","name":"read","input":{"n":9007199254740993,"x":1.0,"y":1e400}},
			{"type":"tool_use","id":"toolu_2","name":"read","input":{}}]`),
		says("end_turn", `[{"type":"text","text":"Because."}]`),
	)
	c := loop.Conversation{
		Instructions: "Be brief.", Question: "why?",
		Tools: []loop.Tool{{Name: "read", Description: "reads", InputSchema: json.RawMessage(schema)}},
	}
	reply, err := model.Reply(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "I look.", reply.Text)
	require.Equal(t, []loop.Call{
		{ID: "toolu_1", Tool: "read", Arguments: json.RawMessage(`{"n":9007199254740993,"x":1.0,"y":1e400}`)},
		{ID: "toolu_2", Tool: "read", Arguments: json.RawMessage(`{}`)},
	}, reply.Calls)

	// A reply goes through Temporal, as JSON, before it goes back.
	stored, err := json.Marshal(reply)
	require.NoError(t, err)
	var kept loop.Reply
	require.NoError(t, json.Unmarshal(stored, &kept))
	c.Turns = []loop.Turn{{Reply: kept, Outputs: []loop.Output{
		{ID: "toolu_1", Text: `{"n":9007199254740993}`}, {ID: "toolu_2", Text: "no such thing", IsError: true},
	}}}
	reply, err = model.Reply(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "Because.", reply.Text)
	require.Empty(t, reply.Calls)

	require.Len(t, *requests, 2)
	first, second := (*requests)[0], (*requests)[1]
	require.Equal(t, "claude-test", first.Model)
	require.Positive(t, first.MaxTokens)
	require.Equal(t, "Be brief.", first.System[0].Text)
	require.Len(t, first.Tools, 1)
	require.Equal(t, "read", first.Tools[0].Name)
	require.Equal(t, "reads", first.Tools[0].Description)
	require.Equal(t, schema, string(first.Tools[0].InputSchema))
	require.Len(t, first.Messages, 1)
	require.JSONEq(t, `{"type":"text","text":"why?"}`, string(first.Messages[0].Content[0]))

	require.Len(t, second.Messages, 3, "the results of parallel calls are one message")
	said := second.Messages[1]
	require.Equal(t, "assistant", said.Role)
	require.Len(t, said.Content, 4)
	require.JSONEq(t, `{"type":"thinking","thinking":"hm","signature":"c2ln"}`, string(said.Content[0]))
	var use struct {
		ID    string
		Input json.RawMessage
	}
	require.NoError(t, json.Unmarshal(said.Content[2], &use))
	require.Equal(t, "toolu_1", use.ID)
	require.Equal(t, `{"n":9007199254740993,"x":1.0,"y":1e400}`, string(use.Input))
	results := second.Messages[2]
	require.Equal(t, "user", results.Role)
	require.Len(t, results.Content, 2)
	require.JSONEq(t, `{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"content":[{"type":"text","text":"{\"n\":9007199254740993}"}]}`, string(results.Content[0]))
	require.JSONEq(t, `{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"no such thing"}]}`, string(results.Content[1]))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		again  bool
		says   string
	}{
		"overloaded":  {refuses(529, "busy; your key is "+key), true, "busy; your key is [key]"},
		"rate limit":  {refuses(429, "slower"), true, "slower"},
		"bad request": {refuses(400, "no such model"), false, "no such model"},
		"bad key":     {refuses(401, "invalid x-api-key sk-ant-***6789"), false, "refuses the API key"},
		"cut off":     {says("max_tokens", `[{"type":"tool_use","id":"toolu_1","name":"drop","input":{}}]`), false, "cut off"},
		"no room":     {says("model_context_window_exceeded", `[{"type":"text","text":"Beca"}]`), false, "cut off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, requests := api(t, test.answer)
			_, err := model.Reply(t.Context(), loop.Conversation{Question: "why?"})
			var failure *temporal.ApplicationError
			require.ErrorAs(t, err, &failure)
			require.Contains(t, failure.Error(), test.says)
			require.Equal(t, test.again, !failure.NonRetryable())
			require.NotContains(t, err.Error(), "6789")
			require.NoError(t, errors.Unwrap(failure), "a cause would be kept too")
			require.Len(t, *requests, 1, "Temporal asks again, not the SDK")
		})
	}
}
