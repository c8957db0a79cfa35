package chaos_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// A figure of a process that must stay as it is: the median of the last quarter of
// the soak may be above that of the second by so much.
type figure struct {
	name   string
	unit   string
	of     func(p *harness.Process) float64
	within func(before float64) float64
}

var figures = []figure{
	{"resident memory", "MiB", func(p *harness.Process) float64 { return float64(p.RSS()) / (1 << 20) },
		func(before float64) float64 { return max(4, before/10) }},
	{"file descriptors", "", func(p *harness.Process) float64 { return float64(p.Files()) }, func(float64) float64 { return 4 }},
	{"threads", "", func(p *harness.Process) float64 { return float64(p.Threads()) }, func(float64) float64 { return 4 }},
}

// goroutinesWithin is how many more a process may have after the soak than a fresh
// one of the same state.
const goroutinesWithin = 8

// part is a process that is watched.
type part struct {
	name    string
	child   func() *harness.Process
	start   func()
	samples [][]float64 // by figure
}

// TestSoak makes calls of every kind at an even rate for as long as it is told, and
// wants none to be lost, wrong or repeated, and the processes to be in the end what
// they were after the first quarter. `./justw soak` runs it.
func TestSoak(t *testing.T) {
	t.Parallel()

	if *flagSoak == 0 {
		t.Skip("it takes an hour: ./justw soak runs it")
	}
	require.Equal(t, "linux", runtime.GOOS, "only Linux tells of its processes in /proc")

	w := newWorld(t)
	parts := []*part{
		{name: "connector", child: func() *harness.Process { return w.connector.Process }, start: func() { w.connector.Start(t) }},
		{name: "proxy", child: func() *harness.Process { return w.proxy.Process }, start: func() { w.proxy.Start(t) }},
		{name: "tool worker", child: func() *harness.Process { return w.tools.process }, start: func() { w.tools.Start(t) }},
	}
	for _, p := range parts {
		p.samples = make([][]float64, len(figures))
	}
	sum := &tally{}
	list := w.load(t, *flagSoak, func() {
		for _, p := range parts {
			for i, f := range figures {
				p.samples[i] = append(p.samples[i], f.of(p.child()))
			}
		}
	})
	w.ask(list)
	sum.add(t, w, list)

	var rows [][5]string
	flat := func(p *part, name, unit string, before, after, within float64) {
		show := func(v float64) string { return strings.TrimSpace(fmt.Sprintf("%.4g %s", v, unit)) }
		rows = append(rows, [5]string{p.name, name, show(before), show(after), show(within)})
		if after > before+within {
			t.Errorf("%s: %s: %.4g %s, then %.4g, which is above it by more than %.3g", p.name, name, before, unit, after, within)
		}
	}
	for _, p := range parts {
		for i, f := range figures {
			before, after := quarter(p.samples[i], 1), quarter(p.samples[i], 3)
			require.Positive(t, before, "%s: %s", p.name, f.name)
			flat(p, f.name, f.unit, before, after, f.within(before))
		}
	}
	for _, p := range parts {
		after := goroutines(t, p.child())
		p.start()
		for range 4 {
			w.healthy(t)
		}
		before := goroutines(t, p.child())
		p.start()
		flat(p, "goroutines, of a fresh process and in the end", "", float64(before), float64(after), goroutinesWithin)
	}
	t.Logf("%d calls; %v", sum.calls, rows)
	if *flagReport != "" {
		require.NoError(t, writeSoak(*flagReport, sum, rows))
	}
}

// load makes calls of every kind in turns for so long, and takes a sample every
// second or less often. It returns when the calls have ended.
func (w *world) load(t *testing.T, lasts time.Duration, sample func()) (list []*call) {
	t.Helper()
	tick := time.NewTicker(time.Duration(float64(time.Second) / *flagRate))
	defer tick.Stop()
	samples := time.NewTicker(max(time.Second, lasts/400))
	defer samples.Stop()
	end := time.NewTimer(lasts)
	defer end.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			c := newCall(kind(i%int(kinds)), brief, i/int(kinds)%2 == 0)
			list = append(list, c)
			revision := harness.Revisions[1+i/2%2]
			running.Go(func() { w.newClient(revision).make(c) })
		case <-samples.C:
			sample()
		case <-end.C:
			return list
		}
	}
}

// quarter is the median of the n-th quarter.
func quarter(samples []float64, n int) float64 {
	part := slices.Sorted(slices.Values(samples[len(samples)*n/4 : len(samples)*(n+1)/4]))
	return part[len(part)/2]
}

// goroutines counts those of a process that has been idle for a moment, and ends it.
func goroutines(t *testing.T, p *harness.Process) int {
	t.Helper()
	<-time.After(5 * time.Second)
	n := len(p.Goroutines(t))
	require.Positive(t, n)
	return n
}

// writeSoak replaces the soak in the report.
func writeSoak(path string, sum *tally, rows [][5]string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %d calls (%.3g a second) on %s. Lost: %d. Wrong: %d. Repeated though they must not be: %d. Unknown: %d.\n\n",
		*flagSoak, sum.calls, *flagRate, machine(), sum.lost, sum.wrong, sum.repeated, sum.unknown)
	b.WriteString("| process | figure | second quarter | last quarter | may grow by |\n|---|---|--:|--:|--:|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	writeReasons(&b, sum.reasons)
	return replace(path, "soak", b.String())
}
