package release_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var all = flag.Bool("all", false, "run all tests of the modules alone, which takes as long as it does in the workspace")

// quick are the packages whose tests run alone each time: those that no Temporal
// server is started for.
var quick = map[string][]string{
	"tool-sdk":        {"./contract/...", "./resultmap"},
	"workflow-client": {"./mcpworkflowtest"},
	"proxy-worker":    {"./internal/cli"},
	"connector":       {"./catalog"},
}

// TestModulesAlone is each module without the workspace, with its own versions
// of everything and the sums of the release: it is tidy, and builds, tests
// included. In the workspace all modules get the newest version that one of them
// wants, and an import of a sibling works without a requirement.
func TestModulesAlone(t *testing.T) {
	t.Parallel()
	r := released(t)
	dir := r.clone(t)
	for _, module := range published {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			alone := func(args ...string) { must(t, filepath.Join(dir, module), r.env, "go", args...) }
			alone("mod", "tidy", "-diff")
			alone("build", "./...")
			alone("vet", "./...")
			if *all {
				alone("test", "-count=1", "-p", "1", "-timeout", "20m", "./...")
			} else {
				alone(append([]string{"test", "-count=1"}, quick[module]...)...)
			}
		})
	}
}

// programs are those of people who have one of the modules and no other, and
// what they print.
var programs = map[string]string{
	"tool-sdk":        "registered []\n",
	"workflow-client": "counted 7\n",
	"proxy-worker":    "now true\n",
	"connector":       "cancel_operation\nget_operation_result\nlist_operations\n",
}

// TestPrograms makes a module of each program as its author would.
func TestPrograms(t *testing.T) {
	t.Parallel()
	r := released(t)
	for _, module := range published {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			user := func(args ...string) string { return must(t, dir, r.env, "go", args...) }
			source := read(t, "testdata", module, "main.go")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
			user("mod", "init", "example.com/program")
			user("get", repository+"/"+module+"@"+r.version)
			user("mod", "tidy")
			require.Equal(t, programs[module], user("run", "."))
			for required := range strings.Lines(user("list", "-m", "-f", "{{if not .Indirect}}{{.Path}}{{end}}", "all")) {
				if ours, ok := strings.CutPrefix(strings.TrimSpace(required), repository+"/"); ok {
					require.Equal(t, module, ours, "the program names another module of ours")
				}
			}
		})
	}
}

// testOnly are modules that nobody should get who does not write tests.
var testOnly = []string{
	"github.com/stretchr/testify",
	"go.uber.org/goleak",
	"github.com/testcontainers/",
	"github.com/docker/",
	"github.com/moby/",
	"github.com/containerd/",
	"github.com/opencontainers/",
	"golang.org/x/mod",
	"testing",
}

// TestDependencies: code that is no test links nothing of tests. The Temporal SDK
// has its test environment in the package of its client, which is its own affair.
func TestDependencies(t *testing.T) {
	t.Parallel()
	r := released(t)
	dir := r.clone(t)
	for _, module := range published {
		var violations []string
		linked := 0
		out := must(t, filepath.Join(dir, module), r.env, "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
		for line := range strings.Lines(out) {
			words := strings.Fields(line)
			importer := words[0]
			linked++
			if strings.HasPrefix(importer, "go.temporal.io/sdk/") || isTestOnly(importer) || isForTests(importer) || !strings.Contains(importer, ".") {
				continue
			}
			for _, imported := range words[1:] {
				if isTestOnly(imported) || isForTests(imported) {
					violations = append(violations, importer+" imports "+imported)
				}
			}
		}
		require.Greater(t, linked, 100, "the list is not that of all dependencies")
		require.Empty(t, strings.Join(violations, "\n"), module)
	}
}

func isTestOnly(path string) bool {
	for _, p := range testOnly {
		if path == strings.TrimSuffix(p, "/") || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

// isForTests reports whether a package of ours is for the tests of others.
func isForTests(path string) bool {
	return strings.HasPrefix(path, repository+"/") && strings.HasSuffix(path, "test")
}
