// The tests of agent.py, with the real MCP SDK, a real connector and a real
// Temporal server. ./justw peers runs them.
package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/stretchr/testify/require"
)

// agent runs agent.py against a connector of its own.
type agent struct {
	python, packages string
	stage            *stage.Stage
	temporal         *stage.Temporal
}

func newAgent(t *testing.T) agent {
	t.Helper()
	peers, cli := os.Getenv("MCP_PEERS"), os.Getenv("TEMPORAL_CLI")
	if peers == "" || cli == "" {
		const how = "MCP_PEERS names no installed peers, or TEMPORAL_CLI no Temporal CLI; ./justw peers sets up both and runs this test"
		if os.Getenv("CI") == "true" {
			require.FailNow(t, how)
		}
		t.Skip(how)
	}
	st, err := stage.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	const module = "github.com/durable-mcp/durable-mcp/"
	require.NoError(t, st.Build(t.Context(), module+"examples/lucky-number", module+"connector/cmd/durable-mcp-connector"))
	temporal, err := st.StartTemporal(t.Context(), cli)
	require.NoError(t, err)
	t.Cleanup(temporal.Client.Close)
	child, err := st.Start("lucky-number", st.Program("lucky-number"), []string{"--ensure-endpoint"}, temporal.Env())
	require.NoError(t, err)
	require.NoError(t, child.AwaitLog(t.Context(), "lucky-number is ready"))
	return agent{filepath.Join(peers, "bin", "python"), filepath.Join(peers, "mcp-2"), st, temporal}
}

// run returns what the agent printed.
func (a agent) run(t *testing.T, input string, env []string, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"agent.py"}, args...)
	args = append(args, "How are things?", a.stage.Program("durable-mcp-connector"), "--service", "lucky-number", "--wait-budget", "3s")
	cmd := exec.CommandContext(t.Context(), a.python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+a.packages, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Env = append(append(cmd.Env, a.temporal.Env()...), env...)
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ok is a run that must end well.
func (a agent) ok(t *testing.T, input string, env []string, args ...string) string {
	t.Helper()
	out, err := a.run(t, input, env, args...)
	require.NoError(t, err, "%s", out)
	return out
}

func TestAgent(t *testing.T) {
	t.Parallel()
	a := newAgent(t)

	t.Run("a person says no", func(t *testing.T) {
		t.Parallel()
		out := a.ok(t, "n\n", nil)
		require.Contains(t, out, "brew_report runs as operation mcp-", "it takes longer than the connector waits")
		require.Contains(t, out, "it wants to call delete_topic_list")
		require.Contains(t, out, `Ada: {"name":"Ada","number":21}`)
		require.Contains(t, out, "the leaves say of the harvest")
		require.Contains(t, out, "The list: A person did not allow this call.")
		require.Equal(t, 1, strings.Count(out, "Allow it?"), "the other calls destroy nothing")
	})
	t.Run("a person says yes", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, a.ok(t, "y\n", nil), `The list: {"deleted":true}`)
	})
	t.Run("the budget is used up", func(t *testing.T) {
		t.Parallel()
		out, err := a.run(t, "", nil, "--budget", "2")
		require.Error(t, err)
		require.Contains(t, out, "the budget of 2 turns is used up")
	})
	t.Run("claude", func(t *testing.T) {
		t.Parallel()
		claude(t, a)
	})
}

// claude: the agent speaks to Anthropic's API in the API's own shape.
func claude(t *testing.T, a agent) {
	t.Helper()
	const key = "sk-ant-planted"
	var mu sync.Mutex
	var requests []json.RawMessage
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body json.RawMessage
		if json.NewDecoder(r.Body).Decode(&body) != nil || r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != key {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		requests = append(requests, body)
		if len(requests) == 1 {
			fmt.Fprint(w, `{"stop_reason":"tool_use","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},
				{"type":"tool_use","id":"toolu_1","name":"lucky_number","input":{"name":"Ada"}},
				{"type":"tool_use","id":"toolu_2","name":"lucky_number","input":{"name":""}}]}`)
			return
		}
		fmt.Fprint(w, `{"stop_reason":"end_turn","content":[{"type":"text","text":"Lucky."}]}`)
	}))
	defer api.Close()
	out := a.ok(t, "", []string{"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + api.URL}, "--model", "claude")
	require.Contains(t, out, "Lucky.")
	require.Len(t, requests, 2)
	var body struct {
		Tools []struct {
			Name   string
			Schema struct{ Type string } `json:"input_schema"`
		}
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(requests[1], &body))
	schemas := map[string]string{}
	for _, tool := range body.Tools {
		schemas[tool.Name] = tool.Schema.Type
	}
	require.Equal(t, "object", schemas["delete_topic_list"])
	require.Len(t, body.Messages, 3)
	require.Contains(t, string(body.Messages[1].Content), "c2ln", "what the model thought goes back")
	var results []struct {
		ID      string `json:"tool_use_id"`
		Content string
		IsError bool `json:"is_error"`
	}
	require.NoError(t, json.Unmarshal(body.Messages[2].Content, &results))
	require.Len(t, results, 2)
	require.Equal(t, "toolu_1", results[0].ID)
	require.Equal(t, `{"name":"Ada","number":21}`, results[0].Content)
	require.True(t, results[1].IsError)
	require.Contains(t, results[1].Content, "minLength")
}
