package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/bench/report"
	"github.com/stretchr/testify/require"
)

var root = filepath.Join("..", "..", "..")

// TestDocumentsAreMadeOfTheResults: who edits docs/benchmarks.md by hand, or the
// template and not the document, is told to run ./justw bench -bench NONE.
func TestDocumentsAreMadeOfTheResults(t *testing.T) {
	t.Parallel()

	results, err := report.Load(filepath.Join(root, report.ResultsFile))
	require.NoError(t, err)
	require.NotEmpty(t, results)
	documents, err := results.Documents()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{report.DocumentFile, report.CallsChart, report.GrowthChart}, slices.Collect(maps.Keys(documents)))
	for name, want := range documents {
		have, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s: run ./justw bench -bench NONE", name)
	}
}

const output = `goos: linux
cpu: AMD EPYC
BenchmarkSyncCall/in-turn
BenchmarkSyncCall/in-turn-2        	     238	 100003534 ns/op	        51.81 connector-p50-ms	         1.073 ratio	        48.28 raw-p50-ms
BenchmarkGrowth/callers=16-2         	       3	         1e+03 raw-sync-calls/s
BenchmarkOneProcessor      	 1	 5 ns/op
--- SKIP: BenchmarkSkipped
ok  	github.com/durable-mcp/durable-mcp/e2e/bench	9.3s
`

func TestParse(t *testing.T) {
	t.Parallel()

	found, err := report.Parse(strings.NewReader(output))
	require.NoError(t, err)
	require.Equal(t, map[string]map[string]float64{
		"SyncCall/in-turn":  {"ns/op": 100003534, "connector-p50-ms": 51.81, "ratio": 1.073, "raw-p50-ms": 48.28},
		"Growth/callers=16": {"raw-sync-calls/s": 1000},
		"OneProcessor":      {"ns/op": 5},
	}, found)

	_, err = report.Parse(strings.NewReader("BenchmarkX-2 1 many ns/op"))
	require.ErrorContains(t, err, `BenchmarkX: "many" is no number`)
}

func machine(cpu string) report.Machine {
	return report.Machine{CPU: cpu, Cores: 2, OS: "Linux", Go: "1.26", CLI: "1.9.1", Server: "1.32.0"}
}

// TestDocumentSaysWhatItKnows: a figure has its unit and its spread, a bound that is
// missed says so, a benchmark that never ran is a dash, and one of another machine is
// named.
func TestDocumentSaysWhatItKnows(t *testing.T) {
	t.Parallel()

	load := 0.25
	results := report.Results{
		"SyncCall/in-turn": {Measured: "2026-11-30", Load: &load, Machine: machine("fast"), Metrics: map[string]float64{
			"raw-p50-ms": 48.28, "connector-p50-ms": 51.81, "ratio": 1.073, "ratio-min": 1.05, "ratio-max": 1.1,
		}},
		"ConcurrentCalls": {Measured: "2026-11-30", Load: &load, Machine: machine("fast"), Metrics: map[string]float64{
			"raw-calls/s": 1234.5, "connector-calls/s": 1172.9, "ratio": 0.9477,
		}},
		"ToolsList": {Measured: "2026-11-29", Machine: machine("slow"), Metrics: map[string]float64{"p50-ms": 5.4}},
	}
	documents, err := results.Documents()
	require.NoError(t, err)
	require.Len(t, documents, 1, "there is nothing to draw")
	text := string(documents[report.DocumentFile])
	for _, want := range []string{
		"| a sync call, one after the other, p50 | 48.3 ms | 51.8 ms | 1.07 (1.05–1.10) | 1.05, **missed** |",
		"| sync calls, 32 callers | 1,234 calls/s | 1,173 calls/s | 0.95 | 0.95 |",
		"| warm `tools/list` of 1,000 tools over 20 services, p50 | 5.40 ms | 5 ms, **missed** |",
		"| history of a sync call | – | – | – | 1.10 |",
		"Measured on 2 cores of fast, Linux, Go 1.26, Temporal CLI 1.9.1 (server 1.32.0, in-memory store), 2026-11-30, at a load average of 0.2.",
		"In another run, on 2 cores of slow, Linux, Go 1.26, Temporal CLI 1.9.1 (server 1.32.0, in-memory store), 2026-11-29: ToolsList.",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, ".svg")
	require.NotContains(t, text, "<no value>")
}

// TestChartsAreXML draws what there is, also where a side is missing.
func TestChartsAreXML(t *testing.T) {
	t.Parallel()

	metrics := map[string]float64{
		"raw-sync-calls/s": 20, "raw-sync-p50-ms": 48, "connector-calls/s": 19, "connector-p50-ms": 51,
		"direct-p50-ms": 0.5, "direct-calls/s": 3000, "durable-p50-ms": 100, "durable-calls/s": 35,
	}
	results := report.Results{}
	for _, name := range []string{"GatewayCall", "ConcurrentGatewayCalls", "Growth/callers=1", "Growth/callers=64"} {
		results[name] = report.Result{Metrics: metrics}
	}
	documents, err := results.Documents()
	require.NoError(t, err)
	for _, name := range []string{report.CallsChart, report.GrowthChart} {
		chart := string(documents[name])
		require.NotEmpty(t, chart)
		require.NotContains(t, chart, "NaN")
		require.NotContains(t, chart, "Inf")
		var texts []string
		for decoder := xml.NewDecoder(strings.NewReader(chart)); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if data, ok := token.(xml.CharData); ok {
				texts = append(texts, string(data))
			}
		}
		require.Contains(t, strings.Join(texts, "\n"), "calls per second")
	}
	require.Contains(t, string(documents[report.CallsChart]), "0.50 ms")
}
