package harness

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	stopMu sync.Mutex
	stops  []func()
	shares []*Process // that tests share
)

// stopLater registers what ends something that all tests of the package share.
func stopLater(stop func()) {
	stopMu.Lock()
	defer stopMu.Unlock()
	stops = append(stops, stop)
}

// shareLater registers a process of ours that tests share: a fault of it is nobody's
// test's, and fails them all.
func shareLater(p *Process) {
	stopMu.Lock()
	defer stopMu.Unlock()
	shares = append(shares, p)
}

// Run runs the tests of a package and then stops what they shared. It returns
// the exit code. Most tests wait for time to pass, so more of them run at once
// than there are processors, unless the command line says how many.
func Run(m *testing.M) (code int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "8")
	}
	defer func() {
		stopMu.Lock()
		defer stopMu.Unlock()
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		stops = nil
		for _, p := range shares {
			if fault := faultIn(p.Stderr); fault != "" {
				fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, fault)
				code = max(code, 1)
			}
		}
	}()
	return m.Run()
}

// cli is the Temporal CLI. Without one a test is skipped, and fails in CI.
func cli(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("TEMPORAL_CLI")
	if path == "" {
		const advice = "TEMPORAL_CLI names no Temporal CLI; ./justw test finds or installs one"
		if os.Getenv("CI") == "true" {
			require.FailNow(tb, advice)
		}
		tb.Skip(advice)
	}
	return path
}
