package harness

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs are what the tests run, by the name of their binary.
var programs = map[string]string{
	"durable-mcp-connector": "./connector/cmd/durable-mcp-connector",
	"durable-mcp-proxy":     "./proxy-worker/cmd/durable-mcp-proxy",
	"toolservice":           "./e2e/toolservice",
	"upstream":              "./e2e/upstream/cmd/upstream",
}

// build builds every program once, with the race detector where the tests have it.
var build = sync.OnceValues(func() (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "durable-mcp-e2e-")
	if err != nil {
		return "", err
	}
	stopLater(func() { _ = os.RemoveAll(dir) })
	return dir, goBuild(root, dir, slices.Collect(maps.Values(programs))...)
})

// goBuild builds packages from the root into a directory.
func goBuild(root, dir string, packages ...string) error {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if Race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", packages, err, out)
	}
	return nil
}

// Build builds a program that the tests of one package alone run, and returns its
// path. The package is a path as go build takes it, at the root.
func Build(tb testing.TB, pkg string) string {
	tb.Helper()
	root, err := root()
	require.NoError(tb, err)
	dir, err := build()
	require.NoError(tb, err)
	require.NoError(tb, goBuild(root, dir, pkg))
	return filepath.Join(dir, path.Base(pkg))
}

// root is the directory of go.work.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("there is no go.work above the tests")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// Program returns the path of a binary.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := build()
	require.NoError(tb, err)
	return filepath.Join(dir, name)
}
