package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// BenchmarkReturnedWorker is how long it takes until all works again once a worker
// has returned: of a service that had none when the connector started, until its
// tools are listed and the first call is answered; of a service whose worker died,
// until a call that waited for it is answered.
func BenchmarkReturnedWorker(b *testing.B) {
	away := 12 * time.Second // the server gives up on an attempt after 10 s
	if testing.Short() {
		away = time.Second
	}
	temporal := server(b)
	var listed, called, answered []time.Duration
	for b.Loop() {
		late, lost := temporal.PrepareService(b), temporal.StartService(b)
		p := temporal.StartStdio(b, "--service", late.Name+",prefix=late", "--service", lost.Name+",prefix=lost",
			"--discovery-timeout", "2s", "--refresh-interval", "1s", "--wait-budget", "2m", "--log-level", "error").
			Speak(b, harness.Revision2025November)
		lists := func(name string) bool { return slices.Contains(p.ListTools(b).Names(b), name) }
		harness.Until(b, func() bool { return lists("lost_echo") })
		require.False(b, lists("late_echo"))
		lost.Kill()
		waiting := p.StartTool(b, "lost_echo", `{}`)
		_, early := p.Stdio.Find(away, harness.IsAnswer(waiting.ID))
		require.False(b, early)

		late.Start(b)
		began := time.Now()
		harness.Until(b, func() bool { return lists("late_echo") })
		listed = append(listed, time.Since(began))
		began = time.Now()
		require.False(b, p.Tool(b, "late_echo", `{}`).IsError)
		called = append(called, time.Since(began))

		lost.Start(b)
		began = time.Now()
		require.False(b, waiting.Answer(b).ToolResult(b).IsError)
		answered = append(answered, time.Since(began))
		p.Stdio.Kill()
	}
	b.ReportMetric(milliseconds(median(listed)), "listed-ms")
	b.ReportMetric(milliseconds(median(called)), "called-ms")
	b.ReportMetric(milliseconds(median(answered)), "answered-ms")
}
