package chaos_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleCalls is what CI makes in each cell of its sample: four of each kind.
const sampleCalls = 4 * int(kinds)

// TestMatrix breaks every part in every way while calls of every kind are made.
// Without flags it runs a sample that has every target with every fault and both
// with every phase; `./justw chaos` runs all of it with many calls a cell.
func TestMatrix(t *testing.T) {
	t.Parallel()

	match, err := regexp.Compile(*flagCells)
	require.NoError(t, err)
	calls, cells := sampleCalls, matrix(*flagCalls == 0, match)
	require.NotEmpty(t, cells)
	if *flagCalls > 0 {
		calls = *flagCalls
	}
	w := newWorld(t)
	var done []*tally
	for _, c := range cells {
		began := time.Now()
		sum := w.run(t, c, calls, *flagBatch)
		done = append(done, sum)
		t.Logf("%v: %s (%v)", c, sum, time.Since(began).Round(100*time.Millisecond))
		if *flagReport != "" {
			require.NoError(t, writeMatrix(*flagReport, done, len(cells)))
		}
	}
	w.ledger.read(t)
	for _, sum := range done {
		sum.lookAgain(t, w)
	}
}
