package servers_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/peers"
	"github.com/stretchr/testify/require"
)

func npm(path []string, args ...string) func(*testing.T, string) peers.Command {
	return func(t *testing.T, dir string) peers.Command {
		t.Helper()
		list := []string{peers.Package(t, path...)}
		for _, arg := range args {
			if arg == "DIR" {
				arg = dir
			}
			list = append(list, arg)
		}
		c := peers.Node(t, list...)
		c.Env["MEMORY_FILE_PATH"] = filepath.Join(dir, "memory.jsonl")
		return c
	}
}

func pypi(packages, run string, args ...string) func(*testing.T, string) peers.Command {
	return func(t *testing.T, dir string) peers.Command {
		t.Helper()
		list := []string{"-c", "from " + run + " import main; main()"}
		for _, arg := range args {
			list = append(list, filepath.Clean(filepath.Join(map[bool]string{true: dir}[arg[0] == '/'], arg)))
		}
		c := peers.Python(t, packages, list...)
		// Equal commits have equal hashes.
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			c.Env["GIT_"+who+"_NAME"], c.Env["GIT_"+who+"_EMAIL"], c.Env["GIT_"+who+"_DATE"] = "e2e", "e2e@example.com", "2026-01-02T03:04:05Z"
		}
		return c
	}
}

func binary(path ...string) func(*testing.T, string) peers.Command {
	return func(t *testing.T, _ string) peers.Command {
		t.Helper()
		return peers.Command{Path: peers.Package(t, path[0]), Args: path[1:], Env: map[string]string{}}
	}
}

var everything = []string{"@modelcontextprotocol", "server-everything", "dist", "index.js"}

