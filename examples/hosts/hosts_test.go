package hosts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// entry is a server of a host's file: the union of what the hosts know.
type entry struct {
	Type    string
	Command string
	Args    []string
	Env     map[string]string
	URL     string
}

// files are the hosts' files, and where each has its servers.
var files = []struct {
	path, servers string
	http          bool
}{
	{path: "claude-code/.mcp.json", servers: "mcpServers"},
	{path: "claude-desktop/claude_desktop_config.json", servers: "mcpServers"},
	{path: "cursor/.cursor/mcp.json", servers: "mcpServers"},
	{path: "vscode/.vscode/mcp.json", servers: "servers"},
	{path: "http/claude-code/.mcp.json", servers: "mcpServers", http: true},
	{path: "http/cursor/.cursor/mcp.json", servers: "mcpServers", http: true},
	{path: "http/vscode/.vscode/mcp.json", servers: "servers", http: true},
}

// read returns the only server of a host's file. A member that no host knows is
// an error.
func read(t *testing.T, path, servers string) entry {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var file map[string]map[string]entry
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&file))
	require.Len(t, file, 1)
	require.Len(t, file[servers], 1)
	require.Contains(t, file[servers], "lucky-number")
	return file[servers]["lucky-number"]
}

// world is what the hosts' connectors need: Temporal and the tool service.
var (
	theStage *stage.Stage
	temporal *stage.Temporal
)

func TestMain(m *testing.M) { os.Exit(withWorld(m.Run)) }

func withWorld(run func() int) int {
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		return run()
	}
	var err error
	if theStage, err = stage.New(); err == nil {
		defer func() { _ = theStage.Close() }()
		err = startWorld(context.Background(), cli)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func startWorld(ctx context.Context, cli string) (err error) {
	const module = "github.com/durable-mcp/durable-mcp/"
	if err := theStage.Build(ctx, module+"connector/cmd/durable-mcp-connector", module+"examples/lucky-number"); err != nil {
		return err
	}
	if temporal, err = theStage.StartTemporal(ctx, cli); err != nil {
		return err
	}
	service, err := theStage.Start("lucky-number", theStage.Program("lucky-number"), []string{"--ensure-endpoint"}, temporal.Env())
	if err != nil {
		return err
	}
	return service.AwaitLog(ctx, "lucky-number is ready")
}

func needWorld(t *testing.T) {
	t.Helper()
	if temporal != nil {
		return
	}
	const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
	if os.Getenv("CI") == "true" {
		require.FailNow(t, how)
	}
	t.Skip(how)
}

// wantTools calls a tool as the host would.
func wantTools(t *testing.T, transport mcp.Transport) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	defer func() { _ = session.Close() }()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "lucky_number", Arguments: map[string]any{"name": "Ada"}})
	require.NoError(t, err)
	require.False(t, result.IsError)
	require.Equal(t, map[string]any{"name": "Ada", "number": 21.0}, result.StructuredContent)
}

func TestStdioFiles(t *testing.T) {
	t.Parallel()
	needWorld(t)

	for _, file := range files {
		if file.http {
			continue
		}
		t.Run(file.path, func(t *testing.T) {
			t.Parallel()
			e := read(t, file.path, file.servers)
			require.Contains(t, []string{"", "stdio"}, e.Type)
			require.Empty(t, e.URL)
			require.Equal(t, map[string]string{"TEMPORAL_ADDRESS": "localhost:7233"}, e.Env, "the dev server's own address")

			child, err := theStage.Command("connector", theStage.Program(e.Command), e.Args, temporal.Env())
			require.NoError(t, err)
			wantTools(t, &mcp.CommandTransport{Command: child.Cmd})
		})
	}
}

// TestHTTPFiles runs the connector as README.md says, on a free port.
func TestHTTPFiles(t *testing.T) {
	t.Parallel()
	needWorld(t)

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^durable-mcp-connector .*$`).FindString(string(readme))
	require.NotEmpty(t, command)
	const port = "127.0.0.1:8080"
	require.Contains(t, command, " "+port+" ")
	words := strings.Fields(strings.Replace(command, port, "127.0.0.1:0", 1))
	child, err := theStage.Start("connector", theStage.Program(words[0]), words[1:], temporal.Env())
	require.NoError(t, err)
	require.NoError(t, child.AwaitLog(t.Context(), "/mcp"))
	log, err := os.ReadFile(child.Log)
	require.NoError(t, err)
	served := regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/mcp`).FindStringSubmatch(string(log))
	require.NotNil(t, served, "%s", log)

	for _, file := range files {
		if !file.http {
			continue
		}
		e := read(t, file.path, file.servers)
		require.Contains(t, []string{"", "http"}, e.Type)
		require.Empty(t, e.Command)
		wantTools(t, &mcp.StreamableClientTransport{Endpoint: strings.Replace(e.URL, port, served[1], 1)})
	}
}

// TestEveryFileIsTold: a file that is in no table is tested nowhere, and found by
// nobody.
func TestEveryFileIsTold(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, file := range files {
		known[file.path] = true
		require.Contains(t, string(readme), "("+file.path+")")
	}
	err = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" && !d.IsDir() {
			require.True(t, known[filepath.ToSlash(path)], path)
		}
		return err
	})
	require.NoError(t, err)
}
