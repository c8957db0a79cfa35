package load_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// A client vanishes by closing its connection, with a FIN or with a RST.

// vanishing is where a client is when it vanishes.
type vanishing int

const (
	midHeaders  vanishing = iota // half of the headers are sent
	midBody                      // half of the body
	unanswered                   // the request is sent, nothing is read
	calling                      // the call is known to run
	subscribing                  // the stream of list changes is open (2026-07-28)
	ways
)

// vanisher is one client.
type vanisher struct {
	way      vanishing
	revision string
	reset    bool
	call     int
	id       string // of the operation, where the client was told
}

var operationID = regexp.MustCompile(`mcp-http-stateless-[0-9a-f]{32}`)

// run connects, goes as far as it goes, and vanishes.
func (v *vanisher) run(server *harness.HTTP) error {
	u, err := url.Parse(server.URL)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if v.reset {
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			return err
		}
	}
	method, params := "tools/call", harness.ToolParams(toolGate, fmt.Sprintf(`{"call":%d}`, v.call))
	switch v.way {
	case unanswered:
		method, params = "tools/call", harness.ToolParams(toolEcho, `{}`)
	case subscribing:
		method, params = "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`
	default:
	}
	head, body := server.Speak(v.revision).HTTPRequest(method, params, fmt.Sprintf(`"progressToken":%d`, v.call))
	switch v.way {
	case midHeaders:
		_, err = io.WriteString(conn, head[:len(head)/2])
		return err
	case midBody:
		_, err = io.WriteString(conn, head+body[:len(body)/2])
		return err
	default:
	}
	if _, err = io.WriteString(conn, head+body); err != nil || v.way == unanswered {
		return err
	}
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("%+v: %w", v, err)
		}
		if v.way == subscribing && line == "\r\n" {
			return nil
		}
		if v.id = operationID.FindString(line); v.id != "" {
			return nil
		}
	}
}

// clients makes n of them, of every kind.
func clients(n, firstCall int) []*vanisher {
	all := make([]*vanisher, n)
	for i := range all {
		v := &vanisher{way: vanishing(i) % ways, revision: harness.Revisions[i/int(ways)%len(harness.Revisions)], reset: i%2 == 0, call: firstCall + i}
		if v.way == subscribing {
			v.revision = harness.Revision2026
		}
		all[i] = v
	}
	return all
}

// TestVanishingClients: clients that close their connections in the middle of a
// request. They cost nobody else an answer, and the connector keeps nothing of them.
// The calls that they began go on, but for those of 2026-07-28: there a closed response
// stream is a cancellation.
func TestVanishingClients(t *testing.T) { //nolint:paralleltest // it measures
	const rounds, each = 2, 100
	server := harness.Shared(t)
	s := startService(t, server)
	at := atRest(t, server, s)
	c, p := startConnector(t, server, s)
	honest := startGates(t, p, 0, few)
	memory := make([]int, rounds)
	var called []*vanisher
	for round := range rounds {
		all := clients(each, (round+1)*1000)
		errs := make([]error, len(all))
		var work sync.WaitGroup
		for i, v := range all {
			work.Go(func() { errs[i] = v.run(c) })
		}
		for range 5 {
			require.False(t, p.Tool(t, toolEcho, `{}`).IsError)
		}
		work.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		await(t, each, "the connections of those that are gone are closed", func() bool { return c.Files() <= at.files+few+len(honest) })
		memory[round] = c.RSS()
		for _, v := range all {
			if v.way == calling {
				called = append(called, v)
			}
		}
	}
	t.Logf("%d MiB at rest, %d MiB after one round, %d MiB after two", at.memory>>20, memory[0]>>20, memory[1]>>20)
	require.LessOrEqual(t, memory[1], memory[0]+memory[0]/4+memoryBeside/4, "those that are gone take memory")

	require.NotEmpty(t, called)
	for _, v := range called {
		handle := server.Client(t).GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: v.id})
		asked := func() bool {
			d, err := handle.Describe(context.Background(), client.DescribeNexusOperationOptions{})
			require.NoError(t, err)
			return d.CancellationInfo != nil
		}
		if v.revision == harness.Revision2026 {
			await(t, each, "the operation is cancelled", asked)
		} else {
			require.False(t, asked(), "a client of %s cancelled its call by vanishing", v.revision)
		}
	}
	s.open()
	answeredRight(t, honest, 0)
	for _, v := range called {
		if v.revision == harness.Revision2026 {
			continue
		}
		r := p.Tool(t, "get_operation_result", `{"operation_id":"`+v.id+`","wait_seconds":60}`)
		require.False(t, r.IsError, "%s", r.Raw)
		require.Equal(t, fmt.Sprintf(`{"call":%d}`, v.call), strings.TrimSpace(string(r.Structured)))
	}
	backAtRest(t, c, at)
}
