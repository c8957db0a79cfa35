package harness

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Stdio is a connector as a child process whose standard input and output are
// written and read as bytes.
type Stdio struct {
	*Process
	*Inbox

	ids    atomic.Int64
	output *os.File
}

// StartStdio starts a connector. Unless the arguments say otherwise, the caller is
// one that no other test has, and a busy machine's services have time to answer.
func (s *Temporal) StartStdio(tb testing.TB, args ...string) *Stdio {
	tb.Helper()
	path, all := s.ConnectorCommand(tb, args...)
	return startLines(tb, command{name: "connector", path: path, args: all})
}

func (s *Temporal) connectorArgs(args []string) []string {
	all := []string{"--temporal-address", s.Address, "--log-level", "debug"}
	line := strings.Join(args, " ")
	if !strings.Contains(line, "--caller") {
		all = append(all, "--caller", Unique("caller"))
	}
	if !strings.Contains(line, "--discovery-timeout") {
		all = append(all, "--discovery-timeout", Patience.String())
	}
	return append(all, args...)
}

// StopReading closes the client's end of the connector's standard output.
func (c *Stdio) StopReading() { _ = c.output.Close() }

// Send writes one line.
func (c *Stdio) Send(tb testing.TB, line string) {
	tb.Helper()
	_, err := io.WriteString(c.Stdin, line+"\n")
	require.NoError(tb, err)
}

// Request sends a request and returns its ID. Params is a JSON object.
func (c *Stdio) Request(tb testing.TB, method, params string) (id string) {
	tb.Helper()
	id = fmt.Sprint(c.ids.Add(1))
	c.Send(tb, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// Answer waits for the answer to a request.
func (c *Stdio) Answer(tb testing.TB, id string) Message {
	tb.Helper()
	return c.Await(tb, "answer to request "+id, IsAnswer(id))
}

// Notify sends a notification.
func (c *Stdio) Notify(tb testing.TB, method, params string) {
	tb.Helper()
	c.Send(tb, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// Initialize is the handshake of the revisions that have one.
func (c *Stdio) Initialize(tb testing.TB, revision string) Message {
	tb.Helper()
	m := c.Answer(tb, c.Request(tb, "initialize", fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`, revision)))
	require.Nil(tb, m.Error, "%s", m.Raw)
	c.Notify(tb, "notifications/initialized", `{}`)
	return m
}
