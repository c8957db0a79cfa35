// Package workflow_test tests the Workflow client from outside: agents in child
// processes that die in the middle, against tool services in child processes, on
// a real Temporal dev server; and that a Workflow sees what an MCP client of the
// connector sees.
package workflow_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The test binary is the agent's program too: with this variable it is
// ADDRESS,TASK QUEUE,CACHE of its Worker.
const agentVariable = "E2E_WORKFLOW_AGENT"

func TestMain(m *testing.M) {
	if where := os.Getenv(agentVariable); where != "" {
		if err := runAgent(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Run(m))
}

func runAgent(where string) error {
	parts := strings.Split(where, ",")
	address, queue := parts[0], parts[1]
	cache, err := strconv.Atoi(parts[2])
	if err != nil {
		return err
	}
	worker.SetStickyWorkflowCacheSize(cache)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	c, err := client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(log)})
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{mcpworkflow.Interceptor()}})
	w.RegisterWorkflowWithOptions(errands, workflow.RegisterOptions{Name: "errands"})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Fprintln(os.Stdout, "ready")
	<-worker.InterruptCh()
	return nil
}

// errand is one call of an agent.
type errand struct {
	Tool string
	Args json.RawMessage `json:",omitempty"`
}

// list is what an agent has to do.
type list struct {
	Services []mcpworkflow.Service
	Errands  []errand
	// Parallel makes all calls at once.
	Parallel bool
}

// ending is how a call ended, as the agent saw it. One field is set.
type ending struct {
	Result   string // a CallToolResult, as a string: its bytes
	Protocol string // a JSON-RPC error
	Code     string // of any other failure
	Message  string
}

// errands makes calls and tells how each ended.
func errands(ctx workflow.Context, in converter.RawValue) ([]ending, error) {
	var l list
	if err := json.Unmarshal(in.Payload().GetData(), &l); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "", err)
	}
	tools := mcpworkflow.New(mcpworkflow.Options{Services: l.Services})
	futures := make([]*mcpworkflow.Future, len(l.Errands))
	endings := make([]ending, len(l.Errands))
	for i, e := range l.Errands {
		futures[i] = tools.CallAsync(ctx, e.Tool, e.Args)
		if !l.Parallel {
			_, _ = futures[i].Get(ctx)
		}
	}
	for i, f := range futures {
		r, err := f.Get(ctx)
		var failure *contract.Failure
		switch {
		case err == nil:
			endings[i].Result = string(r.JSON())
		case errors.As(err, &failure) && failure.Protocol() != nil:
			endings[i].Protocol = string(failure.Protocol().JSON())
		case errors.As(err, &failure):
			endings[i].Code, endings[i].Message = string(failure.Code), failure.Message
		default:
			return nil, err
		}
	}
	return endings, nil
}

// agent is a Worker that runs errands, in a child process.
type agent struct {
	temporal *harness.Temporal
	queue    string
	cache    int // how many Workflows the Worker keeps; with 0 each task replays its Workflow
	process  *exec.Cmd
}

func newAgent(t *testing.T, temporal *harness.Temporal) *agent {
	t.Helper()
	return newAgentOf(t, temporal, 100)
}

func newAgentOf(t *testing.T, temporal *harness.Temporal, cache int) *agent {
	t.Helper()
	a := &agent{temporal: temporal, queue: harness.Unique("agent"), cache: cache}
	a.start(t)
	return a
}

// start returns when the agent's Worker polls.
func (a *agent) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentVariable+"="+a.temporal.Address+","+a.queue+","+strconv.Itoa(a.cache))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	a.process = cmd
	t.Cleanup(func() { kill(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
}

// kill is kill -9.
func (a *agent) kill() { kill(a.process) }

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// send gives the agent a list.
func (a *agent) send(t *testing.T, l list) client.WorkflowRun {
	t.Helper()
	data, err := json.Marshal(l)
	require.NoError(t, err)
	run, err := a.temporal.Client(t).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: a.queue + harness.Unique(""), TaskQueue: a.queue, WorkflowRunTimeout: 5 * time.Minute,
		WorkflowTaskTimeout: 3 * time.Second, // a killed Worker is noticed by it
	}, "errands", resultmap.RawValue(data))
	require.NoError(t, err)
	return run
}

func (a *agent) endings(t *testing.T, run client.WorkflowRun) (endings []ending) {
	t.Helper()
	require.NoError(t, run.Get(t.Context(), &endings))
	return endings
}

func of(s *harness.Service) []mcpworkflow.Service { return []mcpworkflow.Service{{Name: s.Name}} }
