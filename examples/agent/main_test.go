package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/examples/agent/loop"
	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
)

const key = "sk-ant-planted-0123456789"

// TestKeyStaysInTheWorker: the Worker dies by kill -9 while the model thinks; then
// the API fails with the key in its answer. The Workflow gets its answer all the
// same, and Temporal never sees the key.
func TestKeyStaysInTheWorker(t *testing.T) {
	t.Parallel()
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
		if os.Getenv("CI") == "true" {
			require.FailNow(t, how)
		}
		t.Skip(how)
	}
	var asked atomic.Int32
	thinking := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body) // a server sees that a client is gone once it has read all
		if err != nil || r.Header.Get("X-Api-Key") != key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch asked.Add(1) {
		case 1:
			close(thinking)
			<-r.Context().Done()
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"api_error","message":"no luck with %s"}}`, key)
		default:
			fmt.Fprint(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","stop_reason":"end_turn","stop_sequence":null,
				"usage":{"input_tokens":1,"output_tokens":1},"content":[{"type":"text","text":"Because."}]}`)
		}
	}))
	defer api.Close()

	st, err := stage.New()
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	const examples = "github.com/durable-mcp/durable-mcp/examples/"
	require.NoError(t, st.Build(t.Context(), examples+"lucky-number", examples+"agent"))
	temporal, err := st.StartTemporal(t.Context(), cli)
	require.NoError(t, err)
	defer temporal.Client.Close()
	start := func(name, ready string, args, env []string) *stage.Child {
		t.Helper()
		child, err := st.Start(name, st.Program(name), args, append(env, temporal.Env()...))
		require.NoError(t, err)
		require.NoError(t, child.AwaitLog(t.Context(), ready))
		return child
	}
	start("lucky-number", "lucky-number is ready", []string{"--ensure-endpoint"}, nil)
	worker := func() *stage.Child {
		return start("agent", "agent is ready", []string{"worker", "--provider", "anthropic"},
			[]string{"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + api.URL})
	}

	first := worker()
	run, err := temporal.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: loop.TaskQueue}, loop.Agent,
		loop.Input{Question: "Why?", Services: []mcpworkflow.Service{{Name: "lucky-number"}}, Budget: 5})
	require.NoError(t, err)
	select {
	case <-thinking:
	case <-t.Context().Done():
	}
	first.Kill()
	second := worker()
	var answer loop.Answer
	require.NoError(t, run.Get(t.Context(), &answer))
	require.Equal(t, loop.Answer{Text: "Because.", Turns: 1}, answer)
	require.EqualValues(t, 3, asked.Load())

	var kept bytes.Buffer
	events := temporal.Client.GetWorkflowHistory(t.Context(), run.GetID(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		data, err := protojson.Marshal(event)
		require.NoError(t, err)
		kept.Write(data)
	}
	require.Contains(t, kept.String(), "no luck with [key]", "the failure is kept, so the search means something")
	for _, log := range []string{first.Log, second.Log} {
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		kept.Write(data)
	}
	require.NotContains(t, kept.String(), key)
}

// TestKeyIsMissing: the Worker says so before it takes any work.
func TestKeyIsMissing(t *testing.T) { //nolint:paralleltest // it sets the environment
	for provider, name := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"} {
		t.Setenv(name, "")
		_, err := providers[provider]("")
		require.ErrorContains(t, err, name)
		t.Setenv(name, strings.Repeat("k", 20))
		model, err := providers[provider]("")
		require.NoError(t, err)
		require.NotNil(t, model)
	}
}
