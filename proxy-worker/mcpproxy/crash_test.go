package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// childConfig is what a child process is told: which Worker to be, and how its
// upstream behaves.
type childConfig struct {
	Address string
	Queue   string
	// File is what the upstream does: a line for each effect.
	File string
	// Mode is "block" (never answer once the effect is there), "before" (no session
	// ever comes about for a call), "silent" (no session at all) or empty.
	Mode string
}

// runChild is the main function of a child process.
func runChild() {
	var config childConfig
	must(json.Unmarshal([]byte(os.Getenv(childEnv)), &config))
	s := &fakeServer{tools: []string{readTool, payTool}, Legacy: true}
	connections := 0
	s.Refuse = func() error {
		connections++
		if config.Mode == "silent" {
			<-time.After(time.Hour)
		}
		if config.Mode == "before" && connections > 1 { // the first one lists
			line(config.File+".before", "before")
			<-time.After(time.Hour)
		}
		return nil
	}
	s.Call = func(_ context.Context, _ *fakeConn, _ string, _ contract.Object) (string, *contract.ProtocolError) {
		line(config.File, "effect")
		if config.Mode == "block" {
			<-time.After(time.Hour)
		}
		return `{"content":[]}`, nil
	}
	p, err := mcpproxy.New("child", s.upstream(), mcpproxy.Options{
		Logger: discard(), ContinueOnError: config.Mode == "silent",
		Policy: mcpproxy.Policy{HeartbeatTimeout: 2 * time.Second, Retry: quick},
	})
	must(err)
	c, err := client.Dial(client.Options{HostPort: config.Address, Logger: quiet(), Plugins: []client.Plugin{p}})
	must(err)
	must(worker.New(c, config.Queue, worker.Options{}).Run(worker.InterruptCh()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func line(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintln(f, text)
	must(err)
	must(f.Close())
}

func lines(file string) int {
	data, _ := os.ReadFile(file)
	return strings.Count(string(data), "\n")
}

// spawn starts a child process; kill ends it as a crash does.
func spawn(t *testing.T, config childConfig) (kill func()) {
	t.Helper()
	data, err := json.Marshal(config)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(data))
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	require.NoError(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill() // SIGKILL
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	return kill
}

func TestAWorkerThatIsKilled(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, tool, mode, after string
		effects                 int
		code                    contract.Code // empty: it succeeds
	}{
		{"with a request out, of a tool that must not run twice", "pay", "block", "", 1, contract.CodeOutcomeUnknown},
		{"with a request out, of a read-only tool", "read", "block", "", 2, ""},
		{"before the request, of a tool that must not run twice", "pay", "before", "", 1, ""},
		{"with a request out, and the next one cannot list the tools", "pay", "block", "silent", 1, contract.CodeOutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			config := childConfig{Queue: newEndpoint(t), Address: server.FrontendHostPort(), File: t.TempDir() + "/effects", Mode: test.mode}
			kill := spawn(t, config)
			c := caller{t: t, endpoint: config.Queue, service: "child"}
			handle := c.start(test.tool, `{}`, callTimeout)
			seen := config.File
			if test.mode == "before" {
				seen += ".before"
			}
			require.Eventually(t, func() bool { return lines(seen) > 0 }, 20*time.Second, 20*time.Millisecond)
			kill()
			config.Mode = test.after
			spawn(t, config)
			result, err := c.wait(handle)
			if test.code != "" {
				require.Equal(t, test.code, resultmap.FromError(err).Code, "%v", err)
			} else {
				require.NoError(t, err)
				require.Equal(t, `{"content":[]}`, result)
			}
			require.Equal(t, test.effects, lines(config.File))
		})
	}
}
