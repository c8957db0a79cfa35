package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Results are what benchmarks measured last, by their names without "Benchmark".
type Results map[string]Result

// Result is what one benchmark measured.
type Result struct {
	// Measured is the day.
	Measured string `json:"measured"`
	// Load is the system's load average of a minute when the run began, nil where
	// the system does not tell.
	Load    *float64           `json:"load,omitempty"`
	Machine Machine            `json:"machine"`
	Metrics map[string]float64 `json:"metrics"`
}

// Load reads a file of results. One that does not exist has none.
func Load(path string) (Results, error) {
	r := Results{}
	data, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return r, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("report: %s: %w", path, err)
	}
	return r, nil
}

// Save writes a file of results.
func (r Results) Save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// resultLine is a benchmark's result in the output of go test. Its name ends in the
// number of processors unless that is one.
var resultLine = regexp.MustCompile(`^Benchmark(\S+?)(-\d+)?\s+\d+\s+(\S.*)$`)

// Parse returns the metrics of every benchmark in the output of go test. A line that
// is no result is none of its business.
func Parse(output io.Reader) (map[string]map[string]float64, error) {
	found := map[string]map[string]float64{}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		match := resultLine.FindSubmatch(bytes.TrimSpace(lines.Bytes()))
		if match == nil {
			continue
		}
		fields := strings.Fields(string(match[3]))
		metrics := map[string]float64{}
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("report: Benchmark%s: %q is no number", match[1], fields[i])
			}
			metrics[fields[i+1]] = value
		}
		found[string(match[1])] = metrics
	}
	return found, lines.Err()
}
