package chaos_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// String is the tally in a line.
func (s *tally) String() string {
	return fmt.Sprintf("%d calls: %d answered, %d unknown, %d never started, %d lost, %d wrong, %d repeated that must not be; "+
		"of those that may be %d sync, %d workflow, %d read-only ran again; recovered in %s, at most %s",
		s.calls, s.answered, s.unknown, s.notStarted, s.lost, s.wrong, s.repeated,
		s.again[syncTool], s.again[workflowTool], s.again[readOnly], seconds(s.median()), seconds(s.slowest()))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// writeMatrix replaces the matrix in the report. It is written after each cell, so
// that an interrupted run leaves what it has.
func writeMatrix(path string, done []*tally, cells int) error {
	var b strings.Builder
	var sum tally
	reasons := map[string]int{}
	for _, s := range done {
		sum.calls += s.calls
		sum.answered += s.answered
		sum.unknown += s.unknown
		sum.notStarted += s.notStarted
		sum.lost += s.lost
		sum.wrong += s.wrong
		sum.repeated += s.repeated
		for k := range kinds {
			sum.again[k] += s.again[k]
		}
		for reason, n := range s.reasons {
			reasons[reason] += n
		}
	}
	fmt.Fprintf(&b, "%d calls in %d of %d cells, up to %d under way at once in a cell, on %s. Lost: %d. Wrong: %d. Repeated though they must not be: %d.\n\n",
		sum.calls, len(done), cells, min(*flagBatch, *flagCalls), machine(), sum.lost, sum.wrong, sum.repeated)
	b.WriteString("| target | fault | phase | calls | lost | wrong | repeated: activity, not idempotent | unknown | never started | ran again: sync, workflow, read-only | recovered after: median, most |\n")
	b.WriteString("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	row := func(target, fault, phase string, s *tally, recovered string) {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d, %d | %d | %d | %d, %d, %d | %s |\n", target, fault, phase,
			s.calls, s.lost, s.wrong, s.again[activityTool], s.again[once], s.unknown, s.notStarted,
			s.again[syncTool], s.again[workflowTool], s.again[readOnly], recovered)
	}
	for _, s := range done {
		row(s.target.name, s.fault.name, s.phase.String(), s, seconds(s.median())+", "+seconds(s.slowest()))
	}
	row("all", "", "", &sum, "")
	writeReasons(&b, reasons)
	return replace(path, "matrix", b.String())
}

// writeReasons writes what the calls of unknown outcome said.
func writeReasons(b *strings.Builder, reasons map[string]int) {
	if len(reasons) == 0 {
		return
	}
	b.WriteString("\nWhat the calls of unknown outcome said, each of which ran at most once:\n\n| calls | kind and text |\n|--:|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(b, "| %d | %s |\n", reasons[reason], strings.ReplaceAll(reason, "|", `\|`))
	}
}

// machine is what the figures were measured on.
func machine() string {
	server := "Temporal"
	if out, err := exec.Command(os.Getenv("TEMPORAL_CLI"), "--version").Output(); err == nil {
		server = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%d cores, %s/%s, %s, %s with a store on disk", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), server)
}

// replace puts a text between the two comments of a name in a Markdown file.
func replace(path, name, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the %s", path, name)
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte(before+begin+text+end+after), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
