package harness

import (
	"fmt"
	"io"
	"strings"
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
func RunConnector(t testing.TB, stdin string, env []string, args ...string) Outcome {
	t.Helper()
	p := startConnector(t, env, args...)
	_, err := io.WriteString(p.Stdin, stdin)
	require.NoError(t, err)
	require.NoError(t, p.Stdin.Close())
	code := p.Exit(t)
	return Outcome{Code: code, Stdout: p.Stdout.String(), Stderr: p.Stderr.String()}
}

func startConnector(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p, err := start(command{
		name: fmt.Sprintf("connector %v", args), path: Program(t, "durable-mcp-connector"), args: args, env: env, stdin: true,
	})
	require.NoError(t, err)
	return p.own(t)
}

// Command starts a command of the connector on the server.
func (s *Temporal) Command(t testing.TB, args ...string) *Process {
	t.Helper()
	return startConnector(t, s.env(), args...)
}

// Run runs a command of the connector on the server.
func (s *Temporal) Run(t testing.TB, stdin string, args ...string) Outcome {
	t.Helper()
	return RunConnector(t, stdin, s.env(), args...)
}

func (s *Temporal) env() []string {
	return []string{"TEMPORAL_ADDRESS=" + s.Address, "DURABLE_MCP_CALLER=" + strings.ToLower(Unique("cli"))}
}
