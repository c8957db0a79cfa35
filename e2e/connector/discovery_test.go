package connector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

func manifest(tools ...string) string {
	for i, name := range tools {
		tools[i] = `{"name":"` + name + `","description":"A tool.","inputSchema":{"type":"object"}}`
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

// TestUnknownNameIsLookedFor: a tool that came after the last refresh is found by
// the call of its name.
func TestUnknownNameIsLookedFor(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.StartService(t)
	service.SetManifest(t, manifest("echo"))
	p := temporal.StartStdio(t, "--service", service.Name, "--refresh-interval", "1h", "--poll-tools", "off").Speak(t, harness.Revision2025November)
	require.Equal(t, []string{"echo"}, p.ListTools(t).Names(t))
	require.Equal(t, -32602, p.ToolError(t, "note", `{}`).Code)

	service.SetManifest(t, manifest("echo", "note"))
	harness.Until(t, func() bool { // names that nobody knows are looked for once a second
		m := p.StartTool(t, "note", `{"a":1}`).Answer(t)
		return m.Error == nil && string(m.ToolResult(t).Structured) == `{"a":1}`
	})
	require.Equal(t, []string{"echo", "note"}, p.ListTools(t).Names(t))
	p.Stdio.Await(t, "list_changed", harness.IsNotification("notifications/tools/list_changed"))
}

// TestLooksForUnknownNamesAreShared: however many callers ask for names that
// nobody knows, the services are asked once for all of them.
func TestLooksForUnknownNamesAreShared(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.StartService(t)
	service.SetManifest(t, manifest("echo"))
	p := temporal.StartHTTP(t, "--service", service.Name, "--refresh-interval", "1h").Speak(harness.Revision2025November)
	p.ListTools(t)
	require.Equal(t, 1, service.Effects(t, "list_tools"))
	began := time.Now()
	var group errgroup.Group
	for i := range 30 {
		group.Go(func() error {
			call, err := p.TryRequest("tools/call", harness.ToolParams(fmt.Sprintf("unknown%d", i), `{}`))
			if err != nil {
				return err
			}
			if m, ok := call.Find(harness.Patience, harness.IsAnswer(call.ID)); !ok || m.Error == nil || m.Error.Code != -32602 {
				return fmt.Errorf("the answer is %s", m.Raw)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for range 20 {
		require.Equal(t, -32602, p.ToolError(t, "unknown", `{}`).Code)
	}
	atMost := 2 + int(time.Since(began).Seconds()) // the first, and one for each second
	require.LessOrEqual(t, service.Effects(t, "list_tools"), atMost)
}

// TestListChanged: clients hear of it on both transports.
func TestListChanged(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.StartService(t)
	service.SetManifest(t, manifest("echo"))
	args := []string{"--service", service.Name, "--refresh-interval", "1s", "--poll-tools", "off"}

	var stdio []*harness.Peer
	for _, revision := range harness.Revisions[:2] {
		stdio = append(stdio, temporal.StartStdio(t, args...).Speak(t, revision))
	}
	server := temporal.StartHTTP(t, args...)
	listener := server.Speak(harness.Revision2026)
	modern := temporal.StartStdio(t, args...).Speak(t, harness.Revision2026)
	var listens []*harness.Pending
	for _, p := range []*harness.Peer{listener, modern} {
		require.Equal(t, []string{"echo"}, p.ListTools(t).Names(t))
		listen := p.Request(t, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`)
		ack := listen.Await(t, "acknowledgement", harness.IsNotification("notifications/subscriptions/acknowledged"))
		require.Contains(t, string(ack.Params), `"toolsListChanged":true`)
		listens = append(listens, listen)
	}
	require.Equal(t, "no", listens[0].Exchange.Header.Get("X-Accel-Buffering"))
	changed := make(chan struct{}, 10)
	session := server.Connect(t, "", &mcp.ClientOptions{ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	for _, p := range stdio {
		require.Equal(t, []string{"echo"}, p.ListTools(t).Names(t))
	}

	service.SetManifest(t, manifest("echo", "note"))
	changedAt := time.Now()
	heard := func(p *harness.Peer) func(harness.Message) bool { // of this change, not of the first list
		return func(m harness.Message) bool {
			return m.Method == "notifications/tools/list_changed" && m.At.After(changedAt) && len(p.ListTools(t).Tools) == 2
		}
	}
	for _, p := range stdio {
		p.Stdio.Await(t, "list_changed", heard(p))
		require.Equal(t, []string{"echo", "note"}, p.ListTools(t).Names(t))
	}
	for i, p := range []*harness.Peer{listener, modern} {
		m := listens[i].Await(t, "list_changed", heard(p))
		require.Contains(t, string(m.Params), "io.modelcontextprotocol/subscriptionId")
		require.Equal(t, []string{"echo", "note"}, p.ListTools(t).Names(t))
	}
	select {
	case <-changed:
	case <-time.After(harness.Patience):
		require.FailNow(t, "the SDK's client hears nothing")
	}
	require.NoError(t, session.Close())

	// A tool that only changes is a change too.
	again := time.Now()
	service.SetManifest(t, strings.Replace(manifest("echo", "note"), "A tool.", "Another tool.", 1))
	listens[0].Await(t, "list_changed", func(m harness.Message) bool {
		_, echo := listener.ListTools(t).Find(t, "echo")
		return m.Method == "notifications/tools/list_changed" && m.At.After(again) && string(echo["description"]) == `"Another tool."`
	})
}

func TestPrefixes(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	a, b := temporal.StartService(t), temporal.StartService(t)
	a.SetManifest(t, manifest("echo", "note", strings.Repeat("l", 63)))
	b.SetManifest(t, manifest("echo", "headers"))
	p := temporal.StartStdio(t, "--service", a.Name+",prefix=one", "--service", b.Name+"="+b.Name+",prefix=two-", "--poll-tools", "off",
		"--wait-budget", "1s").Speak(t, harness.Revision2026)
	list := p.ListTools(t)
	require.Equal(t, []string{"one_echo", "one_note", "two-echo", "two-headers"}, list.Names(t))
	require.Contains(t, string(list.Meta["io.temporal/warnings"]), "with the prefix")
	require.Equal(t, `{"a":1}`, string(p.Tool(t, "one_echo", `{"a":1}`).Structured))
	require.Equal(t, `{"a":1}`, string(p.Tool(t, "two-echo", `{"a":1}`).Structured))
	require.Equal(t, -32602, p.ToolError(t, "echo", `{}`).Code)
	line := harness.Unique("line")
	p.Tool(t, "one_note", `{"line":"`+line+`"}`)
	require.Equal(t, 1, a.Effects(t, line))
}

// TestClash: the first service owns a name that two have; the other's is left out
// and both are named. What does not clash is served.
func TestClash(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	a, b := temporal.StartService(t), temporal.StartService(t)
	a.SetManifest(t, manifest("echo", "note"))
	b.SetManifest(t, manifest("note", "pick", "get_operation_result"))
	p := temporal.StartStdio(t, "--service", a.Name, "--service", b.Name, "--poll-tools", "off").Speak(t, harness.Revision2026)
	list := p.ListTools(t)
	require.Equal(t, []string{"echo", "note", "pick"}, list.Names(t))
	var warnings []string
	require.NoError(t, json.Unmarshal(list.Meta["io.temporal/warnings"], &warnings))
	text := strings.Join(warnings, "\n")
	require.Contains(t, text, a.Name)
	require.Contains(t, text, `service "`+b.Name+`": tool "note" is left out`)
	require.Contains(t, text, "prefix")
	require.Contains(t, text, "get_operation_result")
	line := harness.Unique("line")
	p.Tool(t, "note", `{"line":"`+line+`"}`)
	require.Equal(t, 1, a.Effects(t, line))
	require.Zero(t, b.Effects(t, line))
	require.Equal(t, "7", p.Tool(t, "pick", `{"value":7}`).Text(t))
}

// TestBadManifests: a bad tool costs itself, a bad document its service, and never
// a neighbour.
func TestBadManifests(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	good := harness.SharedService(t)
	for name, document := range map[string]string{
		"no JSON":    `{"tools":[`,
		"no object":  `[]`,
		"no tools":   `{"resources":[]}`,
		"tools":      `{"tools":{}}`,
		"endless":    `{"tools":[],"nextCursor":"again"}`,
		"empty":      ``,
		"bad cursor": `{"tools":[],"nextCursor":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := temporal.PrepareService(t)
			service.SetManifest(t, document)
			service.Start(t)
			p := temporal.StartStdio(t, "--service", service.Name, "--service", good.Name).Speak(t, harness.Revision2026)
			list := p.ListTools(t)
			require.Contains(t, list.Names(t), "echo")
			warnings := string(list.Meta["io.temporal/warnings"])
			require.Contains(t, warnings, service.Name)
			t.Log(warnings)
		})
	}
	t.Run("bad tools", func(t *testing.T) {
		t.Parallel()
		service := temporal.PrepareService(t)
		service.SetManifest(t, `{"tools":[7,{"name":"ok","description":"x","inputSchema":{"type":"object"},"future":{"n":1e400}},
			{"name":"no_schema","description":"x"},{"name":"bad_schema","description":"x","inputSchema":{"type":"string"}},
			{"description":"x","inputSchema":{"type":"object"}},{"name":"ok","description":"again","inputSchema":{"type":"object"}},
			{"name":"list_tools","description":"x","inputSchema":{"type":"object"}}],"_meta":{"io.temporal/contract":99}}`)
		service.Start(t)
		p := temporal.StartStdio(t, "--service", service.Name, "--poll-tools", "off").Speak(t, harness.Revision2026)
		list := p.ListTools(t)
		require.Equal(t, []string{"ok"}, list.Names(t))
		raw, _ := list.Find(t, "ok")
		require.Contains(t, string(raw), `"future":{"n":1e400}`)
		warnings := string(list.Meta["io.temporal/warnings"])
		for _, part := range []string{"tools[0]", "no_schema", "bad_schema", "tools[4]", "tools[5]", "list_tools", "99"} {
			require.Contains(t, warnings, part)
		}
	})
}

// TestReturnedWorker: a service whose worker dies leaves its neighbour alone, and
// is served soon after the worker's return. Calls that nobody takes would block
// its endpoint in the server for a minute; looking for it must not.
func TestReturnedWorker(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	good := harness.SharedService(t)
	service := temporal.PrepareService(t)
	service.SetManifest(t, manifest("note"))
	p := temporal.StartStdio(t, "--service", service.Name, "--service", good.Name+",prefix=kit",
		"--discovery-timeout", "2s", "--refresh-interval", "1s").Speak(t, harness.Revision2025November)
	served := func() bool {
		return slices.Contains(p.ListTools(t).Names(t), "note")
	}
	require.False(t, served())
	away := time.Now()
	harness.Until(t, func() bool { // long enough for many looks
		require.Equal(t, `{"a":1}`, string(p.Tool(t, "kit_echo", `{"a":1}`).Structured))
		return time.Since(away) > 12*time.Second
	})
	probes, err := temporal.Client(t).CountNexusOperations(t.Context(), client.CountNexusOperationsOptions{
		Query: fmt.Sprintf("Endpoint = %q AND Operation = 'list_tools'", service.Name),
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, probes.Count, "each question that nobody answers counts against the endpoint")
	service.Start(t)
	returned := time.Now()
	harness.Until(t, served)
	first := time.Since(returned)
	line := harness.Unique("line")
	require.False(t, p.Tool(t, "note", `{"line":"`+line+`"}`).IsError)
	works := time.Since(returned)

	service.Kill()
	gone := time.Now()
	harness.Until(t, func() bool {
		return strings.Contains(string(p.ListTools(t).Meta["io.temporal/warnings"]), "did not answer")
	})
	noticed := time.Since(gone)
	require.True(t, served(), "the tools that it had stay served")
	service.Start(t)
	returned = time.Now()
	harness.Until(t, func() bool {
		return !strings.Contains(string(p.ListTools(t).Meta["io.temporal/warnings"]), "did not answer")
	})
	again := time.Since(returned)
	require.False(t, p.Tool(t, "note", `{"line":"`+line+`"}`).IsError)
	require.Equal(t, 2, service.Effects(t, line))
	t.Logf("a worker that comes after 12 s is listed after %v, its first call is answered after %v; "+
		"its death is noticed after %v, its return after %v, the call then works after %v",
		first.Round(time.Millisecond), works.Round(time.Millisecond), noticed.Round(time.Millisecond),
		again.Round(time.Millisecond), time.Since(returned).Round(time.Millisecond))
	require.Less(t, works, 30*time.Second)
	require.Less(t, again, 30*time.Second)
}

// TestCallsWaitForAWorker: calls that come while no worker is there are kept by
// Temporal, and answered when one is.
func TestCallsWaitForAWorker(t *testing.T) {
	t.Parallel()

	temporal := harness.Shared(t)
	service := temporal.StartService(t)
	service.SetManifest(t, manifest("note"))
	p := temporal.StartStdio(t, "--service", service.Name, "--wait-budget", "2m").Speak(t, harness.Revision2025November)
	p.ListTools(t)
	service.Kill()
	line := harness.Unique("line")
	const calls = 3 // twice as many would block the endpoint for a minute
	var pending []*harness.Pending
	for range calls {
		pending = append(pending, p.StartTool(t, "note", `{"line":"`+line+`"}`))
	}
	_, answered := p.Stdio.Find(12*time.Second, harness.IsAnswer(pending[0].ID)) // the server gives up on an attempt after 10 s
	require.False(t, answered)
	service.Start(t)
	returned := time.Now()
	for _, call := range pending {
		require.False(t, call.Answer(t).ToolResult(t).IsError)
	}
	t.Logf("the calls were answered %v after the worker's return", time.Since(returned).Round(time.Millisecond))
	require.Equal(t, calls, service.Effects(t, line))
}
