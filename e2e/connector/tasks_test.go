package connector_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// declared are the capabilities of a client that knows tasks.
const declared = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// task is a task object.
type task struct {
	ResultType     string
	TaskID         string `json:"taskId"`
	Status         string
	StatusMessage  string
	CreatedAt      time.Time
	LastUpdatedAt  time.Time
	TTL            *int64 `json:"ttlMs"`
	PollIntervalMs int
	Result         json.RawMessage
	Error          *harness.RPCError
}

// eachTaskPeer runs a test over both transports, as a client that declares tasks.
func eachTaskPeer(t *testing.T, test func(t *testing.T, p *harness.Peer)) {
	t.Helper()
	server := httpServer(t, "--wait-budget", "20s")
	for _, name := range []string{"stdio", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := server.Speak(harness.Revision2026)
			if name == "stdio" {
				p = stdioPeer(t, harness.Revision2026, "--wait-budget", "20s")
			}
			p.Capabilities = declared
			test(t, p)
		})
	}
}

func startTask(t *testing.T, p *harness.Peer, tool, args string) task {
	t.Helper()
	var created task
	p.StartTool(t, tool, args).Answer(t).Decode(t, &created)
	require.Equal(t, "task", created.ResultType)
	return created
}

func getTask(t *testing.T, p *harness.Peer, id string) (got task) {
	t.Helper()
	p.Call(t, "tasks/get", `{"taskId":"`+id+`"}`).Decode(t, &got)
	require.Equal(t, "complete", got.ResultType)
	require.Equal(t, id, got.TaskID)
	return got
}

func endOfTask(t *testing.T, p *harness.Peer, id string) (got task) {
	t.Helper()
	harness.Until(t, func() bool { got = getTask(t, p, id); return got.Status != "working" })
	return got
}

func TestTaskLifecycle(t *testing.T) {
	t.Parallel()

	eachTaskPeer(t, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		short := p.Tool(t, "echo", `{"a":1.0}`)
		require.Equal(t, `{"a":1.0}`, string(short.Structured), "a short call is answered as ever")

		began := time.Now()
		created := startTask(t, p, "slow", `{"seconds":4,"value":`+hard+`}`)
		require.Less(t, time.Since(began), 3500*time.Millisecond)
		require.Equal(t, "working", created.Status)
		require.Regexp(t, `^mcp-(http-stateless|stdio-stateful-[0-9a-f]{8})-[0-9a-f]{32}$`, created.TaskID)
		require.NotNil(t, created.TTL)
		require.EqualValues(t, 24*time.Hour/time.Millisecond, *created.TTL, "the namespace's retention")
		require.Positive(t, created.PollIntervalMs)
		require.WithinDuration(t, time.Now(), created.CreatedAt, time.Minute)

		now := getTask(t, p, created.TaskID)
		require.Equal(t, "working", now.Status, "an ID that was handed out resolves at once")
		require.Nil(t, now.Result)
		end := endOfTask(t, p, created.TaskID)
		require.Equal(t, "completed", end.Status)
		require.Equal(t, created.CreatedAt, end.CreatedAt)
		require.True(t, end.LastUpdatedAt.After(end.CreatedAt))
		require.Nil(t, end.Error)
		result := harness.Message{Result: end.Result}.ToolResult(t)
		harness.RequireExact(t, hard, string(result.Structured))
		require.NotContains(t, result.Meta, "io.modelcontextprotocol/related-task")
	})
}

// TestTaskOutcomes: a tool's error is a completed task, a protocol error a failed
// one.
func TestTaskOutcomes(t *testing.T) {
	t.Parallel()

	eachTaskPeer(t, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		broken := startTask(t, p, "slow", `{"seconds":2,"fail":"broken"}`)
		own := startTask(t, p, "slow", `{"seconds":2,"fail":"tool","details":{"content":[{"type":"text","text":"no"}],"isError":true}}`)
		late := startTask(t, p, "brief", `{"seconds":60}`)
		for id, text := range map[string]string{broken.TaskID: "broken", own.TaskID: "no", late.TaskID: "The call timed out: its schedule-to-close timeout ran out."} {
			end := endOfTask(t, p, id)
			require.Equal(t, "completed", end.Status)
			r := harness.Message{Result: end.Result}.ToolResult(t)
			require.True(t, r.IsError)
			require.Equal(t, text, r.Text(t))
		}
		cancelled := startTask(t, p, "slow", `{"seconds":600}`)
		for range 2 { // also of one that has ended
			m := p.Call(t, "tasks/cancel", `{"taskId":"`+cancelled.TaskID+`"}`)
			require.Nil(t, m.Error, "%s", m.Raw)
			require.Contains(t, string(m.Result), `"resultType":"complete"`)
			end := endOfTask(t, p, cancelled.TaskID)
			require.Equal(t, "cancelled", end.Status)
			require.Nil(t, end.Result)
			require.Nil(t, end.Error)
		}

		m := p.Call(t, "tasks/update", `{"taskId":"`+broken.TaskID+`","inputResponses":{}}`)
		require.NotNil(t, m.Error, "%s", m.Raw)
		require.Equal(t, -32602, m.Error.Code)
	})
}

