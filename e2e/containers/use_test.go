package containers_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// images are as users, and who checks them for users, expect.
func (s *stack) images(t *testing.T) {
	for name, service := range s.Services {
		if service.Build == nil {
			continue
		}
		about, err := s.engine.Client().ImageInspect(contextOf(t), service.Image)
		require.NoError(t, err)
		require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, about.Config.User, "%s: a number that is not root's", name)
		require.Empty(t, about.Config.Cmd, name)
		for _, key := range []string{"source", "documentation", "licenses"} {
			require.NotEmpty(t, about.Config.Labels["org.opencontainers.image."+key], "%s: %s", name, key)
		}
		switch name {
		case proxy, connectorOne, connectorTwo:
			title := about.Config.Labels["org.opencontainers.image.title"]
			require.Equal(t, []string{"/usr/local/bin/" + title}, about.Config.Entrypoint)
			require.NotEmpty(t, about.Config.Labels["org.opencontainers.image.description"])
			port := connectorPort
			if name == proxy {
				port = proxyPort
			}
			require.Contains(t, about.Config.ExposedPorts, port)
			require.Less(t, about.Size, int64(50<<20), name)
		}
	}
	code, log := s.once(t, connectorOne, "version", nil, "--version")
	require.Equal(t, 0, code, log)
	require.Contains(t, log, "durable-mcp-connector version ")
}

// health is what a scheduler of containers asks for.
func (s *stack) health(t *testing.T) {
	s.awaitReady(t, proxy, proxyPort)
	for name, port := range map[string]string{connectorOne: connectorPort, connectorTwo: connectorPort, proxy: proxyPort} {
		for _, path := range []string{"/healthz", "/readyz"} {
			status, body, err := get(contextOf(t), "http://"+s.address(t, name, port)+path)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status, "%s %s: %s", name, path, body)
		}
	}
	code, log := s.once(t, connectorTwo, "doctor", nil, "doctor", "--service=lucky-number", "--service=weather", "--service=almanac")
	require.Equal(t, 0, code, log)
	code, log = s.once(t, proxy, "check", nil, "check")
	require.Equal(t, 0, code, log)
	require.Contains(t, log, "almanac: almanac 1.0.0")
}

// calls calls a tool of each kind, and all else that a server has, through each
// replica.
func (s *stack) calls(t *testing.T) {
	t.Run("over stdio", func(t *testing.T) { t.Parallel(); s.overStdio(t) })
	for i, here := range connectors {
		there := connectors[1-i]
		for _, revision := range []string{harness.Revision2025June, harness.Revision2026} {
			t.Run(here+" "+revision, func(t *testing.T) {
				t.Parallel()
				p, q := s.peer(t, here, revision), s.peer(t, there, revision)
				tools(t, p, q)
				rest(t, p)
			})
		}
		t.Run("from "+here+" to "+there, func(t *testing.T) {
			t.Parallel()
			s.across(t, here, there)
		})
	}
}

// overStdio starts the connector as an MCP host does that has it from an image.
func (s *stack) overStdio(t *testing.T) {
	t.Helper()
	docker := exec.CommandContext(contextOf(t), "docker", "run", "--rm", "--interactive", "--label", label+"="+run,
		"--network", s.network.Name, "--env", "TEMPORAL_ADDRESS=temporal:7233", s.Services[connectorOne].Image,
		"--service=lucky-number", "--caller=ada@laptop")
	docker.Stderr = t.Output()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).
		Connect(contextOf(t), &mcp.CommandTransport{Command: docker}, nil)
	require.NoError(t, err)
	result, err := session.CallTool(contextOf(t), &mcp.CallToolParams{Name: "lucky_number", Arguments: map[string]any{"name": "Ada"}})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "Ada", "number": 21.0}, result.StructuredContent)
	require.NoError(t, session.Close(), "it ends with its input")
}

// tools calls tools of each kind through p; what one call leaves for the next is
// used through q.
func tools(t *testing.T, p, q *harness.Peer) {
	t.Helper()
	call := func(p *harness.Peer, tool, args string) string {
		r := p.Tool(t, tool, args)
		require.False(t, r.IsError, "%s: %s", tool, r.Raw)
		return string(r.Structured)
	}
	// Of the tool service: at once, by an activity, by a Workflow, by an update.
	require.JSONEq(t, `{"name":"Ada","number":21}`, call(p, "lucky_number", `{"name":"Ada"}`))
	require.Contains(t, call(p, "draw_ticket", `{"name":"Ada"}`), `"name":"Ada"`)
	require.Contains(t, call(p, "brew_report", `{"topic":"tea","seconds":1}`), "After 1 seconds the leaves say of tea")
	handle := call(p, "create_topic_list", `{}`)
	handle = strings.TrimSuffix(handle, "}")
	require.JSONEq(t, `{"topics":["tea"]}`, call(p, "remember_topic", handle+`,"topic":"tea"}`))
	require.JSONEq(t, `{"topics":["tea","rye"]}`, call(q, "remember_topic", handle+`,"topic":"rye"}`))
	require.JSONEq(t, `{"deleted":true}`, call(p, "delete_topic_list", handle+`}`))
	// Of the servers behind the proxy: over HTTP, over stdio.
	require.Contains(t, call(p, "forecast", `{"place":"Lisbon","days":2}`), `"place":"Lisbon"`)
	require.Contains(t, call(p, "alerts", `{"place":"Lisbon"}`), "a storm over Lisbon")
	require.Contains(t, call(p, "outlook", `{"crop":"rye"}`), "as good a year for rye as any")

	r := p.Tool(t, "forecast", `{"place":"Lisbon","days":8}`)
	require.True(t, r.IsError)
	require.Contains(t, r.Text(t), "want a place and 1 to 7 days")
}

