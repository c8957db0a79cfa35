package mcptool_test

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

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

// childConfig is what a child process is told: which Worker to be, and how to
// behave.
type childConfig struct {
	Address string
	Queue   string
	// File is the upstream: a line for each effect.
	File string
	// Mode is "block" (never return once the effect is there), "before" (stop
	// before the tool's activity function) or empty.
	Mode string
}

// childService is what parent and children agree on.
func childService(config childConfig) *mcptool.Service {
	effect := func(ctx context.Context, in nameInput) (greeting, error) {
		last := ""
		if activity.HasHeartbeatDetails(ctx) {
			if err := activity.GetHeartbeatDetails(ctx, &last); err != nil {
				return greeting{}, err
			}
		}
		activity.RecordHeartbeat(ctx) // must not wipe the note out
		line(config.File, in.Name)
		if config.Mode == "block" {
			activity.RecordHeartbeat(ctx, "halfway")
			<-time.After(time.Hour)
		}
		return greeting{"after " + last}, nil
	}
	s := mcptool.NewService("child")
	tool := mcptool.Tool{Description: "Have an effect."}
	beat := 2 * time.Second
	mcptool.Add(s, mcptool.NewActivityOperation("once", effect, mcptool.ActivityOptions{HeartbeatTimeout: beat}), tool)
	mcptool.Add(s, mcptool.NewActivityOperation("again", effect, mcptool.ActivityOptions{HeartbeatTimeout: beat, Repeatable: true}), tool)
	return s
}

// runChild is the main function of a child process.
func runChild() {
	var config childConfig
	must(json.Unmarshal([]byte(os.Getenv(childEnv)), &config))
	c, err := client.Dial(client.Options{HostPort: config.Address, Logger: quiet()})
	must(err)
	var options worker.Options
	if config.Mode == "before" {
		options.Interceptors = []interceptor.WorkerInterceptor{&stopper{file: config.File + ".before"}}
	}
	w := worker.New(c, config.Queue, options)
	must(childService(config).Register(w))
	must(w.Run(worker.InterruptCh()))
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

// stopper never lets an activity function start.
type stopper struct {
	interceptor.WorkerInterceptorBase
	file string
}

func (s *stopper) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &stopperInbound{file: s.file}
	in.Next = next
	return in
}

type stopperInbound struct {
	interceptor.ActivityInboundInterceptorBase
	file string
}

func (s *stopperInbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	line(s.file, "before")
	<-time.After(time.Hour)
	return s.Next.ExecuteActivity(ctx, in)
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

// crash starts a call, kills the Worker that runs it once the file has a line,
// and returns what the call ends with on another Worker.
func crash(t *testing.T, tool string, config childConfig, seen string) (string, error) {
	t.Helper()
	kill := spawn(t, config)
	c := caller{t: t, endpoint: config.Queue, service: "child"}
	handle := c.start(tool, `{"name":"effect"}`, time.Minute)
	require.Eventually(t, func() bool { return lines(seen) > 0 }, 20*time.Second, 20*time.Millisecond)
	if tool == "again" { // its progress is on its way
		require.Eventually(t, func() bool { return heartbeats(t, config.Queue) > 0 }, 20*time.Second, 50*time.Millisecond)
	}
	kill()
	config.Mode = ""
	spawn(t, config)
	return c.wait(handle)
}

func newChildConfig(t *testing.T, mode string) childConfig {
	t.Helper()
	return childConfig{
		Queue: newEndpoint(t), Address: server.FrontendHostPort(), File: t.TempDir() + "/effects", Mode: mode,
	}
}
