package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
)

// BenchmarkWaitingMemory is what a connector keeps for each call that waits, at
// 1,000 of them over stdio: resident memory less that of an idle connector.
func BenchmarkWaitingMemory(b *testing.B) {
	calls := brief(1000, 1)
	temporal := server(b)
	service := toolService(b, temporal)
	var perCall []float64
	for b.Loop() {
		c := temporal.StartStdio(b, "--service", service.Name, "--wait-budget", "10m", "--log-level", "error")
		c.Initialize(b, harness.Revision2025June)
		c.Answer(b, c.Request(b, "tools/list", `{}`))
		c.Answer(b, c.Request(b, "tools/call", `{"name":"echo","arguments":{}}`))
		idle := c.RSS()
		require.NotZero(b, idle, "this system does not tell the memory of a process")
		line := harness.Unique("waiting")
		for range calls {
			c.Request(b, "tools/call", fmt.Sprintf(`{"name":"slow","arguments":{"seconds":600,"line":%q}}`, line))
		}
		// Each call that runs has had its effect.
		require.Eventually(b, func() bool { return service.Effects(b, line) == calls }, 5*time.Minute, time.Second)
		perCall = append(perCall, float64(c.RSS()-idle)/float64(calls)/1024)
		c.Kill()
		terminate(b, temporal.Client(b))
	}
	b.ReportMetric(perCall[len(perCall)/2], "KiB/call")
}

// terminate ends what the calls left running, so that it costs the next
// benchmark nothing.
func terminate(b *testing.B, c client.Client) {
	b.Helper()
	list, err := c.ListNexusOperations(b.Context(), client.ListNexusOperationsOptions{Query: `ExecutionStatus = "Running"`})
	require.NoError(b, err)
	for m, err := range list.Results {
		require.NoError(b, err)
		h := c.GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: m.OperationID})
		_ = h.Terminate(b.Context(), client.TerminateNexusOperationOptions{})
	}
}

// BenchmarkToolsList is a warm tools/list of 1,000 tools over 20 services.
func BenchmarkToolsList(b *testing.B) {
	const each = 50
	services := brief(20, 2)
	temporal := server(b)
	queue := harness.Unique("many")
	w := worker.New(temporal.Client(b), queue, worker.Options{})
	var args []string
	for i := range services {
		name := fmt.Sprintf("%s-%d", queue, i)
		temporal.CreateEndpoint(b, name, queue)
		w.RegisterNexusService(manyTools(b, name, i, each))
		args = append(args, "--service", name)
	}
	require.NoError(b, w.Start())
	b.Cleanup(w.Stop)
	list := lister(b, append(args, "--temporal-address", temporal.Address, "--poll-tools", "off", "--log-level", "error")...)
	require.Eventually(b, func() bool { return bytes.Count(list(), []byte(`"inputSchema"`)) == services*each }, time.Minute, time.Second)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		list()
		took = append(took, time.Since(began))
	}
	b.ReportMetric(milliseconds(median(took)), "p50-ms")
}

// lister starts a connector and returns what asks it for its tools. It does not
// parse the answer, which would take longer than to give it.
func lister(b *testing.B, args ...string) (list func() []byte) {
	b.Helper()
	cmd := exec.Command(harness.Program(b, "durable-mcp-connector"), args...)
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReaderSize(out, 1<<20)
	request := func(line string) []byte {
		_, err := io.WriteString(in, line+"\n")
		require.NoError(b, err)
		for {
			answer, err := lines.ReadBytes('\n')
			require.NoError(b, err)
			if bytes.Contains(answer, []byte(`"id":`)) {
				return answer
			}
		}
	}
	request(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	return func() []byte { return request(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`) }
}

func manyTools(b *testing.B, name string, service, n int) *nexus.Service {
	b.Helper()
	tools := make([]string, n)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool_%d_%d","title":"Tool %d","description":"Does what tool number %d of its service does, in the order in which it is asked.",`+
			`"inputSchema":{"type":"object","properties":{"key":{"type":"string","description":"What to look up."},"limit":{"type":"integer","minimum":1}},"required":["key"]},`+
			`"annotations":{"readOnlyHint":true}}`, service, i, i, i)
	}
	manifest := []byte(`{"tools":[` + strings.Join(tools, ",") + `],"_meta":{"io.temporal/contract":1}}`)
	s := nexus.NewService(name)
	require.NoError(b, s.Register(nexus.NewSyncOperation("list_tools",
		func(context.Context, converter.RawValue, nexus.StartOperationOptions) (converter.RawValue, error) {
			return resultmap.RawValue(manifest), nil
		})))
	return s
}

// BenchmarkStart is from the start of the process to its first tools/list
// answer over stdio.
func BenchmarkStart(b *testing.B) {
	temporal := server(b)
	service := toolService(b, temporal)
	harness.Program(b, "durable-mcp-connector") // built before the clock runs
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		c := temporal.StartStdio(b, "--service", service.Name, "--log-level", "error")
		c.Initialize(b, harness.Revision2025June)
		answer := c.Answer(b, c.Request(b, "tools/list", `{}`))
		took = append(took, time.Since(began))
		require.Contains(b, string(answer.Raw), `"echo"`)
		c.Kill()
	}
	b.ReportMetric(milliseconds(median(took)), "p50-ms")
}
