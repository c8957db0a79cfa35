package cli

// Internal tests: tables of what the command line makes of single words.

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
)

func TestParseService(t *testing.T) {
	t.Parallel()

	for value, want := range map[string]catalog.Service{
		"tools":                   {Name: "tools"},
		"tools=endpoint":          {Name: "tools", Endpoint: "endpoint"},
		"tools,prefix=p":          {Name: "tools", Prefix: "p"},
		"tools=endpoint,prefix=p": {Name: "tools", Endpoint: "endpoint", Prefix: "p"},
		"a.b/c=d-e,prefix=f_":     {Name: "a.b/c", Endpoint: "d-e", Prefix: "f_"},
		"tools=a=b":               {Name: "tools", Endpoint: "a=b"},
		"tools,prefix=":           {Name: "tools"},
	} {
		got, err := parseService(value)
		require.NoError(t, err, value)
		require.Equal(t, want, got, value)
	}
	for value, want := range map[string]string{
		"":                "the name is empty",
		"=endpoint":       "the name is empty",
		",prefix=p":       "the name is empty",
		"tools=":          "the endpoint is empty",
		"tools=,prefix=p": "the endpoint is empty",
		"tools,prefx=p":   `there is no option "prefx"`,
		"tools,":          `there is no option ""`,
	} {
		_, err := parseService(value)
		require.ErrorContains(t, err, want, value)
	}
}

func TestHoistFlags(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"":                             "",
		"--service a":                  "--service a",
		"serve --service a":            "serve --service a",
		"--service a serve":            "serve --service a",
		"--service a --transport http": "--service a --transport http",
		"--service call":               "--service call",
		"--service=call tools":         "tools --service=call",
		"--service call tools --json":  "tools --service call --json",
		"call t {} --json --wait 1s":   "call --json --wait 1s -- t {}",
		"call t --json {}":             "call --json -- t {}",
		"call --service a t -":         "call --service a -- t -",
		"call t -- --json":             "call -- t --json",
		"call --json=false t":          "call --json=false -- t",
		"call call {}":                 "call -- call {}",
		"call t --help":                "call --help -- t",
		"call t --wait":                "call --wait -- t",
		"--log-level debug call t":     "call --log-level debug -- t",
		"nonsense --service a":         "--service a -- nonsense",
		"--version":                    "--version",
		"--version tools":              "--version tools",
		"tools -v":                     "tools -v",
	} {
		args := append([]string{"program"}, strings.Fields(in)...)
		require.Equal(t, strings.Fields("program "+want), hoistFlags(args), in)
	}
}

// running is held while the program runs: the flag library keeps state of its own.
var running sync.Mutex

