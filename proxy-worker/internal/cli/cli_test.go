package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	"github.com/stretchr/testify/require"
)

func TestHoistCommand(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"":                               "",
		"--config f":                     "--config f",
		"check --config f":               "check --config f",
		"--config f check":               "check --config f",
		"--config check":                 "--config check",
		"--config=f check --json":        "check --config=f --json",
		"--json check --config f":        "check --json --config f",
		"--server serve --config f":      "--server serve --config f",
		"--ensure-endpoints serve":       "serve --ensure-endpoints",
		"--continue-on-error=true serve": "serve --continue-on-error=true",
		"nonsense check":                 "nonsense check",
		"--config f -- check":            "--config f -- check",
		"--config - check":               "check --config -",
		"--version check":                "check --version",
		"-":                              "-",
	} {
		args := append([]string{program}, strings.Fields(in)...)
		require.Equal(t, strings.Fields(program+" "+want), hoistCommand(args), in)
	}
}

func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()

	code, out, errOut := run(`{"my_server":{"command":"c"},"b":{"command":1}}`,
		"--config", "-", "--ensure-endpoints", "--task-queue", "", "--shutdown-timeout", "0s", "--listen", "8080",
		"--log-level", "loud", "--log-format", "xml", "--codec-endpoint", "nonsense")
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	for _, want := range []string{
		"standard input: b.command: want a string, but it is a number (line 1)", "--task-queue: it is empty", "--shutdown-timeout: 0s",
		`--listen: "8080" is no HOST:PORT`, `--log-level: "loud"`, `--log-format: "xml"`, `--codec-endpoint: "nonsense"`,
	} {
		require.Contains(t, errOut, want)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()

	for want, args := range map[string][]string{
		"--config: there is none":                           {},
		`there is no command "nonsense"`:                    {"nonsense"},
		"flag provided but not defined":                     {"--nonsense"},
		`check takes no arguments, but there is "x"`:        {"check", "--config", "-", "x"},
		`serve takes no arguments, but there is "x"`:        {"serve", "--config", "-", "x"},
		"/nowhere/at/all: no such file or directory":        {"check", "--config", "/nowhere/at/all"},
		`there is no server "c"; known: a, my_server, off`:  {"--config", "-", "--server", "c"},
		`the server "off" is disabled`:                      {"check", "--config", "-", "--server", "off"},
		`no endpoint can be named "my_server"`:              {"--config", "-", "--ensure-endpoints"},
		`give the server a service, like "my-server"`:       {"--config", "-", "--ensure-endpoints"},
		`invalid boolean value "x" for -continue-on-error`:  {"--config", "-", "--continue-on-error=x"},
		`invalid value "soon" for flag -shutdown-timeout: `: {"--config", "-", "--shutdown-timeout=soon"},
	} {
		code, out, errOut := run(`{"a":{"command":"c"},"my_server":{"command":"c"},"off":{"disabled":true}}`, args...)
		require.Equal(t, exitUsage, code, "%q: %s", args, errOut)
		require.Contains(t, errOut, want)
		require.Empty(t, out)
	}
	for document, want := range map[string]string{
		`{"a":{"disabled":true}}`: "every server of the file is disabled",
		`{"a":{"command":"${NOBODY_SETS_THIS}","continue_on_error":true}}`: "a.command: the environment variable NOBODY_SETS_THIS is not set",
		"// mine\n{}": "comments are not JSON",
	} {
		code, _, errOut := run(document, "--config", "-")
		require.Equal(t, exitUsage, code)
		require.Contains(t, errOut, want)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"check", "-h"}} {
		code, out, errOut := run("", args...)
		require.Equal(t, exitDone, code)
		require.Contains(t, out, "DURABLE_MCP_CONFIG")
		require.Contains(t, out, "DURABLE_MCP_PREFIX_WITH_SERVER_NAME")
		require.Empty(t, errOut)
	}
	_, out, _ := run("", "--help")
	for _, want := range []string{"DURABLE_MCP_ENSURE_ENDPOINTS", "DURABLE_MCP_TASK_QUEUE", `default: "durable-mcp-proxy"`, "default: 10s", "DURABLE_MCP_LISTEN"} {
		require.Contains(t, out, want)
	}
	code, out, _ := run("", "--version")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, program)
}

func TestVersion(t *testing.T) {
	t.Parallel()

	revision := debug.BuildSetting{Key: "vcs.revision", Value: "1a2b3c4d5e6f"}
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":                {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{revision}},
		"(devel)":               {Main: debug.Module{Version: "(devel)"}},
		"(devel) 1a2b3c4":       {Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, revision, {Key: "vcs.modified", Value: "false"}}},
		"(devel) 1a2b3c4 dirty": {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
	} {
		require.Equal(t, want, versionOf(&info, ""))
	}
	require.Equal(t, "v1.2.3", versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v9.9.9"))
	require.Equal(t, "v9.9.9", versionOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{revision}}, "v9.9.9"))
}

// Every flag has a variable, and wins over it.
func TestVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"b":{"command":"/nowhere/b"},"a":{"command":"/nowhere/a"},"c":{"command":"${NOBODY_SETS_THIS}"}}`), 0o600))
	t.Setenv("DURABLE_MCP_CONFIG", path)
	t.Setenv("DURABLE_MCP_SERVER", "a c")
	t.Setenv("DURABLE_MCP_CONTINUE_ON_ERROR", "true")
	code, out, errOut := run("", "check")
	require.Equal(t, exitFailed, code, errOut)
	require.Contains(t, out, "a: FAILED\n")
	require.Contains(t, out, "c: SKIPPED\n")
	require.NotContains(t, out, "b: ")
	require.Empty(t, errOut)
	_, out, _ = run("", "check", "--server", "b")
	require.Contains(t, out, "b: FAILED\n")
	require.NotContains(t, out, "a: ")
	code, _, _ = run("", "check", "--continue-on-error=false")
	require.Equal(t, exitUsage, code)
	t.Setenv("DURABLE_MCP_JSON", "1")
	_, out, _ = run("", "check")
	require.True(t, strings.HasPrefix(out, "{"), out)
}

func TestEndpointNames(t *testing.T) {
	t.Parallel()

	for service, suggested := range map[string]string{
		"my_server": "my-server", "a": "mcp-a", "1st": "mcp-1st", "-a b-": "a-b", "é": "mcp", "awslabs.foo": "awslabs-foo", "ab-": "ab",
		strings.Repeat("a", 201): strings.Repeat("a", 200), "_": "mcp",
	} {
		err := checkEndpointName(&config.Server{Path: "p", Service: service})
		require.ErrorContains(t, err, `like "`+suggested+`"`)
		require.NoError(t, checkEndpointName(&config.Server{Service: suggested}))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A report that is lost on its way out is no success.
func TestAReportThatCannotBePrinted(t *testing.T) {
	t.Parallel()

	running.Lock()
	defer running.Unlock()
	var stderr strings.Builder
	code := Main([]string{program, "check", "--config", "-"}, strings.NewReader(`{"a":{"disabled":true}}`), full{}, &stderr)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr.String(), "the report could not be printed: no space left")
}
