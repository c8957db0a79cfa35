package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

// toolIsError is the exit code for a result that is an error.
const toolIsError = 5

// TestInspector: the command line of the MCP Inspector, which connects anew for
// each request, at both generations of the protocol.
func TestInspector(t *testing.T) {
	t.Parallel()

	peers.Dir(t)
	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args := []string{"--service", kit.Name, "--wait-budget", fmt.Sprintf("%ds", budget), "--caller", harness.Unique("inspector")}
	path, all := temporal.ConnectorCommand(t, args...)
	targets := map[string]any{
		"stdio": map[string]any{"type": "stdio", "command": path, "args": all},
		"http":  map[string]any{"type": "streamable-http", "url": temporal.StartHTTP(t, args...).URL},
	}
	data, err := json.Marshal(map[string]any{"mcpServers": targets})
	require.NoError(t, err)
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	require.NoError(t, os.WriteFile(config, data, 0o600))

	for name := range targets {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+" "+era, func(t *testing.T) {
				t.Parallel()
				inspect := func(code int, result any, args ...string) {
					t.Helper()
					command := peers.Node(t, append([]string{
						peers.Package(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), "--cli",
						"--config", config, "--server", name, "--protocol-era", era, "--connect-timeout", "60000", "--format", "json", "--quiet",
					}, args...)...)
					out := harness.RunProgram(t, append(command.Environ(), "HOME="+dir), command.Path, command.Args...)
					require.Equal(t, code, out.Code, "%s\n%s", out.Stdout, out.Stderr)
					var printed struct{ Result json.RawMessage }
					require.NoError(t, json.Unmarshal([]byte(out.Stdout), &printed), "%s\n%s", out.Stdout, out.Stderr)
					require.NoError(t, json.Unmarshal(printed.Result, result), "%s", out.Stdout)
				}
				call := func(code int, tool, args string) (r harness.ToolResult) {
					t.Helper()
					inspect(code, &r, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", args)
					return r
				}

				var list struct{ Tools []listed }
				inspect(0, &list, "--method", "tools/list")
				require.True(t, slices.ContainsFunc(list.Tools, func(tool listed) bool {
					return tool.Name == "report" && tool.OutputSchema != nil
				}), "%v", list)

				arguments := `{"zulu":"é<b>","alpha":9007199254740991}`
				harness.RequireExact(t, arguments, string(call(0, "echo", arguments).Structured))
				long := call(0, "report", fmt.Sprintf(`{"seconds":%d,"value":{"n":5}}`, budget+3))
				if era == "legacy" {
					id := long.Running(t)
					harness.Until(t, func() bool {
						long = call(0, "get_operation_result", `{"operation_id":"`+id+`"}`)
						return !strings.Contains(string(long.Structured), id)
					})
				}
				// A modern one declares the tasks extension and waits for the task.
				require.JSONEq(t, `{"n":5}`, string(long.Structured))
				call(toolIsError, "fail", `{"as":"error"}`)
			})
		}
	}
}
