package clients_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// tests are what every client must do. Each leaves the session as it was.
var tests = map[string]func(t *testing.T, c *client){
	"listing": listing, "calls": calls, "protocol errors": protocolErrors, "integers": integers,
	"output schemas": outputSchemas, "long calls": longCalls, "progress": progress, "cancelling": cancelling,
}

var operationID = regexp.MustCompile(`mcp-(http-stateless|stdio-stateful-[0-9a-f]{8})-[0-9a-f]{32}`)

// result reads a result by its ID, however long it takes.
func (c *client) result(t *testing.T, id string) (r harness.ToolResult) {
	t.Helper()
	harness.Until(t, func() bool {
		r = c.tool(t, "get_operation_result", `{"operation_id":"`+id+`"}`)
		return r.IsError || r.Structured == nil || !strings.Contains(string(r.Structured), id)
	})
	require.False(t, r.IsError, "%s", r.Raw)
	return r
}

func listing(t *testing.T, c *client) {
	t.Helper()
	connected := c.Await(t, "connection", harness.IsNotification("connected"))
	var session struct{ Revision, Instructions string }
	require.NoError(t, json.Unmarshal(connected.Params, &session))
	require.Equal(t, c.revision, session.Revision)

	tools := c.tools(t)
	for _, name := range []string{"echo", "slow", "report", "fail", "get_operation_result", "cancel_operation"} {
		require.Contains(t, tools, name)
	}
	require.NotContains(t, tools, "Bad Name")
	echo := tools["echo"]
	require.Equal(t, "Returns its arguments. <b>&\u2028", echo.Description)
	require.Equal(t, true, echo.Annotations["readOnlyHint"])
	schema := `{"type":"object","properties":{"zulu":{"type":"string"},"alpha":{"type":"number","maximum":9007199254740993}}}`
	if c.exact {
		harness.RequireExact(t, schema, string(echo.InputSchema))
	} else {
		require.JSONEq(t, schema, string(echo.InputSchema))
	}
	require.NotEmpty(t, tools["report"].OutputSchema)
}

func calls(t *testing.T, c *client) {
	t.Helper()
	// The largest integer that every language here has.
	args := `{"zulu":"é😀<b>&\u2028","alpha":9007199254740991,"list":[null,true,-0.5,""],"nested":{"b":{},"a":[]}}`
	r := c.tool(t, "echo", args)
	require.False(t, r.IsError)
	harness.RequireExact(t, args, string(r.Structured))
	harness.RequireExact(t, args, r.Text(t))

	r = c.tool(t, "content", `{"result":{"content":[{"type":"text","text":"one"},{"type":"text","text":"<two>"}]}}`)
	require.Len(t, r.Content, 2)

	r = c.tool(t, "fail", `{"as":"tool","details":{"content":[{"type":"text","text":"out of <stock>"}],"isError":true}}`)
	require.True(t, r.IsError)
	require.Equal(t, "out of <stock>", r.Text(t))

	r = c.tool(t, "fail", `{"as":"error"}`)
	require.True(t, r.IsError)
	require.Contains(t, r.Text(t), "it does not <work>")
}

// protocolErrors: what an upstream answers as an error reaches the application
// as one, with its code; and so does a tool that does not exist.
func protocolErrors(t *testing.T, c *client) {
	t.Helper()
	refused := func(code int, text, tool, args string) {
		t.Helper()
		m := c.Answer(t, c.call(t, tool, args))
		if c.filters {
			r := m.ToolResult(t)
			require.True(t, r.IsError)
			require.Contains(t, r.Text(t), text)
			return
		}
		require.NotNil(t, m.Error, "%s", m.Raw)
		require.Equal(t, code, m.Error.Code, "%s", m.Raw)
		require.Contains(t, m.Error.Message, text)
	}
	refused(-32099, "quota is used up", "fail", `{"as":"protocol","details":{"code":-32099,"message":"quota is used up","data":{"left":0}}}`)
	refused(-32602, "no_such_tool", "no_such_tool", `{}`)
	require.Equal(t, `{"a":1}`, c.tool(t, "echo", `{"a":1}`).Text(t))
}