// run runs the program.
func run(args ...string) (code int, out, errOut string) {
	running.Lock()
	defer running.Unlock()
	var stdout, stderr bytes.Buffer
	code = Main(append([]string{"durable-mcp-connector"}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()

	code, out, errOut := run("--service", "=a", "--service", "b,c=d", "--transport", "ftp", "--tasks", "on", "--poll-tools", "yes",
		"--wait-budget", "0s", "--refresh-interval", "-1s", "--task-after", "0s", "--progress-interval", "0s", "--shutdown-timeout", "0s", "--discovery-timeout", "0s",
		"--log-level", "loud", "--log-format", "xml")
	require.Equal(t, exitUsage, code)
	require.Empty(t, out)
	for _, want := range []string{
		`--service: "=a": the name is empty`, `--service: "b,c=d": there is no option "c"`,
		`--transport: "ftp", want stdio or http`, `--tasks: "on", want auto or off`, `--poll-tools: "yes", want on or off`,
		"--wait-budget: 0s", "--refresh-interval: -1s", "--task-after: 0s", "--progress-interval: 0s", "--shutdown-timeout: 0s", "--discovery-timeout: 0s",
		`--log-level: "loud"`, `--log-format: "xml"`,
	} {
		require.Contains(t, errOut, want)
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()

	for want, args := range map[string][]string{
		"--service: there is none":                 {},
		`there is no command "nonsense"`:           {"nonsense"},
		"flag provided but not defined":            {"--nonsense"},
		`tools takes no arguments`:                 {"tools", "--service", "a", "b"},
		"call takes TOOL [ARGS]":                   {"call", "--service", "a"},
		"ARGS: arguments: an array":                {"call", "--service", "a", "t", "[]"},
		"ARGS: open":                               {"call", "--service", "a", "t", "@/nowhere/at/all"},
		"--wait: -1s":                              {"call", "--service", "a", "--wait", "-1s", "t"},
		`is named twice`:                           {"--service", "a", "--service", "a=a"},
		"is no HOST:PORT":                          {"--service", "a", "--transport", "http", "--listen", "8080"},
		"is reachable from other machines":         {"--service", "a", "--transport", "http", "--listen", ":8080"},
		`"0.0.0.0:80" is reachable from other`:     {"--service", "a", "--transport", "http", "--addr", "0.0.0.0:80"},
		`--service: "a,b": there is no option "b"`: {"doctor", "--service", "a,b"},
	} {
		code, out, errOut := run(args...)
		require.Equal(t, exitUsage, code, "%q: %s", args, errOut)
		require.Contains(t, errOut, want)
		require.Empty(t, out)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"call", "--help"}, {"tools", "-h"}, {"doctor", "--help"}} {
		code, out, errOut := run(args...)
		require.Equal(t, exitDone, code)
		require.Contains(t, out, "DURABLE_MCP_SERVICE")
		require.Empty(t, errOut)
	}
	code, out, _ := run("--version")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, "durable-mcp-connector")
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

// A flag wins over the environment, the environment over the file.
func TestPrecedence(t *testing.T) {
	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[]}`, nil)
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte("[profile.default]\naddress = \""+temporal.Address()+"\"\nnamespace = \"of-the-file\"\n"+
		"[profile.other]\naddress = \""+temporal.Address()+"\"\nnamespace = \"of-the-profile\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
	t.Setenv("DURABLE_MCP_SERVICE", "tools")
	t.Setenv("DURABLE_MCP_DISCOVERY_TIMEOUT", "20ms")

	namespace := func(args ...string) string {
		_, out, errOut := run(append([]string{"doctor"}, args...)...)
		require.Empty(t, errOut)
		for line := range strings.Lines(out) {
			if _, name, ok := strings.Cut(line, "namespace: "); ok {
				return strings.TrimSpace(name)
			}
		}
		require.Fail(t, "no namespace", out)
		return ""
	}
	require.Equal(t, "of-the-file", namespace())
	require.Equal(t, "of-the-profile", namespace("--temporal-profile", "other"))
	t.Setenv("TEMPORAL_NAMESPACE", "of-the-variable")
	require.Equal(t, "of-the-variable", namespace())
	t.Setenv("DURABLE_MCP_TEMPORAL_NAMESPACE", "of-our-variable")
	require.Equal(t, "of-our-variable", namespace())
	require.Equal(t, "of-the-flag", namespace("--temporal-namespace", "of-the-flag"))

	// A repeatable flag replaces its variable.
	t.Setenv("DURABLE_MCP_SERVICE", "tools other")
	_, out, _ := run("tools")
	require.Contains(t, out, "tools (endpoint tools)\n")
	require.Contains(t, out, "other (endpoint other)\n")
	_, out, _ = run("tools", "--service", "tools=elsewhere")
	require.Contains(t, out, "tools (endpoint elsewhere)\n")
	require.NotContains(t, out, "other")
}

func TestTemporalSettingsThatAreWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte("address ="), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
	code, _, errOut := run("tools", "--service", "a", "--log-level", "loud")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errOut, "the Temporal settings: ")
	require.Contains(t, errOut, `--log-level: "loud"`)
}

// A remote codec keeps its keys by namespace.
func TestTheCodecIsToldTheNamespace(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[]}`, nil)
	var mu sync.Mutex
	var asked []string
	handler := converter.NewPayloadCodecHTTPHandler()
	codec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Header.Get("X-Namespace"))
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(codec.Close)
	for want, args := range map[string][]string{"default": nil, "mine": {"--temporal-namespace", "mine"}} {
		code, out, errOut := run(append([]string{"tools", "--service", "tools", "--temporal-address", temporal.Address(), "--codec-endpoint", codec.URL}, args...)...)
		require.Equal(t, exitDone, code, errOut)
		require.Contains(t, out, "tools (endpoint tools)")
		mu.Lock()
		require.NotEmpty(t, asked)
		for _, namespace := range asked {
			require.Equal(t, want, namespace)
		}
		asked = nil
		mu.Unlock()
	}
}

// What a codec does is not told as Temporal's doing: a call that it fails was not sent.
func TestACodecThatBreaksOff(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, nil)
	handler := converter.NewPayloadCodecHTTPHandler()
	codec := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString([]byte(`{"n":1}`)))) {
			w.Header().Set("Content-Length", "100")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(codec.Close)
	code, out, _ := run("call", "--service", "tools", "--temporal-address", temporal.Address(), "--codec-endpoint", codec.URL, "echo", `{"n":1}`)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "The call cannot be sent to Temporal")
	require.NotContains(t, out, "recorded")
	require.Empty(t, temporal.Operations("tools"))
}