func TestTasksAreForWhoDeclaredThem(t *testing.T) {
	t.Parallel()

	eachTaskPeer(t, func(t *testing.T, p *harness.Peer) {
		t.Helper()
		created := startTask(t, p, "slow", `{"seconds":600}`)
		p.Capabilities = `{"extensions":{"com.example/other":{}}}`
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			m := p.Call(t, method, `{"taskId":"`+created.TaskID+`"}`)
			require.NotNil(t, m.Error, "%s", m.Raw)
			require.Equal(t, -32021, m.Error.Code)
			require.JSONEq(t, `{"requiredCapabilities":`+declared+`}`, string(m.Error.Data))
		}
		p.Capabilities = declared
		require.Equal(t, "working", getTask(t, p, created.TaskID).Status, "nothing was cancelled")

		for _, bad := range []string{
			`{"taskId":"nonsense"}`, `{"taskId":"mcp-http-stateless-00000000000000000000000000000000"}`, `{}`,
			`{"taskId":"mcp-stdio-stateful-00000000-00000000000000000000000000000000"}`,
		} {
			for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				if p.HTTP != nil && bad == `{}` {
					continue // has no name for the header
				}
				m := p.Call(t, method, bad)
				require.NotNil(t, m.Error, "%s %s", method, m.Raw)
				require.Equal(t, -32602, m.Error.Code, "%s %s", method, m.Raw)
			}
		}
		for _, method := range []string{"tasks/list", "tasks/result"} {
			m := p.Call(t, method, `{"taskId":"`+created.TaskID+`"}`)
			require.NotNil(t, m.Error, "%s", m.Raw)
			require.Equal(t, -32601, m.Error.Code, "%s", m.Raw)
		}
		p.Call(t, "tasks/cancel", `{"taskId":"`+created.TaskID+`"}`)
	})
}

// TestTaskHeader: the Mcp-Name header of a task request is its task ID.
func TestTaskHeader(t *testing.T) {
	t.Parallel()

	p := httpServer(t).Speak(harness.Revision2026)
	p.Capabilities = declared
	created := startTask(t, p, "slow", `{"seconds":600}`)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		for _, name := range []string{"other", ""} {
			p.Headers = map[string]string{"Mcp-Name": name}
			r := p.Request(t, method, `{"taskId":"`+created.TaskID+`"}`)
			m := r.Answer(t)
			require.Equal(t, 400, r.Exchange.Status)
			require.NotNil(t, m.Error)
			require.Equal(t, -32020, m.Error.Code)
		}
	}
	p.Headers = nil
	require.Equal(t, "working", getTask(t, p, created.TaskID).Status)
	p.Call(t, "tasks/cancel", `{"taskId":"`+created.TaskID+`"}`)
}

func TestTasksOff(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2026, "--tasks", "off", "--wait-budget", "2s")
	p.Capabilities = declared
	p.Tool(t, "slow", `{"seconds":60}`).Running(t)
	m := p.Call(t, "tasks/get", `{"taskId":"x"}`)
	require.NotNil(t, m.Error)
	require.Equal(t, -32601, m.Error.Code)
	require.NotContains(t, string(p.Call(t, "server/discover", `{}`).Raw), "modelcontextprotocol/tasks")
}

// TestTaskOfAnotherProcess: any replica serves any task.
func TestTaskOfAnotherProcess(t *testing.T) {
	t.Parallel()

	first, second := httpServer(t), httpServer(t)
	p, q := first.Speak(harness.Revision2026), second.Speak(harness.Revision2026)
	p.Capabilities, q.Capabilities = declared, declared
	created := startTask(t, p, "slow_any", `{"seconds":3,"value":1e400}`)
	first.Kill()
	end := endOfTask(t, q, created.TaskID)
	require.Equal(t, "completed", end.Status)
	require.Equal(t, "1e400", string(harness.Message{Result: end.Result}.ToolResult(t).Structured))
}
