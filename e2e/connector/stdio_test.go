package connector_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// TestBadLines: a line that is no message is answered and skipped, and the
// session goes on.
func TestBadLines(t *testing.T) {
	t.Parallel()

	for _, revision := range harness.Revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			p := stdioPeer(t, revision)
			call := p.StartTool(t, "slow", `{"seconds":2,"value":"done"}`)
			bad := 0
			refused := func(line, id string) {
				p.Stdio.Send(t, line)
				bad++
				seen := 0
				m := p.Stdio.Await(t, "answer to "+line, func(m harness.Message) bool {
					if m.Error != nil {
						seen++
					}
					return seen == bad
				})
				require.Equal(t, id, string(m.ID), "%s", m.Raw)
				require.True(t, p.Stdio.Running())
			}
			for _, line := range []string{`{garbage`, `nonsense`, `{"jsonrpc":"2.0"`, `"a string"`, `7`} {
				refused(line, "null")
			}
			refused(`{"jsonrpc":"1.0","id":"old","method":"ping"}`, `"old"`)
			for _, line := range []string{"", "  ", "\r"} {
				p.Stdio.Send(t, line)
			}
			p.Stdio.Notify(t, "notifications/nonsense", `{}`)
			p.Stdio.Send(t, `{"jsonrpc":"2.0","id":"crlf","method":"ping"}`+"\r")
			if !p.Modern() {
				require.Nil(t, p.Stdio.Answer(t, `"crlf"`).Error)
			}
			require.Equal(t, "done", call.Answer(t).ToolResult(t).Text(t), "the call under way was lost")
			require.Equal(t, `{"a":1}`, string(p.Tool(t, "echo", `{"a":1}`).Structured))
			require.Empty(t, p.Stdio.Other(), "standard output carries the protocol alone")
		})
	}
}

// TestOversizedFrame: one message over the limit costs that message alone.
func TestOversizedFrame(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November)
	p.Stdio.Send(t, `{"jsonrpc":"2.0","id":99,"method":"ping","params":{"x":"`+strings.Repeat("x", 17<<20)+`"}}`)
	m := p.Stdio.Await(t, "refusal", func(m harness.Message) bool { return m.Error != nil })
	require.Contains(t, m.Error.Message, "16777216")
	require.Equal(t, `{"a":1}`, string(p.Tool(t, "echo", `{"a":1}`).Structured))
	if rss := p.Stdio.RSS(); rss > 0 {
		t.Logf("resident after a frame of 17 MiB: %d MiB", rss>>20)
	}
}

// TestEndOfInput: what was asked before the end is answered, the last of it as
// running.
func TestEndOfInput(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	for _, revision := range harness.Revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			p := stdioPeer(t, revision, "--shutdown-timeout", "4s")
			p.ListTools(t)
			line := harness.Unique("line")
			long := p.StartTool(t, "slow", `{"seconds":30,"line":"`+line+`"}`)
			short := p.StartTool(t, "slow", `{"seconds":1,"value":"done"}`)
			quick := p.StartTool(t, "echo", `{"a":1}`)
			// The last request has no newline behind it.
			_, err := p.Stdio.Stdin.Write([]byte(strings.Replace(`{"jsonrpc":"2.0","id":"last","method":"tools/call","params":PARAMS}`, "PARAMS", callParams(p, "echo", `{"b":2}`), 1)))
			require.NoError(t, err)
			require.NoError(t, p.Stdio.Stdin.Close())
			began := time.Now()
			require.Equal(t, `{"a":1}`, string(quick.Answer(t).ToolResult(t).Structured))
			require.Equal(t, "done", short.Answer(t).ToolResult(t).Text(t))
			require.Equal(t, `{"b":2}`, string(p.Stdio.Answer(t, `"last"`).ToolResult(t).Structured))
			long.Answer(t).ToolResult(t).Running(t)
			require.Zero(t, p.Stdio.Exit(t))
			require.Less(t, time.Since(began), 10*time.Second)
			require.Zero(t, kit.Effects(t, "cancelled "+line))
		})
	}
}

