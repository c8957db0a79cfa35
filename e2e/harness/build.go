package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if raceEnabled {
		args = append(args, "-race")
	}
	for _, path := range programs {
		args = append(args, path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %v: %w\n%s", args, err, out)
	}
	return dir, nil
})

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
