package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/conformance.md")

// runs are all that the document tells of.
func runs() (list []run) {
	for _, s := range servers {
		list = append(list, s.run)
	}
	return append(list, clientRuns...)
}

// TestDocument: the document says what the runs prove.
func TestDocument(t *testing.T) {
	t.Parallel()

	peers.Dir(t)
	const begin, end = "<!-- written by ./justw conformance -run TestDocument -update -->\n", "<!-- end -->\n"
	file := filepath.Join("..", "..", "docs", "conformance.md")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)

	var table, reasons strings.Builder
	table.WriteString("| what is tested | as | revision | required scenarios that pass | others that pass |\n|---|---|---|---|---|\n")
	for _, r := range runs() {
		required, baseline := r.requirements(t), r.baseline(t)
		scored, all := required.scored(r.side), required.all(r.side)
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", r.title, r.side, r.revision,
			passing(scored, baseline), passing(all[len(scored):], baseline))
		if len(baseline) > 0 {
			fmt.Fprintf(&reasons, "\n### %s as %s of %s\n\n", strings.ToUpper(r.title[:1])+r.title[1:], r.side, r.revision)
		}
		for i := 0; i < len(baseline); {
			var names []string
			reason := baseline[i].reason
			for ; i < len(baseline) && baseline[i].reason == reason; i++ {
				names = append(names, "`"+baseline[i].String()+"`")
			}
			fmt.Fprintf(&reasons, "- %s: %s\n", strings.Join(names, ", "), reason)
		}
	}
	want := head + begin + "\n" + table.String() + "\n## What does not pass, and why\n" + reasons.String() + "\n" + end + tail
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(data), "./justw conformance -run TestDocument -update writes it")
}

// passing counts the scenarios that no entry is about.
func passing(scenarios []string, baseline []entry) string {
	if len(scenarios) == 0 {
		return "–"
	}
	n := 0
	for _, s := range scenarios {
		if !slices.ContainsFunc(baseline, func(e entry) bool { return e.scenario == s }) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(scenarios))
}
