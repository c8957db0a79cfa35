package bench_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// side is one of the things that a benchmark compares.
type side struct {
	name string
	call func(ctx context.Context) error
	// processes are the PIDs of those whose processor time counts where several
	// callers call at once, by what it is called.
	processes map[string]int

	rounds []round
}

// round is what a side did in one turn.
type round struct {
	took  time.Duration   // all calls
	calls []time.Duration // sorted
	cpu   map[string]time.Duration
}

// compare makes rounds of calls, in which every side has a turn, for as long as the
// benchmark lasts. The callers make all calls of a side at once, each one after the
// other. The order of the turns changes, since the server slows down as it fills.
func compare(b *testing.B, callers, calls int, sides ...*side) {
	b.Helper()
	compareLonger(b, 1, callers, calls, sides...)
}

// compareLonger is compare for so many times as long.
func compareLonger(b *testing.B, times, callers, calls int, sides ...*side) {
	b.Helper()
	calls, times = brief(calls, callers), brief(times, 1)
	measure(b, times, sides, func() {
		for _, i := range rand.Perm(len(sides)) {
			sides[i].atOnce(b, callers, calls)
		}
	})
}

// compareSingle is compare for calls that come alone: the sides take turns after each
// call.
func compareSingle(b *testing.B, calls int, sides ...*side) {
	b.Helper()
	calls = brief(calls, 1)
	measure(b, 1, sides, func() { alternate(b, calls, sides) })
}

func measure(b *testing.B, times int, sides []*side, round func()) {
	b.Helper()
	if !testing.Short() {
		round()
		for _, s := range sides {
			s.rounds = nil // that was to warm up
		}
	}
	for b.Loop() {
		for range times {
			round()
		}
	}
	for _, s := range sides {
		s.report(b)
	}
}

// brief is how often something is done: as often as it says, or a few times where
// the benchmarks only have to run.
func brief(n, least int) int {
	if testing.Short() {
		return max(n/8, least)
	}
	return n
}

// alternate makes a round of single calls, each at a moment that has nothing to do
// with the call before it. The dev server finishes calls in steps of 50 ms; one that
// follows at once is in step with it, and pays for how long the call before took to
// come back.
func alternate(b *testing.B, calls int, sides []*side) {
	b.Helper()
	round := make([]round, len(sides))
	for range calls {
		for _, i := range rand.Perm(len(sides)) {
			<-time.After(rand.N(100 * time.Millisecond)) // not to wait for something
			began := time.Now()
			err := sides[i].call(b.Context())
			took := time.Since(began)
			require.NoError(b, err, sides[i].name)
			round[i].took += took
			round[i].calls = append(round[i].calls, took)
		}
	}
	for i, s := range sides {
		slices.Sort(round[i].calls)
		s.rounds = append(s.rounds, round[i])
	}
}

// atOnce makes a round of one side.
func (s *side) atOnce(b *testing.B, callers, calls int) {
	b.Helper()
	var (
		r     round
		mu    sync.Mutex
		fault error
		group sync.WaitGroup
	)
	before := s.cpu(b)
	began := time.Now()
	for range callers {
		group.Go(func() {
			for range calls / callers {
				began := time.Now()
				err := s.call(b.Context())
				took := time.Since(began)
				mu.Lock()
				r.calls = append(r.calls, took)
				if err != nil {
					fault = err
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	r.took = time.Since(began)
	r.cpu = s.cpu(b)
	for name := range r.cpu {
		r.cpu[name] -= before[name]
	}
	require.NoError(b, fault, s.name)
	slices.Sort(r.calls)
	s.rounds = append(s.rounds, r)
}

// cpu is what the side's processes have used.
func (s *side) cpu(b *testing.B) map[string]time.Duration {
	b.Helper()
	used := map[string]time.Duration{}
	for name, pid := range s.processes {
		used[name] = processorTime(b, pid)
	}
	return used
}

// report reports a side: the latency over all of its calls, its speed in the median
// round, and the processor time of its processes.
func (s *side) report(b *testing.B) {
	b.Helper()
	var all []time.Duration
	var speeds []float64
	cpu := map[string]time.Duration{}
	for _, r := range s.rounds {
		all = append(all, r.calls...)
		speeds = append(speeds, float64(len(r.calls))/r.took.Seconds())
		for name, used := range r.cpu {
			cpu[name] += used
		}
	}
	slices.Sort(all)
	b.ReportMetric(milliseconds(quantile(all, 0.5)), s.name+"-p50-ms")
	b.ReportMetric(milliseconds(quantile(all, 0.95)), s.name+"-p95-ms")
	slices.Sort(speeds)
	b.ReportMetric(middle(speeds), s.name+"-calls/s")
	for name, used := range cpu {
		if used > 0 { // the system tells
			b.ReportMetric(milliseconds(used)/float64(len(all)), s.name+"-"+name+"-ms/call")
		}
	}
}

// What a round is compared by.
func byLatency(r round) float64 { return float64(quantile(r.calls, 0.5)) }
func bySpeed(r round) float64   { return float64(len(r.calls)) / r.took.Seconds() }
func byCPU(r round) float64     { return float64(r.cpu[workerCPU]) / float64(len(r.calls)) }

// Whose processor time it is.
const (
	workerCPU   = "cpu"
	serverCPU   = "server-cpu"
	upstreamCPU = "upstream-cpu"
)

// relate reports a ratio: of a side to its baseline in the same round, the median
// over the rounds, and the least and the greatest.
func relate(b *testing.B, name string, by func(round) float64, of, to *side) {
	b.Helper()
	ratios := make([]float64, len(of.rounds))
	for i := range ratios {
		ratios[i] = by(of.rounds[i]) / by(to.rounds[i])
	}
	reportRatios(b, name, ratios)
}

func reportRatios(b *testing.B, name string, ratios []float64) {
	b.Helper()
	slices.Sort(ratios)
	b.ReportMetric(middle(ratios), name)
	b.ReportMetric(ratios[0], name+"-min")
	b.ReportMetric(ratios[len(ratios)-1], name+"-max")
}

// quantile is that of a sorted list.
func quantile[T any](sorted []T, q float64) T { return sorted[int(q*float64(len(sorted)-1)+0.5)] }

// middle is the median of a sorted list.
func middle(sorted []float64) float64 { return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2 }

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return quantile(d, 0.5)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// processorTime is what a process has used, in user and kernel mode; 0 where the
// system does not tell.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || os.IsNotExist(err) {
		return 0
	}
	require.NoError(b, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime of proc(5)
		n, err := strconv.Atoi(field)
		require.NoError(b, err)
		ticks += n
	}
	const perSecond = 100 // sysconf(_SC_CLK_TCK), which Linux has fixed
	return time.Duration(ticks) * time.Second / perSecond
}