// callParams are the params of tools/call at the peer's revision.
func callParams(p *harness.Peer, tool, args string) string {
	meta := ""
	if p.Modern() {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + p.Revision + `","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return strings.TrimSuffix(harness.ToolParams(tool, args), "}") + meta + "}"
}

// TestEndOfInputWithoutWork ends at once.
func TestEndOfInputWithoutWork(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November)
	p.ListTools(t)
	began := time.Now()
	require.NoError(t, p.Stdio.Stdin.Close())
	require.Zero(t, p.Stdio.Exit(t))
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestOrderlyStop: on SIGTERM the answers under way come as running, and the
// operations go on.
func TestOrderlyStop(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	for _, revision := range harness.Revisions {
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			args := []string{"--service", kit.Name, "--caller", harness.Unique("stopper"), "--shutdown-timeout", "3s"}
			p := temporal.StartStdio(t, args...).Speak(t, revision)
			line := harness.Unique("line")
			call := p.StartTool(t, "slow", `{"seconds":9,"line":"`+line+`","value":"done"}`)
			harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
			began := time.Now()
			p.Stdio.Signal(t, syscall.SIGTERM)
			id := call.Answer(t).ToolResult(t).Running(t)
			require.Zero(t, p.Stdio.Exit(t))
			require.Less(t, time.Since(began), 8*time.Second)
			next := temporal.StartStdio(t, args...).Speak(t, revision)
			require.Equal(t, "done", result(t, next, id).Text(t))
			require.Equal(t, 1, kit.Effects(t, line))
			require.Zero(t, kit.Effects(t, "cancelled "+line))
		})
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			server := httpServer(t, "--shutdown-timeout", "3s")
			p := server.Speak(revision)
			line := harness.Unique("line")
			call := p.StartTool(t, "slow", `{"seconds":9,"line":"`+line+`","value":"done"}`)
			harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
			server.Signal(t, syscall.SIGTERM)
			harness.Until(t, func() bool { _, err := server.TryPost(ping, nil); return err != nil })
			require.True(t, server.Running(), "the answer under way has its time")
			id := call.Answer(t).ToolResult(t).Running(t)
			require.Zero(t, server.Exit(t))
			require.Equal(t, "done", result(t, httpServer(t).Speak(revision), id).Text(t))
			require.Equal(t, 1, kit.Effects(t, line))
			require.Zero(t, kit.Effects(t, "cancelled "+line))
		})
	}
}

// TestSecondSignalEndsAtOnce, however long the answers under way may take.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()

	kit := harness.SharedService(t)
	p := stdioPeer(t, harness.Revision2025November, "--shutdown-timeout", "10m")
	line := harness.Unique("line")
	p.StartTool(t, "slow", `{"seconds":1,"line":"`+line+`"}`)
	p.StartTool(t, "slow", `{"seconds":600}`)
	harness.Until(t, func() bool { return kit.Effects(t, line) == 1 })
	p.Stdio.Signal(t, syscall.SIGINT)
	p.Stdio.Await(t, "the short call's answer", func(m harness.Message) bool { return m.Result != nil && strings.Contains(string(m.Result), "content") })
	require.True(t, p.Stdio.Running())
	p.Stdio.Signal(t, syscall.SIGINT)
	require.Equal(t, 1, p.Stdio.Exit(t))
}

// TestIDsOfRequests: strings and numbers come back as they were.
func TestIDsOfRequests(t *testing.T) {
	t.Parallel()

	p := stdioPeer(t, harness.Revision2025November)
	for _, id := range []string{`"a b<c>"`, `0`, `-7`, `9007199254740991`, `9007199254740993`, `123456789012345678901234567890`, `"9"`} {
		p.Stdio.Send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		m := p.Stdio.Await(t, "answer to "+id, func(m harness.Message) bool {
			a, err := harness.Exact(string(m.ID))
			b, _ := harness.Exact(id)
			return err == nil && a == b
		})
		require.Nil(t, m.Error)
		require.True(t, json.Valid(m.Raw))
	}
}