// rest is what the server behind the proxy has beside tools.
func rest(t *testing.T, p *harness.Peer) {
	t.Helper()
	answer := func(method, params string) string {
		m := p.Call(t, method, params)
		require.Nil(t, m.Error, "%s: %s", method, m.Raw)
		return string(m.Result)
	}
	require.Contains(t, answer("resources/list", `{}`), `"weather://skies"`)
	require.Contains(t, answer("resources/read", `{"uri":"weather://skies"}`), "storm")
	require.Contains(t, answer("resources/templates/list", `{}`), `"weather://places/{place}"`)
	require.Contains(t, answer("resources/read", `{"uri":"weather://places/Lisbon"}`), "Lisbon")
	require.Contains(t, answer("prompts/list", `{}`), `"plan_trip"`)
	require.Contains(t, answer("prompts/get", `{"name":"plan_trip","arguments":{"place":"Lisbon"}}`), "Lisbon")
}

// tasks are the capabilities of a client that knows tasks.
const tasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// across starts calls at one replica and reads them at the other.
func (s *stack) across(t *testing.T, here, there string) {
	t.Helper()
	const tool, args = "brew_report", `{"topic":"tea","seconds":3}`
	p, q := s.peer(t, here, harness.Revision2025November), s.peer(t, there, harness.Revision2025November)
	pending, id := startWithID(t, p, tool, args)
	awaitStarted(t, q, id)
	read := readCall(t, q, id)
	require.Contains(t, string(read.Structured), "the leaves say of tea")
	harness.RequireExact(t, string(pending.Answer(t).Result), string(read.Raw))

	modern := s.peer(t, here, harness.Revision2026)
	modern.Capabilities = tasks
	task := startTask(t, modern, tool, args)
	modern = s.peer(t, there, harness.Revision2026)
	modern.Capabilities = tasks
	end := endOfTask(t, modern, task)
	require.Contains(t, string(end.ToolResult(t).Structured), "the leaves say of tea")
	require.Contains(t, string(readCall(t, q, task).Structured), "the leaves say of tea")
}

// startWithID starts a call. Its ID comes with the first notification of progress.
func startWithID(t *testing.T, p *harness.Peer, tool, args string) (pending *harness.Pending, id string) {
	t.Helper()
	pending = p.StartTool(t, tool, args, `"progressToken":"p"`)
	first := pending.Await(t, "progress", harness.IsNotification("notifications/progress"))
	var params struct {
		Meta struct {
			ID string `json:"io.temporal/operationId"`
		} `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(first.Params, &params), "%s", first.Raw)
	require.NotEmpty(t, params.Meta.ID, "%s", first.Raw)
	return pending, params.Meta.ID
}

// awaitStarted waits until a call has begun: its ID is told right before.
func awaitStarted(t *testing.T, p *harness.Peer, id string) {
	t.Helper()
	until(t, id+" begins", func(context.Context) error {
		if r := p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":0}`); r.IsError {
			return errors.New(string(r.Raw))
		}
		return nil
	})
}

// readCall waits for the result of a call by its ID.
func readCall(t *testing.T, p *harness.Peer, id string) (r harness.ToolResult) {
	t.Helper()
	until(t, "the result of "+id, func(context.Context) error {
		r = p.Tool(t, "get_operation_result", `{"operation_id":"`+id+`","wait_seconds":20}`)
		if isRunning(r) != "" {
			return errors.New(string(r.Raw))
		}
		return nil
	})
	return r
}

// isRunning returns the ID of a call that goes on, or nothing.
func isRunning(r harness.ToolResult) (id string) {
	var state harness.Running
	if json.Unmarshal(r.Structured, &state) == nil && state.Status == "running" {
		return state.OperationID
	}
	return ""
}

// startTask starts a call that becomes a task.
func startTask(t *testing.T, p *harness.Peer, tool, args string) (id string) {
	t.Helper()
	var task struct {
		ResultType string
		TaskID     string `json:"taskId"`
	}
	p.StartTool(t, tool, args).Answer(t).Decode(t, &task)
	require.Equal(t, "task", task.ResultType)
	return task.TaskID
}

// endOfTask waits for the result of a task that completes.
func endOfTask(t *testing.T, p *harness.Peer, id string) (result harness.Message) {
	t.Helper()
	until(t, "the task ends", func(context.Context) error {
		var task struct {
			Status string
			Result json.RawMessage
		}
		p.Call(t, "tasks/get", `{"taskId":"`+id+`"}`).Decode(t, &task)
		if task.Status == "working" {
			return errors.New("it is still at work")
		}
		require.Equal(t, "completed", task.Status)
		result.Result = task.Result
		return nil
	})
	return result
}
