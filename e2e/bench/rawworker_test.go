package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
)

// echoActivity runs an activity that returns its input, callActivity one that calls
// the upstream's tool with it.
const (
	echoActivity = "activity"
	callActivity = "call"
)

// Variables that make the test binary a Worker of the raw SDK, in a process of
// its own: what a proxy takes is measured against what that takes.
const (
	rawWorkerAddress  = "BENCH_RAW_WORKER_ADDRESS"
	rawWorkerQueue    = "BENCH_RAW_WORKER_QUEUE"
	rawWorkerUpstream = "BENCH_RAW_WORKER_UPSTREAM"
)

// startRawWorker returns the PID of a Worker that polls.
func startRawWorker(b *testing.B, address, queue, upstream string) int {
	b.Helper()
	program, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), rawWorkerAddress+"="+address, rawWorkerQueue+"="+queue, rawWorkerUpstream+"="+upstream)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	require.Equal(b, "ready\n", line)
	return cmd.Process.Pid
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// runRawWorker serves until its standard input ends.
func runRawWorker(address, queue, upstream string) error {
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet()})
	if err != nil {
		return err
	}
	defer c.Close()
	session, err := connectUpstream(context.Background(), upstream)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true})
	if err := registerRaw(w, queue, session); err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func registerRaw(w worker.Worker, name string, upstream *mcp.ClientSession) error {
	service := nexus.NewService(name)
	if err := service.Register(activityOperation(echoActivity), activityOperation(callActivity)); err != nil {
		return err
	}
	w.RegisterNexusService(service)
	w.RegisterActivityWithOptions(func(_ context.Context, input converter.RawValue) (converter.RawValue, error) {
		return input, nil
	}, activity.RegisterOptions{Name: echoActivity})
	w.RegisterActivityWithOptions(func(ctx context.Context, input converter.RawValue) (*mcp.CallToolResult, error) {
		return upstream.CallTool(ctx, &mcp.CallToolParams{Name: toolRepeated, Arguments: json.RawMessage(input.Payload().GetData())})
	}, activity.RegisterOptions{Name: callActivity})
	return nil
}

// activityOperation bounds its activity as the proxy does, and as anybody would who
// wants to know of a Worker that died: the server has work with each timeout.
func activityOperation(name string) nexus.RegisterableOperation {
	return temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[converter.RawValue, converter.RawValue]{
		Name: name,
		Start: func(ctx context.Context, nc temporalnexus.NexusClient, input converter.RawValue, o temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[converter.RawValue], error) {
			return temporalnexus.StartUntypedActivity[converter.RawValue](ctx, nc, client.StartActivityOptions{
				ID: name + "-" + o.RequestID, ScheduleToCloseTimeout: time.Hour,
				StartToCloseTimeout: 10 * time.Minute, HeartbeatTimeout: 10 * time.Second,
			}, name, input)
		},
	})
}
