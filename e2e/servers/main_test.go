package servers_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// server is an MCP server of another maker.
type server struct {
	name string
	// command is how it starts; of an HTTP server the test starts it.
	command func(t *testing.T, dir string) peers.Command
	// url is the path of a server that the test starts and that listens on PORT.
	url     string
	prepare func(t *testing.T, dir string)
	// revision is pinned for a server of the newest; empty: the newest with a
	// handshake is asked for.
	revision string
	// fickle servers list their tools differently each time.
	fickle bool

	// reported is the name that it gives itself.
	reported string
	// repeatable and once are tools of which the check says so.
	repeatable, once []string
	calls            []request
}

// request is one request; DIR in the params is the server's directory.
type request struct{ method, params string }

func tool(name, args string) request { return request{"tools/call", harness.ToolParams(name, args)} }

// dir is a place for a server's files. It is the same for the session with the
// server itself and for the proxy's, since some results name it.
func (s server) dir(t *testing.T, base string) string {
	t.Helper()
	dir := filepath.Join(base, strings.ReplaceAll(s.name, " ", "-"))
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o700))
	if s.prepare != nil {
		s.prepare(t, dir)
	}
	return dir
}

// mark is in the environment of every server of a test, so that those left over
// can be found.
func mark(c peers.Command, value string) peers.Command {
	env := map[string]string{"DURABLE_PEER": value}
	maps.Copy(env, c.Env)
	c.Env = env
	return c
}

// marked counts the processes with a mark. It finds none where there is no /proc.
func marked(t *testing.T, value string) (n int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range list {
		data, _ := os.ReadFile(file) // the process may be gone or another's
		for variable := range strings.SplitSeq(string(data), "\x00") {
			if variable == "DURABLE_PEER="+value {
				n++
			}
		}
	}
	return n
}

// listen starts an HTTP server and returns its URL.
func (s server) listen(t *testing.T, dir string) string {
	t.Helper()
	port := strconv.Itoa(harness.FreePort(t))
	c := s.command(t, dir)
	for i := range c.Args {
		c.Args[i] = strings.ReplaceAll(c.Args[i], "PORT", port)
	}
	harness.StartProgram(t, append(c.Environ(), "PORT="+port), c.Path, c.Args...)
	harness.Until(t, func() bool {
		conn, err := net.Dial("tcp", "localhost:"+port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://localhost:" + port + s.url
}

// direct is a session with the server itself.
func (s server) direct(t *testing.T, dir, url string) *harness.Peer {
	t.Helper()
	if url == "" {
		c := s.command(t, dir)
		return harness.StartProgram(t, c.Environ(), c.Path, c.Args...).Speak(t, cmp.Or(s.revision, harness.Revision2025November))
	}
	p := (&harness.HTTP{URL: url}).Speak(harness.Revision2025November)
	opened := p.Request(t, "initialize", fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`, p.Revision))
	var initialized struct{ ProtocolVersion string }
	opened.Answer(t).Decode(t, &initialized)
	p.Headers = map[string]string{
		"Mcp-Session-Id": opened.Exchange.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": initialized.ProtocolVersion,
	}
	p.HTTP.Post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, p.Headers).AwaitEnd(t)
	return p
}

// entry is the server as an entry of the proxy's file.
func (s server) entry(t *testing.T, dir, url, token string) harness.ProxyServer {
	t.Helper()
	e := harness.ProxyServer{"startup_timeout": "2m"}
	if url != "" {
		e["url"] = url
	} else {
		c := mark(s.command(t, dir), token)
		e["command"], e["args"], e["env"] = c.Path, c.Args, c.Env
	}
	if s.revision != "" {
		e["protocol_version"] = s.revision
	}
	return e
}

// send sends the requests and returns the answers.
func (s server) send(t *testing.T, p *harness.Peer, dir string) []harness.Message {
	t.Helper()
	answers := make([]harness.Message, len(s.calls))
	for i, call := range s.calls {
		answers[i] = p.Call(t, call.method, strings.ReplaceAll(call.params, "DIR", dir))
	}
	return answers
}

// members are those of an object.
func members(t *testing.T, raw json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &m), "%s", raw)
	return m
}

// requireSame wants the answer through proxy and connector to be that of the
// server itself, but for the members that the path owns.
func requireSame(t *testing.T, what string, want, got harness.Message) {
	t.Helper()
	if want.Error != nil {
		require.Equal(t, want.Error, got.Error, "%s: %s", what, got.Raw)
		return
	}
	require.Nil(t, got.Error, "%s: %s", what, got.Raw)
	w, g := members(t, want.Result), members(t, got.Result)
	if strings.Contains(what, "/list ") { // the connector sorts what it lists
		for _, m := range []map[string]json.RawMessage{w, g} {
			for name, value := range m {
				m[name] = sorted(t, value)
			}
		}
	}
	requireMembers(t, what, w, g, "_meta", "resultType")
}

// sorted sorts an array by its elements' bytes.
func sorted(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	slices.SortFunc(list, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	data, err := json.Marshal(list)
	require.NoError(t, err)
	return data
}

// requireMembers wants the members to be the same, but for those that are left out.
func requireMembers(t *testing.T, what string, want, got map[string]json.RawMessage, but ...string) {
	t.Helper()
	for _, name := range but {
		delete(want, name)
		delete(got, name)
	}
	for name, value := range want {
		require.Contains(t, got, name, what)
		exact, err := harness.Exact(string(value))
		require.NoError(t, err)
		other, err := harness.Exact(string(got[name]))
		require.NoError(t, err)
		require.Equal(t, exact, other, "%s: %s", what, name)
		delete(got, name)
	}
	require.Empty(t, got, "%s: what the server did not say", what)
}