// integers: what no float64 holds passes wherever the language has it, and as
// text everywhere.
func integers(t *testing.T, c *client) {
	t.Helper()
	const value = `{"n":9007199254740993,"m":[-123456789012345678901234567890]}`
	if c.exact {
		r := c.tool(t, "pick", `{"value":`+value+`}`)
		harness.RequireExact(t, value, string(r.Structured))
		harness.RequireExact(t, value, r.Text(t))
		return
	}
	// JavaScript cannot say such a number, but it can read another's result.
	id := c.beside(t, "--wait-budget", "1s").Tool(t, "slow", `{"seconds":4,"value":`+value+`}`).Running(t)
	harness.RequireExact(t, value, c.result(t, id).Text(t))
}

// outputSchemas: the clients hold a result against the schema that they were
// served, and a running one is no lie.
func outputSchemas(t *testing.T, c *client) {
	t.Helper()
	c.tools(t)
	require.JSONEq(t, `{"n":5}`, string(c.tool(t, "report", `{"seconds":0,"value":{"n":5}}`).Structured))
	c.tool(t, "report", `{"seconds":600,"value":{"n":5}}`).Running(t)
	m := c.Answer(t, c.call(t, "report", `{"seconds":0,"value":{"n":"five"}}`))
	if c.filters {
		require.True(t, m.ToolResult(t).IsError, "the client does not validate")
		return
	}
	require.NotNil(t, m.Error, "the client does not validate: %s", m.Raw)
}

// longCalls: a call that outlasts the wait comes as running, and its result by
// the tool that the text names.
func longCalls(t *testing.T, c *client) {
	t.Helper()
	line := harness.Unique("line")
	r := c.tool(t, "slow", fmt.Sprintf(`{"seconds":%d,"line":%q,"value":"done"}`, budget+3, line))
	id := r.Running(t)
	require.Contains(t, r.Text(t), id)
	require.Contains(t, r.Text(t), "get_operation_result")
	require.Equal(t, "done", c.result(t, id).Text(t))
	require.Equal(t, 1, c.kit.Effects(t, line))
}

// progressOf is the message of a progress notification, if it is one of a call.
func progressOf(m harness.Message, id string) (message string, ok bool) {
	var p struct {
		ID      json.RawMessage
		Message string
	}
	if m.Method != "progress" || json.Unmarshal(m.Params, &p) != nil {
		return "", false
	}
	return p.Message, string(p.ID) == id
}

// progress: the first notification names the operation.
func progress(t *testing.T, c *client) {
	t.Helper()
	id := c.call(t, "slow", `{"seconds":2,"value":"done"}`)
	require.Equal(t, "done", c.Answer(t, id).ToolResult(t).Text(t))
	var said []string
	for _, m := range c.All() {
		if text, ok := progressOf(m, id); ok {
			said = append(said, text)
		}
	}
	require.NotEmpty(t, said)
	require.Regexp(t, operationID, said[0])
}

// cancelling: over stdio, and at 2026-07-28 over HTTP, a client's cancel is heard
// by what runs. Before, HTTP cannot tell a cancel from a lost connection: there
// the call goes on, and a tool cancels it.
func cancelling(t *testing.T, c *client) {
	t.Helper()
	line := harness.Unique("line")
	id := c.call(t, "slow", `{"seconds":600,"line":"`+line+`"}`)
	harness.Until(t, func() bool { return c.kit.Effects(t, line) == 1 })
	first := c.Await(t, "progress", func(m harness.Message) bool { _, ok := progressOf(m, id); return ok })
	c.Notify(t, "cancel", `{"id":`+id+`}`)
	m := c.Answer(t, id)
	require.NotNil(t, m.Error, "%s", m.Raw)
	require.Equal(t, "cancelled", m.Error.Message)
	if !c.stdio && !c.modern {
		require.Zero(t, c.kit.Effects(t, "cancelled "+line))
		operation := operationID.FindString(string(first.Params))
		require.False(t, c.tool(t, "cancel_operation", `{"operation_id":"`+operation+`"}`).IsError)
	}
	harness.Until(t, func() bool { return c.kit.Effects(t, "cancelled "+line) == 1 })
	require.Equal(t, `{"a":1}`, c.tool(t, "echo", `{"a":1}`).Text(t), "the session goes on")
}
