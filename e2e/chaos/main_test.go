// Package chaos_test breaks every part of the system in every way, at every moment
// of a call, under calls of every kind, and counts what became of them: none may
// be lost, none may have a wrong answer, and what must not run twice may not.
//
// The matrix is in matrix_test.go, what breaks and how in faults_test.go. What a
// call has really done is told by journals on disk, which no part of the system
// reads. All parts are the built binaries, each a process of its own.
package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

var (
	flagCalls  = flag.Int("calls", 0, "run every cell of the matrix with so many calls; 0 runs the sample of CI")
	flagCells  = flag.String("cells", "", "only the cells whose names match: target, fault, phase")
	flagBatch  = flag.Int("batch", 250, "calls under way at once in a cell")
	flagSoak   = flag.Duration("soak", 0, "how long to soak")
	flagRate   = flag.Float64("rate", 2, "calls a second of the soak")
	flagReport = flag.String("report", "", "the Markdown file whose tables are replaced")
)

// The test binary is the program of the tool service too: with this variable it is
// what serveTools says.
const toolsVariable = "E2E_CHAOS_TOOLS"

func TestMain(m *testing.M) {
	if what := os.Getenv(toolsVariable); what != "" {
		if err := serveTools(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Run(m))
}

// patience is how long a call, or a part that was broken, may take to come back. A
// killed Worker can cost its endpoint a minute: Temporal blocks an endpoint whose
// tasks got lost six times in a row.
const patience = 4 * time.Minute
