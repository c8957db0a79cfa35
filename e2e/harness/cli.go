package harness

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// Outcome is how a command ended.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// RunConnector runs the connector's binary to its end with arguments as they are,
// no server's address among them.
func RunConnector(tb testing.TB, stdin string, env []string, args ...string) Outcome {
	tb.Helper()
	p := startConnector(tb, env, args...)
	_, err := io.WriteString(p.Stdin, stdin)
	require.NoError(tb, err)
	require.NoError(tb, p.Stdin.Close())
	code := p.Exit(tb)
	return Outcome{Code: code, Stdout: p.Stdout.String(), Stderr: p.Stderr.String()}
}

func startConnector(tb testing.TB, env []string, args ...string) *Process {
	tb.Helper()
	p, err := start(command{
		name: fmt.Sprintf("connector %v", args), path: Program(tb, "durable-mcp-connector"), args: args, env: env, stdin: true,
	})
	require.NoError(tb, err)
	return p.own(tb)
}

// Command starts a command of the connector on the server.
func (s *Temporal) Command(tb testing.TB, args ...string) *Process {
	tb.Helper()
	return startConnector(tb, s.env(), args...)
}

// Run runs a command of the connector on the server.
func (s *Temporal) Run(tb testing.TB, stdin string, args ...string) Outcome {
	tb.Helper()
	return RunConnector(tb, stdin, s.env(), args...)
}

func (s *Temporal) env() []string {
	return []string{"TEMPORAL_ADDRESS=" + s.Address, "DURABLE_MCP_CALLER=" + Unique("cli"), "DURABLE_MCP_DISCOVERY_TIMEOUT=" + Patience.String()}
}