// servers are those of the MCP project and of others, in four languages.
var servers = []server{
	{
		name: "everything over stdio, TypeScript", command: npm(everything, "stdio"),
		reported: "mcp-servers/everything", repeatable: []string{"echo", "get-sum"}, once: []string{"toggle-simulated-logging"},
		calls: everythingCalls,
	},
	{
		name: "everything over http, TypeScript", command: npm(everything, "streamableHttp"), url: "/mcp",
		reported: "mcp-servers/everything", repeatable: []string{"echo", "get-sum"}, once: []string{"toggle-simulated-logging"},
		calls: everythingCalls,
	},
	{
		name: "filesystem, TypeScript", command: npm([]string{"@modelcontextprotocol", "server-filesystem", "dist", "index.js"}, "DIR"),
		reported: "secure-filesystem-server", repeatable: []string{"read_text_file", "write_file"}, once: []string{"edit_file", "move_file"},
		prepare: func(t *testing.T, dir string) {
			t.Helper()
			png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
			require.NoError(t, err)
			for name, data := range map[string]string{"a.txt": "é😀 <b>&\u2028\n", "dot.png": string(png), "beep.wav": "RIFF\x00\xff", "blob.bin": "\x00\xff"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
			}
		},
		calls: []request{
			tool("list_allowed_directories", ""),
			tool("read_text_file", `{"path":"DIR/a.txt"}`),
			tool("read_media_file", `{"path":"DIR/dot.png"}`),
			tool("read_media_file", `{"path":"DIR/beep.wav"}`),
			tool("read_media_file", `{"path":"DIR/blob.bin"}`),
			tool("write_file", `{"path":"DIR/b.txt","content":"one\ntwo <>&\n"}`),
			tool("edit_file", `{"path":"DIR/b.txt","edits":[{"oldText":"two","newText":"three"}]}`),
			tool("move_file", `{"source":"DIR/b.txt","destination":"DIR/c.txt"}`),
			tool("list_directory", `{"path":"DIR"}`),
			tool("directory_tree", `{"path":"DIR"}`),
			tool("read_multiple_files", `{"paths":["DIR/c.txt","DIR/none.txt"]}`),
			tool("read_text_file", `{"path":"/etc/passwd"}`), // refused
			tool("read_text_file", `{}`),
		},
	},
	{
		name: "memory, TypeScript", command: npm([]string{"@modelcontextprotocol", "server-memory", "dist", "index.js"}),
		reported: "memory-server", repeatable: []string{"read_graph", "delete_entities"}, once: []string{"create_entities"},
		calls: []request{
			tool("create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote <programs>"]},{"name":"Engine","entityType":"machine","observations":[]}]}`),
			tool("create_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`),
			tool("add_observations", `{"observations":[{"entityName":"Ada","contents":["born 1815"]}]}`),
			tool("add_observations", `{"observations":[{"entityName":"nobody","contents":["x"]}]}`),
			tool("search_nodes", `{"query":"1815"}`),
			tool("delete_relations", `{"relations":[{"from":"Ada","to":"Engine","relationType":"programs"}]}`),
			tool("read_graph", `{}`),
		},
	},
	{
		name: "git, Python", command: pypi(peers.MCP2, "mcp_server_git", "--repository", "/"),
		revision: harness.Revision2026, reported: "mcp-git", repeatable: []string{"git_status", "git_log"}, once: []string{"git_commit"},
		prepare: func(t *testing.T, dir string) {
			t.Helper()
			for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
				cmd := exec.Command("git", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("é <b>\n"), 0o600))
		},
		calls: []request{
			tool("git_status", `{"repo_path":"DIR"}`),
			tool("git_add", `{"repo_path":"DIR","files":["a.txt"]}`),
			tool("git_diff_staged", `{"repo_path":"DIR"}`),
			tool("git_commit", `{"repo_path":"DIR","message":"second <&>"}`),
			tool("git_log", `{"repo_path":"DIR"}`),
			tool("git_show", `{"repo_path":"DIR","revision":"HEAD"}`),
			tool("git_show", `{"repo_path":"DIR","revision":"nothing"}`),
			tool("git_status", `{"repo_path":"/"}`),
		},
	},
	{
		name: "time, Python", command: pypi(peers.MCP2, "mcp_server_time", "--local-timezone", "UTC"),
		revision: harness.Revision2026, reported: "mcp-time", repeatable: []string{"get_current_time", "convert_time"},
		calls: []request{
			tool("convert_time", `{"source_timezone":"Asia/Kolkata","time":"12:30","target_timezone":"America/St_Johns"}`),
			tool("convert_time", `{"source_timezone":"Nowhere","time":"12:30","target_timezone":"UTC"}`),
		},
	},
	{
		name: "sqlite, Python", command: pypi(peers.MCP1, "mcp_server_sqlite", "--db-path", "/data.db"),
		reported: "sqlite", once: []string{"read_query", "write_query"},
		calls: []request{
			tool("create_table", `{"query":"CREATE TABLE t (n INTEGER, s TEXT)"}`),
			tool("write_query", `{"query":"INSERT INTO t VALUES (9007199254740993, 'é <b>'), (-9223372036854775808, NULL)"}`),
			tool("read_query", `{"query":"SELECT * FROM t ORDER BY n"}`),
			tool("describe_table", `{"table_name":"t"}`),
			tool("read_query", `{"query":"SELECT nothing"}`),
			tool("append_insight", `{"insight":"it <works>"}`),
			{"resources/list", `{}`},
			{"resources/read", `{"uri":"memo://insights"}`},
			{"prompts/list", `{}`},
			{"prompts/get", `{"name":"mcp-demo","arguments":{"topic":"tea & cake"}}`},
		},
	},
	{
		name: "mcp-time over stdio, Go binary", command: binary("mcp-time-linux-x64/bin/mcp-time"),
		reported: "mcp-time", repeatable: []string{"add_time", "convert_timezone"}, calls: timeCalls, fickle: true,
	},
	{
		name: "mcp-time over http, Go binary", url: "/mcp",
		command:  binary("mcp-time-linux-x64/bin/mcp-time", "--transport", "stream", "--address", "http://localhost:PORT/mcp"),
		reported: "mcp-time", repeatable: []string{"add_time", "convert_timezone"}, calls: timeCalls, fickle: true,
	},
	{
		name: "leanspec, Rust binary", command: binary("@leanspec/mcp-linux-x64/leanspec-mcp"),
		reported: "leanspec-mcp", once: []string{"list_specs", "create_spec"},
		calls: []request{
			tool("get_capabilities", `{}`),
			tool("get_schema", `{}`),
			tool("get_spec", `{"id":"nothing"}`),
		},
	},
}

var everythingCalls = []request{
	tool("echo", `{"message":"é😀 <b>&\u2028\u0000"}`),
	tool("echo", `{}`),
	tool("get-sum", `{"a":0.1,"b":9007199254740991}`),
	tool("get-tiny-image", `{}`),
	tool("get-annotated-message", `{"messageType":"error","includeImage":true}`),
	tool("get-structured-content", `{"location":"Chicago"}`),
	tool("get-resource-links", `{"count":3}`),
	tool("gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}`),
	tool("gzip-file-as-resource", `{"name":"b.gz","data":"data:text/plain,hello","outputType":"resourceLink"}`),
	{"resources/read", `{"uri":"demo://resource/session/b.gz"}`}, // of this session
	tool("trigger-long-running-operation", `{"duration":2,"steps":4}`),
	{"resources/templates/list", `{}`},
	{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`},
	{"resources/read", `{"uri":"demo://resource/nothing"}`},
	{"prompts/list", `{}`},
	{"prompts/get", `{"name":"simple-prompt"}`},
	{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Zürich <CH>"}}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`},
}

var timeCalls = []request{
	tool("add_time", `{"time":"2026-01-02T03:04:05Z","duration":"36h"}`),
	tool("convert_timezone", `{"time":"2026-01-02T03:04:05Z","input_timezone":"UTC","output_timezone":"Asia/Kolkata"}`),
	tool("compare_time", `{"time_a":"2026-01-02","time_b":"2026-01-03"}`),
	tool("convert_timezone", `{"time":"never"}`),
}
