package conformance_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

// What a revision requires of a server.
const (
	scored2026 = 37
	scored2025 = 30
)

// servers are the ways from a client through the connector to who answers.
var servers = []struct {
	run
	behind func(t *testing.T, temporal *harness.Temporal) (services []string)
}{
	{run{"service", "connector, tool service", server, harness.Revision2026, scored2026}, toolService},
	{run{"service", "connector, tool service", server, harness.Revision2025November, scored2025}, toolService},
	{run{"proxy", "connector, proxy, another MCP server", server, harness.Revision2026, scored2026}, proxied},
	{run{"proxy", "connector, proxy, another MCP server", server, harness.Revision2025November, scored2025}, proxied},
}

// TestServer is the suite as a client of the connector.
func TestServer(t *testing.T) {
	t.Parallel()

	peers.Dir(t)
	temporal := harness.Shared(t)
	harness.Program(t, "durable-mcp-connector") // built before the time of the runs begins
	for _, s := range servers {                 //nolint:paralleltest // the suite gives some calls half a second
		t.Run(s.name+" "+s.revision, func(t *testing.T) {
			start := func(t *testing.T) []string {
				t.Helper()
				// The suite wants a list that has changed within a second and a half, a
				// task from a call that takes one, and three signs of life within ten.
				args := []string{"--refresh-interval", "400ms", "--task-after", "800ms", "--progress-interval", "1s"}
				for _, service := range s.behind(t, temporal) {
					args = append(args, "--service", service)
				}
				connector := temporal.StartHTTP(t, args...)
				// The first call to a new endpoint takes longer than those after it.
				require.False(t, connector.Speak(harness.Revision2026).Tool(t, "test_simple_text", `{}`).IsError)
				return []string{"--url", connector.URL}
			}
			s.testAgain(t, start(t), start)
		})
	}
}

// toolService is a Worker whose tools are made with the tool SDK.
func toolService(t *testing.T, temporal *harness.Temporal) []string {
	t.Helper()
	name := harness.Unique("conf")
	temporal.CreateEndpoint(t, name, name)
	harness.StartWorker(t, harness.Build(t, "./e2e/conformance/fixture"), temporal.Address, name)
	return []string{name, name + "-changing=" + name}
}

// proxied is the MCP project's own server for this suite, of the Go SDK, behind a
// proxy worker, and beside it one with what the task scenarios call.
func proxied(t *testing.T, temporal *harness.Temporal) []string {
	t.Helper()
	address := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
	everything, tasks := address(), address()
	path := harness.Build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	harness.StartProgram(t, nil, path, "-http", everything)
	harness.StartWorker(t, harness.Build(t, "./e2e/conformance/tasktools"), tasks)
	harness.Until(t, func() bool {
		conn, err := net.Dial("tcp", everything)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	name := harness.Unique("conf")
	temporal.StartProxy(t, map[string]harness.ProxyServer{
		name: {"url": "http://" + everything}, name + "-tasks": {"url": "http://" + tasks},
	})
	return []string{name, name + "-tasks"}
}
