package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The suite's two sides: it plays the client of a server, or the server of a client.
const (
	server = "server"
	client = "client"
)

// run is a requirement set of the suite against one of the ways through the product.
type run struct {
	name     string // of the file with what does not pass, before the revision
	title    string // for the document
	side     string
	revision string
	scored   int // how many scenarios a revision requires: a frozen number
}

// patience is how long one run may take on a busy machine.
const patience = 5 * time.Minute

// suitePath is a file of the suite's package.
func suitePath(tb testing.TB, path ...string) string {
	tb.Helper()
	return peers.Package(tb, append([]string{"@modelcontextprotocol", "conformance"}, path...)...)
}

// impatient tells the scenarios with limits that are none of MCP's, which a busy
// machine may not keep: one gives a call half a second, and the tasks' want one
// that takes a second to be a task and others not to be.
func impatient(scenario string) bool {
	return scenario == "server-stateless" || strings.HasPrefix(scenario, "tasks-")
}

// test runs the suite with the arguments that say what it meets, and judges what it
// found: a subtest for each scenario.
func (r run) test(t *testing.T, args ...string) {
	t.Helper()
	r.testAgain(t, args, nil)
}

// testAgain is test with a stage that can be set up anew: what fails in an
// impatient scenario is played there again, twice at most.
func (r run) testAgain(t *testing.T, args []string, again func(t *testing.T) (args []string)) {
	t.Helper()
	baseline, required := r.baseline(t), r.requirements(t)
	require.Len(t, required.scored(r.side), r.scored)
	scenarios := required.all(r.side)
	for _, e := range baseline {
		require.Contains(t, scenarios, e.scenario, "%s names a scenario that is none of the run's", r.file())
	}
	file, err := filepath.Abs(r.file())
	require.NoError(t, err)
	found, outcome := r.play(t, append([]string{"--requirements", r.revision, "--expected-failures", file}, args...))
	require.NotEmpty(t, found, "the suite ran nothing:\n%s\n%s", outcome.Stdout, outcome.Stderr)
	repeated := false
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			checks := found[scenario]
			faults := judge(scenario, checks, baseline)
			for range 2 {
				if len(faults) == 0 || again == nil || !impatient(scenario) {
					break
				}
				t.Logf("once more, after: %s", strings.Join(faults, "\n"))
				repeated = repeated || slices.Contains(required.scored(r.side), scenario)
				anew, _ := r.play(t, append([]string{"--scenario", scenario, "--spec-version", r.revision, "--force"}, again(t)...))
				checks = anew[scenario]
				faults = judge(scenario, checks, baseline)
			}
			for _, c := range checks {
				t.Logf("%s %s: %s", c.Status, c.ID, c.Description)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
			if len(checks) == 0 {
				t.Log(section(outcome.Stdout+outcome.Stderr, scenario))
			}
		})
	}
	if !repeated { // the suite's own verdict on what is required
		require.Zero(t, outcome.Code, "the suite disagrees:\n%s", outcome.Stdout[max(0, len(outcome.Stdout)-4000):])
	}
}

// play runs the suite and reads what it found, by scenario.
func (r run) play(t *testing.T, args []string) (map[string][]check, harness.Outcome) {
	t.Helper()
	dir := t.TempDir()
	command := peers.Node(t, append([]string{suitePath(t, "dist", "index.js"), r.side, "--output-dir", dir}, args...)...)
	outcome := harness.RunLongProgram(t, patience, command.Environ(), command.Path, command.Args...)
	return results(t, dir, r.side), outcome
}

// section is what the suite printed while it ran a scenario.
func section(output, scenario string) string {
	_, rest, _ := strings.Cut(output, "Running scenario: "+scenario+" ")
	text, _, _ := strings.Cut(rest, "=== Running scenario")
	return text
}

// requirements are what a revision asks for.
type requirements struct {
	Server    []string
	Client    []string
	NotScored []struct{ Scenario, Leg string } `yaml:"not_scored"`
}

func (r run) requirements(tb testing.TB) requirements {
	tb.Helper()
	data, err := os.ReadFile(suitePath(tb, "requirements", r.revision+".yaml"))
	require.NoError(tb, err)
	var set requirements
	require.NoError(tb, yaml.Unmarshal(data, &set))
	return set
}

// scored are the scenarios that an implementation of the revision must pass.
func (s requirements) scored(side string) []string {
	if side == client {
		return s.Client
	}
	return s.Server
}

// all are the scored scenarios and those that the suite runs beside them.
func (s requirements) all(side string) []string {
	list := slices.Clone(s.scored(side))
	for _, n := range s.NotScored {
		if n.Leg == side {
			list = append(list, n.Scenario)
		}
	}
	return list
}

// check is a rule that a scenario looked at.
type check struct {
	ID           string
	Description  string
	Status       string
	ErrorMessage string
}

func (c check) failed() bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// when ends the name of a scenario's directory.
var when = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}T[0-9-]+Z$`)

// results reads what the suite left in its directory, by scenario.
func results(tb testing.TB, dir, side string) map[string][]check {
	tb.Helper()
	found := map[string][]check{}
	require.NoError(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		name = when.ReplaceAllString(filepath.ToSlash(name), "")
		if side == server {
			name = strings.TrimPrefix(name, "server-")
		}
		found[name] = append(found[name], checks...)
		return err
	}))
	return found
}

// judge says what is wrong with the result of a scenario, by the rules of the
// suite: what failed must be in the baseline, what is there must have failed.
func judge(scenario string, checks []check, baseline []entry) (faults []string) {
	failed, passed := map[string]bool{}, map[string]bool{}
	for _, c := range checks {
		if c.failed() {
			failed[c.ID] = true
		} else if c.Status == "SUCCESS" {
			passed[c.ID] = true
		}
	}
	if len(checks) == 0 { // it ended with an error of the suite's own
		if slices.ContainsFunc(baseline, func(e entry) bool { return e == entry{scenario, "", e.reason} }) {
			return nil
		}
		return []string{"the scenario did not run to its end"}
	}
	var whole bool
	known := map[string]bool{}
	for _, e := range baseline {
		if e.scenario != scenario {
			continue
		}
		whole = whole || e.check == ""
		known[e.check] = true
		if e.check == "" && len(failed) == 0 || e.check != "" && passed[e.check] && !failed[e.check] {
			faults = append(faults, fmt.Sprintf("%s passes: take it out of the baseline", e))
		}
	}
	for _, c := range checks {
		if c.failed() && !whole && !known[c.ID] {
			faults = append(faults, fmt.Sprintf("%s: %s: %s", c.ID, c.Description, cmp.Or(c.ErrorMessage, c.Status)))
		}
	}
	return faults
}
