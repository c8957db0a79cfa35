package peers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The directories of Python packages: each has its own MCP SDK.
const (
	MCP1 = "mcp-1"
	MCP2 = "mcp-2"
)

// Command is how a peer is started.
type Command struct {
	Path string
	Args []string
	// Env is what the peer needs beyond the tests' environment.
	Env map[string]string
}

// Environ is Env as a process takes it.
func (c Command) Environ() []string {
	var list []string
	for name, value := range c.Env {
		list = append(list, name+"="+value)
	}
	return list
}

// Dir is the directory of the installed peers. Without one the test is skipped,
// and fails in CI.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("MCP_PEERS")
	if dir == "" {
		const advice = "MCP_PEERS names no installed peers; ./justw peers and ./justw conformance install them and run these tests"
		if os.Getenv("CI") == "true" {
			require.FailNow(tb, advice)
		}
		tb.Skip(advice)
	}
	return dir
}

// Python runs Python with the packages of a directory: [MCP1] or [MCP2].
func Python(tb testing.TB, packages string, args ...string) Command {
	tb.Helper()
	dir := Dir(tb)
	return Command{Path: filepath.Join(dir, "bin", "python"), Args: args, Env: map[string]string{
		"PYTHONPATH": filepath.Join(dir, packages), "PYTHONDONTWRITEBYTECODE": "1",
	}}
}

// Node runs Node, whose scripts may require what is installed.
func Node(tb testing.TB, args ...string) Command {
	tb.Helper()
	dir := Dir(tb)
	return Command{Path: filepath.Join(dir, "bin", "node"), Args: args, Env: map[string]string{
		"NODE_PATH": filepath.Join(dir, "node_modules"),
	}}
}

// Package is a path inside a package for Node.
func Package(tb testing.TB, path ...string) string {
	tb.Helper()
	return filepath.Join(append([]string{Dir(tb), "node_modules"}, path...)...)
}
