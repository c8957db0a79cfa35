package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// sdk is a client library and the program that lets a test drive it.
type sdk struct {
	name     string
	packages string // for Python; else the program is one for Node
	program  string
	revision string // "" where the library does not tell
	// modern clients cancel over HTTP by closing the response.
	modern bool
	// exact clients keep any integer.
	exact bool
	// filters says that the library shows an application less than the protocol has.
	filters bool
}

var sdks = []sdk{
	{name: "python 2", packages: peers.MCP2, program: "mcp2.py", revision: harness.Revision2026, modern: true, exact: true},
	{name: "python 1", packages: peers.MCP1, program: "mcp1.py", revision: harness.Revision2025November, exact: true},
	{name: "strands", packages: peers.MCP1, program: "strands_agents.py", exact: true, filters: true},
	{name: "typescript 2", program: "client2.cjs", revision: harness.Revision2026, modern: true},
	{name: "typescript 1", program: "sdk1.cjs", revision: harness.Revision2025November},
}

func (s sdk) command(t *testing.T, args ...string) peers.Command {
	t.Helper()
	dir := "python"
	if s.packages == "" {
		dir = "node"
	}
	program, err := filepath.Abs(filepath.Join(dir, s.program))
	require.NoError(t, err)
	args = append([]string{program}, args...)
	if s.packages == "" {
		return peers.Node(t, args...)
	}
	return peers.Python(t, s.packages, args...)
}

// client is a running client, connected to a connector.
type client struct {
	*harness.Stdio
	sdk

	stdio bool
	kit   *harness.Service
	// beside connects another client, whose calls this one may read.
	beside func(t *testing.T, args ...string) *harness.Peer
}

func (c *client) call(t *testing.T, tool, args string) string {
	t.Helper()
	return c.Request(t, "call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
}

func (c *client) tool(t *testing.T, tool, args string) harness.ToolResult {
	t.Helper()
	return c.Answer(t, c.call(t, tool, args)).ToolResult(t)
}

// budget is how long the connectors wait for a result, in seconds: enough for a
// busy machine to end a short call.
const budget = 20

// TestClients runs what every client must do, over both transports. A client is
// one process with one session, which serves all that is asked of it at once.
func TestClients(t *testing.T) {
	t.Parallel()

	peers.Dir(t)
	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args := []string{"--service", kit.Name, "--wait-budget", fmt.Sprintf("%ds", budget)}
	server := temporal.StartHTTP(t, args...)
	for _, s := range sdks {
		run := func(t *testing.T, beside func(t *testing.T, args ...string) *harness.Peer, arguments ...string) {
			t.Helper()
			command := s.command(t, arguments...)
			c := &client{
				Stdio: harness.StartProgram(t, command.Environ(), command.Path, command.Args...),
				sdk:   s, stdio: arguments[0] == "stdio", kit: kit, beside: beside,
			}
			c.Await(t, "connection", harness.IsNotification("connected"))
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, c)
				})
			}
		}
		t.Run(s.name+" over http", func(t *testing.T) {
			t.Parallel()
			run(t, func(t *testing.T, args ...string) *harness.Peer {
				t.Helper()
				return temporal.StartHTTP(t, append([]string{"--service", kit.Name}, args...)...).Speak(harness.Revision2026)
			}, "http", server.URL)
		})
		t.Run(s.name+" over stdio", func(t *testing.T) {
			t.Parallel()
			caller := harness.Unique("caller")
			path, all := temporal.ConnectorCommand(t, append([]string{"--caller", caller}, args...)...)
			run(t, func(t *testing.T, args ...string) *harness.Peer {
				t.Helper()
				return temporal.StartStdio(t, append([]string{"--service", kit.Name, "--caller", caller}, args...)...).Speak(t, harness.Revision2026)
			}, append([]string{"stdio", path}, all...)...)
		})
	}
}

// listed is what a client makes of tools/list.
type listed struct {
	Name         string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  map[string]any
}

func (c *client) tools(t *testing.T) map[string]listed {
	t.Helper()
	var list struct{ Tools []listed }
	c.Answer(t, c.Request(t, "tools", `{}`)).Decode(t, &list)
	tools := map[string]listed{}
	for _, tool := range list.Tools {
		require.NotContains(t, tools, tool.Name)
		tools[tool.Name] = tool
	}
	return tools
}
