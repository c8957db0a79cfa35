package harness

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ProxyServer is an entry of the file that a proxy worker reads.
type ProxyServer map[string]any

// Server is the upstream as an entry, with more of its members.
func (u *Upstream) Server(more ...ProxyServer) ProxyServer {
	s := ProxyServer{"command": u.path, "args": u.args}
	if u.URL != "" {
		s = ProxyServer{"url": u.URL}
	}
	for _, m := range more {
		maps.Copy(s, m)
	}
	return s
}

// Proxy is a proxy worker as a child process.
type Proxy struct {
	*Process

	// Queue is its task queue, Config the file that it reads.
	Queue, Config string

	temporal *Temporal
	args     []string
	env      []string
	ready    string
}

// PrepareProxy returns a proxy worker that does not run yet. The keys of the
// servers are the names of their services and endpoints.
func (s *Temporal) PrepareProxy(tb testing.TB, servers map[string]ProxyServer, args ...string) *Proxy {
	tb.Helper()
	ports, err := freePorts(1)
	require.NoError(tb, err)
	listen := "127.0.0.1:" + strconv.Itoa(ports[0])
	p := &Proxy{
		Queue: Unique("queue"), Config: WriteProxyConfig(tb, servers), temporal: s, ready: "http://" + listen + "/readyz",
	}
	p.args = append([]string{
		"--temporal-address", s.Address, "--log-level", "debug", "--config", p.Config, "--task-queue", p.Queue,
		"--ensure-endpoints", "--listen", listen,
	}, args...)
	return p
}

// WriteProxyConfig writes the file that a proxy worker reads.
func WriteProxyConfig(tb testing.TB, servers map[string]ProxyServer) string {
	tb.Helper()
	data, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	require.NoError(tb, err)
	path := filepath.Join(tb.TempDir(), "mcp.json")
	require.NoError(tb, os.WriteFile(path, data, 0o600))
	return path
}

// StartProxy starts a proxy worker. It returns when the worker is ready.
func (s *Temporal) StartProxy(tb testing.TB, servers map[string]ProxyServer, args ...string) *Proxy {
	tb.Helper()
	p := s.PrepareProxy(tb, servers, args...)
	p.Start(tb)
	return p
}

// WithEnv adds variables to the environment, NAME=VALUE.
func (p *Proxy) WithEnv(env ...string) *Proxy {
	p.env = append(p.env, env...)
	return p
}

// Launch starts the process.
func (p *Proxy) Launch(tb testing.TB) {
	tb.Helper()
	process, err := start(command{name: "proxy", path: Program(tb, "durable-mcp-proxy"), args: p.args, env: p.env})
	require.NoError(tb, err)
	p.Process = process.own(tb)
}

// Start starts the process, also again. It returns when the worker is ready.
func (p *Proxy) Start(tb testing.TB) {
	tb.Helper()
	p.Launch(tb)
	Until(tb, func() bool {
		require.True(tb, p.Running(), "the proxy has ended: %s", p.Stderr.tail())
		return p.Ready()
	})
}

// Ready asks the proxy whether it is ready.
func (p *Proxy) Ready() bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(p.ready)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// PID is that of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// RunProxy runs the proxy's binary to its end with arguments as they are.
func RunProxy(tb testing.TB, stdin string, env []string, args ...string) Outcome {
	tb.Helper()
	p, err := start(command{name: "proxy", path: Program(tb, "durable-mcp-proxy"), args: args, env: env, stdin: true})
	require.NoError(tb, err)
	p.own(tb)
	_, err = io.WriteString(p.Stdin, stdin)
	require.NoError(tb, err)
	require.NoError(tb, p.Stdin.Close())
	code := p.Exit(tb)
	return Outcome{Code: code, Stdout: p.Stdout.String(), Stderr: p.Stderr.String()}
}
