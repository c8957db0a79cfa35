package gpt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/durable-mcp/durable-mcp/examples/agent/gpt"
	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

const key = "sk-planted-0123456789"

// request is a request as OpenAI's Responses API takes it.
type request struct {
	Model        string
	Instructions string
	Store        *bool
	Include      []string
	Input        []json.RawMessage
	Tools        []struct {
		Type, Name, Description string
		Strict                  *bool
		Parameters              json.RawMessage
	}
}

// api answers each request with the next of the answers, and keeps the requests.
func api(t *testing.T, answers ...func(w http.ResponseWriter)) (loop.Model, *[]request) {
	t.Helper()
	var requests []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got request
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &got) != nil || r.URL.Path != "/v1/responses" ||
			r.Header.Get("Authorization") != "Bearer "+key || len(requests) >= len(answers) {
			http.Error(w, "unexpected: "+r.URL.Path+string(data), http.StatusTeapot)
			return
		}
		requests = append(requests, got)
		w.Header().Set("Content-Type", "application/json")
		answers[len(requests)-1](w)
	}))
	t.Cleanup(server.Close)
	return gpt.New(key, "gpt-test", option.WithBaseURL(server.URL+"/v1")), &requests
}

func says(status, output string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		fmt.Fprintf(w, `{"id":"resp_1","object":"response","created_at":1,"model":"gpt-test","error":null,"incomplete_details":null,
			"status":%q,"output":%s}`, status, output)
	}
}

func refuses(status int, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"type":"some_error","code":"some","param":null,"message":%q}}`, message)
	}
}

const schema = `{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{"type":"number","default":1.0}},"$defs":{"x":true},"additionalProperties":false}`

func TestTurns(t *testing.T) {
	t.Parallel()
	const (
		thought   = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2ln"}`
		arguments = `{"n":9007199254740993,"x":1.0,"y":1e400}`
		use       = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"n\":9007199254740993,\"x\":1.0,\"y\":1e400}"}`
		broken    = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"read","arguments":"{\"n\":"}`
		message   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Because.","annotations":[]}]}`
	)
	model, requests := api(t, says("completed", "["+thought+","+use+","+broken+"]"), says("completed", "["+message+"]"))
	c := loop.Conversation{
		Instructions: "Be brief.", Question: "why?",
		Tools: []loop.Tool{{Name: "read", Description: "reads", InputSchema: json.RawMessage(schema)}},
	}
	reply, err := model.Reply(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, reply.Text)
	require.Equal(t, []loop.Call{
		{ID: "call_1", Tool: "read", Arguments: json.RawMessage(arguments)},
		{ID: "call_2", Tool: "read", Arguments: json.RawMessage(`"{\"n\":"`)},
	}, reply.Calls)

	// A reply goes through Temporal, as JSON, before it goes back.
	stored, err := json.Marshal(reply)
	require.NoError(t, err)
	var kept loop.Reply
	require.NoError(t, json.Unmarshal(stored, &kept))
	c.Turns = []loop.Turn{{Reply: kept, Outputs: []loop.Output{
		{ID: "call_1", Text: `{"n":9007199254740993}`}, {ID: "call_2", Text: "no object", IsError: true},
	}}}
	reply, err = model.Reply(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "Because.", reply.Text)
	require.Empty(t, reply.Calls)

	require.Len(t, *requests, 2)
	first, second := (*requests)[0], (*requests)[1]
	require.Equal(t, "gpt-test", first.Model)
	require.Equal(t, "Be brief.", first.Instructions)
	require.False(t, *first.Store)
	require.Equal(t, []string{"reasoning.encrypted_content"}, first.Include)
	require.Len(t, first.Tools, 1)
	tool := first.Tools[0]
	require.Equal(t, []string{"function", "read", "reads"}, []string{tool.Type, tool.Name, tool.Description})
	require.False(t, *tool.Strict)
	require.Equal(t, schema, string(tool.Parameters))
	require.Len(t, first.Input, 1)
	require.JSONEq(t, `{"role":"user","content":"why?"}`, string(first.Input[0]))

	require.Len(t, second.Input, 6)
	require.Equal(t, thought, string(second.Input[1]))
	require.Equal(t, use, string(second.Input[2]))
	require.Equal(t, broken, string(second.Input[3]))
	require.JSONEq(t, `{"type":"function_call_output","call_id":"call_1","output":"{\"n\":9007199254740993}"}`, string(second.Input[4]))
	require.JSONEq(t, `{"type":"function_call_output","call_id":"call_2","output":"Error: no object"}`, string(second.Input[5]))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		again  bool
		says   string
	}{
		"overloaded":  {refuses(503, "busy; your key is "+key), true, "busy; your key is [key]"},
		"rate limit":  {refuses(429, "slower"), true, "slower"},
		"bad request": {refuses(400, "no such model"), false, "no such model"},
		"bad key":     {refuses(401, "Incorrect API key provided: sk-***6789"), false, "refuses the API key"},
		"cut off":     {says("incomplete", `[{"id":"fc_1","type":"function_call","status":"incomplete","call_id":"call_1","name":"drop","arguments":"{"}]`), false, "cut off"},
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
