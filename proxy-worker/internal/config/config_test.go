package config_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/stretchr/testify/require"
)

var variables = map[string]string{
	"TOKEN": "env-s3cret-value", "EMPTY": "", "NAME": "weather", "DOLLAR": "a${NAME}$$b", "HOST": "example.com", "PORT": "8080",
}

func options() config.Options {
	return config.Options{
		Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		Home:   func() (string, error) { return "/home/me", nil },
	}
}

func load(t *testing.T, document string, o config.Options) *config.File {
	t.Helper()
	f, err := config.Load("-", strings.NewReader(document), o)
	require.NoError(t, err)
	return f
}

func faults(t *testing.T, document string, o config.Options) []string {
	t.Helper()
	_, err := config.Load("-", strings.NewReader(document), o)
	var wrong *config.Error
	require.ErrorAs(t, err, &wrong, document)
	require.Equal(t, "standard input", wrong.Source)
	return wrong.Faults
}

func TestEveryKey(t *testing.T) {
	t.Parallel()

	f := load(t, `{
		"mcpServers": {
			"files": {
				"command": "~/bin/server", "args": ["~", "a b", "", "é", "${TOKEN}"], "env": {"KEY": "${env:TOKEN}", "HOME": "~"}, "cwd": "~",
				"type": "stdio", "disabled": false, "prefix": "fs", "tool_filters": {"allowed": ["read|list"], "rejected": [".*_all$"]},
				"startup_timeout": 2.5, "continue_on_error": true, "service": "file-server", "protocol_version": "2025-06-18", "session": "caller",
				"max_sessions": 3, "session_idle_timeout": "1m", "inherit_env": ["PATH", "LC_ALL"], "max_message_bytes": 1048576,
				"policy": {"start_to_close_timeout": "1m", "schedule_to_close_timeout": 3600, "schedule_to_start_timeout": "10s", "heartbeat_timeout": "5s",
					"retry": {"initial_interval": "2s", "backoff_coefficient": 1.5, "maximum_interval": "1m", "maximum_attempts": 7, "non_retryable_error_types": ["unavailable"]},
					"at_most_once": true},
				"tool_policies": {"read file": {"at_most_once": false}, "write": {}}
			},
			"weather": {
				"url": "https://${HOST}/mcp?k=${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Empty": ""}
			},
			"mail": {"url": "http://${HOST}:${PORT}", "transport": "streamable-http", "auth": {"client_id": "me", "client_secret": "${TOKEN}", "scopes": ["a", "b"], "token_url": "https://id.example/token"}},
			"old": {"url": "http://old.example", "type": "sse", "transport": "sse", "protocol_version": "2024-11-05"},
			"off": {"disabled": true, "command": "${NOWHERE}"}
		}
	}`, options())
	require.Empty(t, f.Warnings)
	require.Empty(t, f.Skipped)
	require.Equal(t, []string{"off"}, f.Disabled)
	yes, no := true, false
	require.Equal(t, []config.Server{
		{
			Key: "files", Path: "mcpServers.files", Service: "file-server", Transport: config.Stdio, Command: "/home/me/bin/server",
			Stdio: mcpproxy.StdioOptions{
				Args: []string{"~", "a b", "", "é", "env-s3cret-value"}, Env: map[string]string{"KEY": "env-s3cret-value", "HOME": "~"},
				InheritEnv: []string{"PATH", "LC_ALL"}, Dir: "/home/me",
			},
			Options: mcpproxy.Options{
				ClientName: "files", ProtocolVersion: "2025-06-18", Session: mcpproxy.SessionPerCaller, MaxSessions: 3, SessionIdleTimeout: time.Minute,
				StartupTimeout: 2500 * time.Millisecond, MaxMessageBytes: 1 << 20, Prefix: "fs_",
				Allow: []*regexp.Regexp{regexp.MustCompile("read|list")}, Reject: []*regexp.Regexp{regexp.MustCompile(".*_all$")},
				Policy: mcpproxy.Policy{
					StartToCloseTimeout: time.Minute, ScheduleToCloseTimeout: time.Hour, ScheduleToStartTimeout: 10 * time.Second, HeartbeatTimeout: 5 * time.Second,
					Retry: &mcpproxy.RetryPolicy{
						InitialInterval: 2 * time.Second, BackoffCoefficient: 1.5, MaximumInterval: time.Minute, MaximumAttempts: 7,
						NonRetryableErrorTypes: []string{"unavailable"},
					},
					AtMostOnce: &yes,
				},
				ToolPolicies:    map[string]mcpproxy.Policy{"read file": {AtMostOnce: &no}, "write": {}},
				ContinueOnError: true,
			},
		},
		{
			Key: "weather", Path: "mcpServers.weather", Service: "weather", Transport: config.HTTP, URL: "https://example.com/mcp?k=env-s3cret-value",
			HTTP:    mcpproxy.HTTPOptions{Headers: map[string]string{"Authorization": "Bearer env-s3cret-value", "X-Empty": ""}},
			Options: mcpproxy.Options{ClientName: "weather"},
		},
		{
			Key: "mail", Path: "mcpServers.mail", Service: "mail", Transport: config.HTTP, URL: "http://example.com:8080",
			HTTP: mcpproxy.HTTPOptions{Auth: &mcpproxy.ClientCredentials{
				ClientID: "me", ClientSecret: "env-s3cret-value", Scopes: []string{"a", "b"}, TokenURL: "https://id.example/token",
			}},
			Options: mcpproxy.Options{ClientName: "mail"},
		},
		{
			Key: "old", Path: "mcpServers.old", Service: "old", Transport: config.SSE, URL: "http://old.example",
			HTTP: mcpproxy.HTTPOptions{SSE: true}, Options: mcpproxy.Options{ClientName: "old", ProtocolVersion: "2024-11-05"},
		},
	}, f.Servers)
}

// What one says under mcpServers and what one says without are the same, in the
// file's order.
func TestFlatMap(t *testing.T) {
	t.Parallel()

	inner := `{"z": {"command": "a"}, "a": {"url": "http://h"}, "m": {"command": "b", "inherit_env": []}}`
	flat, nested := load(t, inner, options()), load(t, `{"mcpServers": `+inner+`}`, options())
	var keys []string
	for i := range flat.Servers {
		keys = append(keys, flat.Servers[i].Key)
		require.Equal(t, "mcpServers."+flat.Servers[i].Path, nested.Servers[i].Path)
		nested.Servers[i].Path = flat.Servers[i].Path
	}
	require.Equal(t, []string{"z", "a", "m"}, keys)
	require.Equal(t, flat, nested)
	require.NotNil(t, flat.Servers[2].Stdio.InheritEnv, "an empty list inherits nothing")
	require.Nil(t, flat.Servers[0].Stdio.InheritEnv, "no list inherits the default")
}

func TestSources(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "a b%c")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "servers.json")
	require.NoError(t, os.WriteFile(path, []byte("\xef\xbb\xbf"+`{"a": {"command": "b"}}`), 0o600))
	escaped := strings.NewReplacer("%", "%25", " ", "%20").Replace(path)
	for _, source := range []string{path, "file://" + escaped, "file://localhost" + escaped} {
		f, err := config.Load(source, nil, options())
		require.NoError(t, err, source)
		require.Len(t, f.Servers, 1)
	}
	for source, want := range map[string]string{
		"":                       ": no such file or directory",
		path + ".not":            path + ".not: no such file or directory",
		dir:                      dir + ": is a directory",
		"file://":                "file://: the file:// path is empty",
		"file:///a%zz":           "file:///a%zz: the file:// path has a % that is no escape; write it %25",
		"file://" + path + "%20": "the file:// path has a % that is no escape",
	} {
		_, err := config.Load(source, nil, options())
		require.ErrorContains(t, err, want)
	}
	_, err := config.Load("-", failing{}, options())
	require.EqualError(t, err, "standard input: the pipe broke")
	_, err = config.Load("-", &endless{}, options())
	require.EqualError(t, err, "standard input: it has more than 16777216 bytes")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the pipe broke") }

type endless struct{}

func (*endless) Read(p []byte) (int, error) { return len(p), nil }

func TestSyntax(t *testing.T) {
	t.Parallel()

	for document, want := range map[string]string{
		"":                         "it is empty; want a JSON object of servers",
		" \n":                      "it is empty; want a JSON object of servers",
		"\xff\xfe{\x00":            "it is written in UTF-16; save it as UTF-8",
		"{\n  // mine\n}":          "line 2, column 3: invalid character '/' looking for beginning of object key string; comments are not JSON, take them out",
		"{\n  \"a\": {} # mine\n}": "line 2, column 11: invalid character '#' after object key:value pair; comments are not JSON, take them out",
		"{\"é\": {},\n}":           "line 2, column 1: invalid character '}' looking for beginning of object key string; the comma before it is one too many",
		"{\"a\": [1,]}":            "line 1, column 10: invalid character ']' looking for beginning of value; the comma before it is one too many",
		"{'a': 1}":                 "line 1, column 2: invalid character '\\'' looking for beginning of object key string; JSON has double quotes only",
		"{\"a\": {":                "line 1, column 8: it ends too early; a bracket, brace or quote is not closed",
		"{\"é\": \"b":              "line 1, column 9: it ends too early; a bracket, brace or quote is not closed",
		"{} {}":                    "line 1, column 4: invalid character '{' after top-level value",
		"{\"a\": \"\xff\"}":        "line 1, column 8: a byte that is no UTF-8; save the file as UTF-8",
		"[]":                       "the document: want an object of servers, but it is an array (line 1)",
		"null":                     "the document: want an object of servers, but it is null (line 1)",
		`{"mcpServers": []}`:       "mcpServers: want an object of servers, but it is an array (line 1)",
		`{}`:                       "there is no server in it",
		`{"mcpServers": {}}`:       "there is no server in it",
		strings.Repeat("[", 20000): "line 1, column 10001: invalid character '[' exceeded max depth",
		strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100): "line 1: more than 64 levels deep",
	} {
		require.Equal(t, []string{want}, faults(t, document, options()), "%.80s", document)
	}
}

// In a table of one-server files, S stands for the rest of the entry.
func TestFaults(t *testing.T) {
	t.Parallel()

	for entry, want := range map[string]string{
		`1`:                                                      "s: want an object, but it is a number (line 1)",
		`"command"`:                                              "s: want an object, but it is a string (line 1)",
		`{}`:                                                     "s: it has neither command nor url (line 1)",
		`{"disabled":1,"command":"c"}`:                           "s.disabled: want true or false, but it is a number (line 1)",
		`{"command":"c","url":"http://h"}`:                       "s: it has both command and url; want one of them (line 1)",
		`{"command":""}`:                                         "s.command: it is empty (line 1)",
		`{"command":null}`:                                       "s.command: want a string, but it is null (line 1)",
		`{"command":["c"]}`:                                      "s.command: want a string, but it is an array (line 1)",
		`{"command":"a\u0000b"}`:                                 "s.command: it has a zero byte (line 1)",
		`{"command":"c","cwd":""}`:                               "s.cwd: it is empty (line 1)",
		`{"command":"c","args":"a"}`:                             "s.args: want an array of strings, but it is a string (line 1)",
		`{"command":"c","args":["a",2]}`:                         "s.args[1]: want a string, but it is a number (line 1)",
		`{"command":"c","env":["a"]}`:                            "s.env: want an object, but it is an array (line 1)",
		`{"command":"c","env":{"A":1}}`:                          "s.env.A: want a string, but it is a number (line 1)",
		`{"command":"c","env":{"":"s3cret"}}`:                    `s.env[""]: no variable can have this name (line 1)`,
		`{"command":"c","env":{"A=B":"s3cret"}}`:                 `s.env["A=B"]: no variable can have this name (line 1)`,
		`{"command":"c","inherit_env":["A=B"]}`:                  "s.inherit_env[0]: no variable can have this name (line 1)",
		`{"command":"c","inherit_env":true}`:                     "s.inherit_env: want an array of strings, but it is a boolean (line 1)",
		`{"command":"c","headers":{"A":"s3cret"}}`:               "s.headers: only a server with a url has it (line 1)",
		`{"command":"c","auth":{}}`:                              "s.auth: only a server with a url has it (line 1)",
		`{"command":"c","type":"ftp"}`:                           `s.type: "ftp", want stdio, http (also streamable-http, streamable_http) or sse (line 1)`,
		`{"command":"c","type":"HTTP"}`:                          `s.type: "HTTP", want stdio, http (also streamable-http, streamable_http) or sse (line 1)`,
		`{"command":"c","type":"http"}`:                          "s: the transport http has a url, but there is a command (line 1)",
		`{"command":"c","transport":"sse"}`:                      "s: the transport sse has a url, but there is a command (line 1)",
		`{"url":"http://h","type":"stdio"}`:                      "s: the transport stdio has a command, but there is a url (line 1)",
		`{"url":"http://h","type":"http","transport":"sse"}`:     `s.transport: "sse" contradicts "http" under type (line 1)`,
		`{"url":""}`:                                             "s.url: it is empty (line 1)",
		`{"url":"h"}`:                                            "s.url: want an http:// or https:// URL (line 1)",
		`{"url":"ftp://me:s3cret@h"}`:                            "s.url: want an http:// or https:// URL (line 1)",
		`{"url":"http://me:s3cret@"}`:                            "s.url: the URL has no host (line 1)",
		`{"url":"http://:80"}`:                                   "s.url: the URL has no host (line 1)",
		`{"url":"http://me:s3cret@h:p\u007f"}`:                   "s.url: it is no URL (line 1)",
		`{"url":"http://h","headers":{"A":["s3cret"]}}`:          "s.headers.A: want a string, but it is an array (line 1)",
		`{"url":"http://h","headers":{"A b":"s3cret"}}`:          `s.headers["A b"]: no header can have this name (line 1)`,
		`{"url":"http://h","headers":{"":"s3cret"}}`:             `s.headers[""]: no header can have this name (line 1)`,
		`{"url":"http://h","headers":{"A":"s3cret\r\nB: c"}}`:    "s.headers.A: the value has a line break or another control character (line 1)",
		`{"url":"http://h","headers":{"A":"s3cret","a":"s3cr"}}`: `s.headers.a: the same header as "A" (line 1)`,
		`{"url":"http://h","auth":"s3cret"}`:                     "s.auth: want an object, but it is a string (line 1)",
		`{"url":"http://h","auth":{"client_id":"i"}}`:            "s.auth: client_secret or private_key is missing (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","private_key":"s3cret"}}`:                                   "s.auth.private_key: it must be a private key in PEM: PKCS #8, PKCS #1 or SEC 1, not encrypted (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","private_key":"${TOKEN}"}}`:                                 "s.auth.private_key: it must be a private key in PEM: PKCS #8, PKCS #1 or SEC 1, not encrypted (line 1)",
		`{"url":"http://h","auth":{"client_secret":"s3cret"}}`:                                                 "s.auth: client_id is missing (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","client_secret":["s3cret"]}}`:                               "s.auth.client_secret: want a string, but it is an array (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","client_secret":""}}`:                                       "s.auth.client_secret: it is empty (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","client_secret":"s","scopes":"a b"}}`:                       "s.auth.scopes: want an array of strings, but it is a string (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","client_secret":"s","token_url":"h/t"}}`:                    "s.auth.token_url: want an http:// or https:// URL (line 1)",
		`{"url":"http://h","auth":{"client_id":"i","client_secret":"s","token_url":"http://h/t"}}`:             "s.auth.token_url: it must be https, or http on this machine, without user info (line 1)",
		`{"url":"http://h","type":"sse","auth":{"client_id":"i","client_secret":"s"}}`:                         "s.auth: only Streamable HTTP has it, not the transport sse (line 1)",
		`{"url":"http://h","headers":{"authorization":"s3cret"},"auth":{"client_id":"i","client_secret":"s"}}`: `s.auth: it sets the header "authorization", which is also under headers; want one of them (line 1)`,
		`{"command":"c","service":""}`:                                                      "s.service: it is empty (line 1)",
		`{"command":"c","service":"__temporal_x"}`:                                          "s.service: names that begin with __temporal_ are Temporal's own (line 1)",
		`{"command":"c","service":"a\nb"}`:                                                  "s.service: it has a control character (line 1)",
		`{"command":"c","service":"` + strings.Repeat("s", 1001) + `"}`:                     "s.service: it is longer than 1000 bytes (line 1)",
		`{"command":"c","prefix":"a.b"}`:                                                    "s.prefix: want at most 62 letters, digits, _ and - of ASCII (line 1)",
		`{"command":"c","prefix":7}`:                                                        "s.prefix: want a string, but it is a number (line 1)",
		`{"command":"c","protocol_version":"2099-01-01"}`:                                   `s.protocol_version: "2099-01-01", want one of 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05 (line 1)`,
		`{"url":"http://h","type":"sse","protocol_version":"2025-03-26"}`:                   "s.protocol_version: the transport sse is that of 2024-11-05 (line 1)",
		`{"command":"c","session":"mine"}`:                                                  `s.session: "mine", want auto, shared, caller (line 1)`,
		`{"command":"c","max_sessions":0}`:                                                  "s.max_sessions: want a whole number from 1 to 10000 (line 1)",
		`{"command":"c","max_sessions":1.5}`:                                                "s.max_sessions: want a whole number from 1 to 10000 (line 1)",
		`{"command":"c","max_sessions":-1}`:                                                 "s.max_sessions: want a whole number from 1 to 10000 (line 1)",
		`{"command":"c","max_sessions":"8"}`:                                                "s.max_sessions: want a whole number, but it is a string (line 1)",
		`{"command":"c","max_message_bytes":1e99}`:                                          "s.max_message_bytes: want a whole number from 1 to 1099511627776 (line 1)",
		`{"command":"c","max_message_bytes":1e999999999}`:                                   "s.max_message_bytes: want a whole number from 1 to 1099511627776 (line 1)",
		`{"command":"c","startup_timeout":0}`:                                               `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":-2}`:                                              `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":1e300}`:                                           `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":1e-12}`:                                           `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":"30"}`:                                            `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":"-1s"}`:                                           `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","startup_timeout":true}`:                                            `s.startup_timeout: want a time above zero: a duration like "1m30s", or a number of seconds, but it is a boolean (line 1)`,
		`{"command":"c","session_idle_timeout":[]}`:                                         `s.session_idle_timeout: want a time above zero: a duration like "1m30s", or a number of seconds, but it is an array (line 1)`,
		`{"command":"c","continue_on_error":"yes"}`:                                         "s.continue_on_error: want true or false, but it is a string (line 1)",
		`{"command":"c","tool_filters":[]}`:                                                 "s.tool_filters: want an object, but it is an array (line 1)",
		`{"command":"c","tool_filters":{"allowed":"a"}}`:                                    "s.tool_filters.allowed: want an array of strings, but it is a string (line 1)",
		`{"command":"c","continue_on_error":true,"tool_filters":{"rejected":["(b$$"]}}`:     `s.tool_filters.rejected[0]: "(b$$" is no regular expression: missing closing ) (line 1)`,
		`{"command":"c","tool_filters":{"rejected":["a","(b"]}}`:                            `s.tool_filters.rejected[1]: "(b" is no regular expression: missing closing ) (line 1)`,
		`{"command":"c","tool_filters":{"allowed":["a)|(b"]}}`:                              `s.tool_filters.allowed[0]: "a)|(b" is no regular expression: unexpected ) (line 1)`,
		`{"command":"c","policy":[]}`:                                                       "s.policy: want an object, but it is an array (line 1)",
		`{"command":"c","policy":{"start_to_close_timeout":"soon"}}`:                        `s.policy.start_to_close_timeout: want a time above zero: a duration like "1m30s", or a number of seconds (line 1)`,
		`{"command":"c","policy":{"schedule_to_close_timeout":"1s"}}`:                       "s.policy.schedule_to_close_timeout: 1s, want at least 3s: the Temporal server cannot keep a shorter one (line 1)",
		`{"command":"c","policy":{"heartbeat_timeout":0.5}}`:                                "s.policy.heartbeat_timeout: 500ms, want at least 1s (line 1)",
		`{"command":"c","policy":{"at_most_once":0}}`:                                       "s.policy.at_most_once: want true or false, but it is a number (line 1)",
		`{"command":"c","policy":{"retry":3}}`:                                              "s.policy.retry: want an object, but it is a number (line 1)",
		`{"command":"c","policy":{"retry":{"maximum_attempts":0}}}`:                         "s.policy.retry.maximum_attempts: want a whole number from 1 to 2147483647 (line 1)",
		`{"command":"c","policy":{"retry":{"backoff_coefficient":0.5}}}`:                    "s.policy.retry.backoff_coefficient: want a number of at least 1 (line 1)",
		`{"command":"c","policy":{"retry":{"backoff_coefficient":"2"}}}`:                    "s.policy.retry.backoff_coefficient: want a number, but it is a string (line 1)",
		`{"command":"c","policy":{"retry":{"initial_interval":"1m","maximum_interval":5}}}`: "s.policy.retry.maximum_interval: 5s is less than initial_interval, 1m0s (line 1)",
		`{"command":"c","policy":{"retry":{"non_retryable_error_types":[1]}}}`:              "s.policy.retry.non_retryable_error_types[0]: want a string, but it is a number (line 1)",
		`{"command":"c","tool_policies":{"t":1}}`:                                           "s.tool_policies.t: want an object, but it is a number (line 1)",
		`{"command":"c","tool_policies":{"a b":{"retry":{"maximum_attempts":1.5}}}}`:        `s.tool_policies["a b"].retry.maximum_attempts: want a whole number from 1 to 2147483647 (line 1)`,
		`{"command":"c","args":["a","${"]}`:                                                 "s.args[1]: a ${ without its }; write $${ for the characters themselves (line 1)",
		`{"command":"c","env":{"A":"${s3 cret}"}}`:                                          "s.env.A: a ${…} that is none of ${VAR}, ${env:VAR} and ${VAR:-default}; write $${ for the characters themselves (line 1)",
		`{"command":"c","env":{"A":"${}"}}`:                                                 "s.env.A: a ${…} that is none of ${VAR}, ${env:VAR} and ${VAR:-default}; write $${ for the characters themselves (line 1)",
		`{"command":"c","env":{"A":"${A:-${B}}"}}`:                                          "s.env.A: ${A:-…}: a default cannot hold a variable (line 1)",
		`{"command":"c","env":{"A":"${NOWHERE}"}}`:                                          "s.env.A: the environment variable NOWHERE is not set (line 1)",
		`{"command":"${env:NOWHERE}"}`:                                                      "s.command: the environment variable NOWHERE is not set (line 1)",
		`{"url":"${TOKEN}"}`:                                                                "s.url: want an http:// or https:// URL (line 1)",
		`{"command":"c","session":"${TOKEN}"}`:                                              `s.session: "${TOKEN}", want auto, shared, caller (line 1)`,
		`{"command":"c","type":"${TOKEN}"}`:                                                 `s.type: "${TOKEN}", want stdio, http (also streamable-http, streamable_http) or sse (line 1)`,
		`{"command":"c","command":"d"}`:                                                     "s.command: there twice, in lines 1 and 1",
		`{"command":"c","env":{"A":"s3cret","A":"s3cret"}}`:                                 "s.env.A: there twice, in lines 1 and 1",
	} {
		got := faults(t, `{"s":`+entry+`}`, options())
		require.Equal(t, []string{want}, got, entry)
		require.NotContains(t, got[0], "s3cret")
	}
}

func TestPrivateKey(t *testing.T) {
	t.Parallel()

	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	entry := func(more string) string {
		return fmt.Sprintf(`{"s":{"url":"http://h","auth":{"client_id":"me",%s"private_key":%q}}}`, more, text)
	}
	f := load(t, entry(`"key_id":"key-1",`), options())
	require.Empty(t, f.Warnings)
	require.Equal(t, &mcpproxy.ClientCredentials{ClientID: "me", PrivateKey: key, KeyID: "key-1"}, f.Servers[0].HTTP.Auth)

	require.Equal(t, []string{"s.auth: it has both client_secret and private_key; want one of them (line 1)"},
		faults(t, entry(`"client_secret":"s3cret",`), options()))
	f = load(t, `{"s":{"url":"http://h","auth":{"client_id":"me","client_secret":"s","key_id":"key-1"}}}`, options())
	require.Equal(t, []string{"s.auth.key_id: it has no meaning without private_key"}, f.Warnings)
}

func TestOwnedHeaders(t *testing.T) {
	t.Parallel()

	for _, name := range []string{
		"Accept", "accept", "CONTENT-TYPE", "Content-Length", "Host", "Connection", "Transfer-Encoding", "Last-Event-ID",
		"Mcp-Session-Id", "MCP-Protocol-Version", "mcp-method", "Mcp-Name", "Mcp-Param-X",
		"Expect", "idempotency-key", "X-Idempotency-Key", "Proxy-Connection",
	} {
		got := faults(t, fmt.Sprintf(`{"s":{"url":"http://h","headers":{%q:"v"}}}`, name), options())
		require.Equal(t, []string{"s.headers." + name + ": the header is the transport's own; take it out (line 1)"}, got)
	}
	load(t, `{"s":{"url":"http://h","headers":{"User-Agent":"u","Cookie":"c","X-Mcp":"m"}}}`, options())
}

func TestExpansion(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"plain": "plain", "${NAME}": "weather", "${env:NAME}": "weather", "a${NAME}b${NAME}": "aweatherbweather",
		"${NAME:-x}": "weather", "${env:NOWHERE:-x}": "x", "${NOWHERE:-}": "", "${NOWHERE:-a:-b}": "a:-b", "${EMPTY:-x}": "x", "${EMPTY}": "",
		"$$": "$", "$$$$": "$$", "$${NAME}": "${NAME}", "$$${NAME}": "$weather", "${NOWHERE:-$$1}": "$1", "${NOWHERE:-$${x}": "${x",
		"$": "$", "a$": "a$", "$NAME": "$NAME", "${DOLLAR}": "a${NAME}$$b", "100 $ ${NAME}": "100 $ weather", "}": "}",
	} {
		f := load(t, fmt.Sprintf(`{"s":{"command":"c","env":{"A":%q}}}`, in), options())
		require.Equal(t, want, f.Servers[0].Stdio.Env["A"], in)
	}

	// In every string value, and in no key.
	f := load(t, `{"${NAME}":{"command":"${NAME}","cwd":"/${NAME}","service":"s-${NAME}","prefix":"${NAME}","session":"${NOWHERE:-shared}",
		"type":"${NOWHERE:-stdio}","protocol_version":"${NOWHERE:-2025-06-18}","startup_timeout":"${NOWHERE:-3s}","inherit_env":["${NAME}"],
		"env":{"${NAME}":"v"},"tool_filters":{"allowed":["${NAME}.*"]},"tool_policies":{"${NAME}":{"retry":{"non_retryable_error_types":["${NAME}"]}}}}}`, options())
	s := f.Servers[0]
	require.Equal(t, "${NAME}", s.Key)
	require.Equal(t, "weather", s.Command)
	require.Equal(t, "s-weather", s.Service)
	require.Equal(t, mcpproxy.StdioOptions{Env: map[string]string{"${NAME}": "v"}, InheritEnv: []string{"weather"}, Dir: "/weather"}, s.Stdio)
	require.Equal(t, mcpproxy.Options{
		ClientName: "${NAME}", ProtocolVersion: "2025-06-18", Session: mcpproxy.SessionShared, StartupTimeout: 3 * time.Second, Prefix: "weather_",
		Allow:        []*regexp.Regexp{regexp.MustCompile("weather.*")},
		ToolPolicies: map[string]mcpproxy.Policy{"${NAME}": {Retry: &mcpproxy.RetryPolicy{NonRetryableErrorTypes: []string{"weather"}}}},
	}, s.Options)
}

func TestHome(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{"~": "/home/me", "~/a": "/home/me/a", "~other/a": "~other/a", "a~": "a~", "/~/a": "/~/a", "${NOWHERE:-~/x}": "/home/me/x"} {
		f := load(t, fmt.Sprintf(`{"s":{"command":%q,"cwd":%q}}`, in, in), options())
		require.Equal(t, want, f.Servers[0].Command)
		require.Equal(t, want, f.Servers[0].Stdio.Dir)
	}
	o := options()
	o.Home = func() (string, error) { return "", errors.New("no") }
	require.Equal(t, []string{"s.command: ~: the home directory is not known (line 1)"}, faults(t, `{"s":{"command":"~/a"}}`, o))
}

func TestWarnings(t *testing.T) {
	t.Parallel()

	f := load(t, `{
		"$schema": "x",
		"mcpServers": {
			"a": {
				"comand": "c", "command": "c", "startupTimeout": 1, "max-sessions": 2,
				"policy": {"retry": {"max_attempts": 1}, "timeout": 2},
				"tool_filters": {"allow": [], "allowed": []},
				"tool_policies": {"any name": {"retries": 2}}
			},
			"b": {"url": "http://h", "env": {"A": "s3cret"}, "args": [], "auth": {"client_id": "i", "client_secret": "s3cret", "secret": "s3cret"}},
			"My Server": {"command": "c"}
		}
	}`, options())
	require.Equal(t, []string{
		`["$schema"]: unknown key, ignored; known: mcpServers (line 2)`,
		`mcpServers.a.comand: unknown key, ignored; the nearest known one is "command" (line 5)`,
		`mcpServers.a.startupTimeout: unknown key, ignored; the nearest known one is "startup_timeout" (line 5)`,
		`mcpServers.a.max-sessions: unknown key, ignored; the nearest known one is "max_sessions" (line 5)`,
		`mcpServers.a.tool_filters.allow: unknown key, ignored; the nearest known one is "allowed" (line 7)`,
		`mcpServers.a.tool_filters.allowed: it is empty, so every tool is allowed`,
		`mcpServers.a.policy.timeout: unknown key, ignored; the nearest known one is "start_to_close_timeout" (line 6)`,
		`mcpServers.a.policy.retry.max_attempts: unknown key, ignored; the nearest known one is "maximum_attempts" (line 6)`,
		`mcpServers.a.tool_policies["any name"].retries: unknown key, ignored; the nearest known one is "retry" (line 8)`,
		`mcpServers.b.args: it has no meaning for a server with a url`,
		`mcpServers.b.env: it has no meaning for a server with a url`,
		`mcpServers.b.auth.secret: unknown key, ignored; the nearest known one is "client_secret" (line 10)`,
		`mcpServers["My Server"].service: a name with a space, comma or = cannot be given to durable-mcp-connector; give it another service`,
	}, f.Warnings)
}

func TestFaultsComeWithTheWarnings(t *testing.T) {
	t.Parallel()

	_, err := config.Load("-", strings.NewReader(`{"a":{"comand":"x"},"b":{"command":"x","zzz":1},"b":{"command":"y"}}`), options())
	require.ErrorContains(t, err, `standard input: 2 faults
  b: there twice, in lines 1 and 1
  a: it has neither command nor url (line 1)
  warning: a.comand: unknown key, ignored; the nearest known one is "command" (line 1)
  warning: b.zzz: unknown key, ignored; known: command, `)
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()

	document := `{
  "mcpServers": {
    "a.b": {"command": 1, "max_sessions": 0},
    "c": {"url": "${NOWHERE}", "headers": {"Accept": "x", "A": "${NOWHERE2}"}},
    "c": {"command": "x"},
    "d": []
  }
}`
	_, err := config.Load("-", strings.NewReader(document), options())
	require.EqualError(t, err, `standard input: 7 faults
  mcpServers.c: there twice, in lines 4 and 5
  mcpServers["a.b"].command: want a string, but it is a number (line 3)
  mcpServers["a.b"].max_sessions: want a whole number from 1 to 10000 (line 3)
  mcpServers.c.headers.Accept: the header is the transport's own; take it out (line 4)
  mcpServers.c.url: the environment variable NOWHERE is not set (line 4)
  mcpServers.c.headers.A: the environment variable NOWHERE2 is not set (line 4)
  mcpServers.d: want an object, but it is an array (line 6)`)
	require.Equal(t, []string{
		"servers: it has neither command nor url; if this is the map of the servers, call it mcpServers (line 1)",
	}, func() []string {
		f := faults(t, `{"servers":{"a":{"command":"x"}}}`, options())
		return f
	}())
}

func TestContinueOnError(t *testing.T) {
	t.Parallel()

	document := `{
		"says-yes": {"command": "${NOWHERE}", "continue_on_error": true},
		"says-no": {"command": "c", "continue_on_error": false},
		"silent": {"command": "c", "env": {"A": "${NOWHERE}", "B": "${TOKEN}x"}, "session": "${TOKEN}"},
		"fine": {"command": "c"}
	}`
	o := options()
	require.Equal(t, []string{
		"silent.env.A: the environment variable NOWHERE is not set (line 4)",
		`silent.session: "${TOKEN}", want auto, shared, caller (line 4)`,
	}, faults(t, document, o))

	o.ContinueOnError = true
	f := load(t, document, o)
	require.Len(t, f.Servers, 2)
	require.False(t, f.Servers[0].Options.ContinueOnError)
	require.True(t, f.Servers[1].Options.ContinueOnError)
	require.Len(t, f.Skipped, 2)
	require.Equal(t, "says-yes", f.Skipped[0].Key)
	require.EqualError(t, f.Skipped[0].Err, "says-yes.command: the environment variable NOWHERE is not set (line 2)")
	require.ErrorContains(t, f.Skipped[1].Err, "; silent.session: ")

	// A server's own key wins over the default, and what is wrong in the file is wrong for all.
	for wrong, want := range map[string]string{
		`{"a":{"command":"${NOWHERE}","continue_on_error":false}}`:            "a.command: the environment variable NOWHERE is not set (line 1)",
		`{"a":{"command":"${NOWHERE}","max_sessions":0},"b":{"command":"c"}}`: "a.max_sessions: want a whole number from 1 to 10000 (line 1)",
		`{"a":[],"b":{"command":"c"}}`:                                        "a: want an object, but it is an array (line 1)",
	} {
		require.Equal(t, []string{want}, faults(t, wrong, o))
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()

	document := `{"a":{"command":"${NOWHERE}"},"b":{"command":"c"},"off":{"command":"c","disabled":true}}`
	o := options()
	o.Only = []string{"b"}
	f := load(t, document, o)
	require.Len(t, f.Servers, 1)
	require.Equal(t, "b", f.Servers[0].Key)
	o.Only = []string{"of", "off", "b"}
	require.Equal(t, []string{`there is no server "of"; the nearest known one is "off"`, `the server "off" is disabled`}, faults(t, document, o))
}

func TestPrefixes(t *testing.T) {
	t.Parallel()

	o := options()
	o.PrefixWithServerName = true
	f := load(t, `{"awslabs.foo é":{"command":"c"},"b":{"command":"c","prefix":""},"c":{"command":"c","prefix":"mine"},"d":{"command":"c","prefix":"mine"}}`, o)
	var prefixes []string
	for _, s := range f.Servers {
		prefixes = append(prefixes, s.Options.Prefix)
	}
	require.Equal(t, []string{"awslabs_foo___", "", "mine_", "mine_"}, prefixes)

	require.Equal(t, []string{"a_b: it has the same prefix as [\"a.b\"], made of its key; give one of them a prefix"},
		faults(t, `{"a.b":{"command":"c"},"a_b":{"command":"c"}}`, o))
	require.Equal(t, []string{"a: it has the same prefix as b, made of its key; give one of them a prefix"},
		faults(t, `{"b":{"command":"c","prefix":"a"},"a":{"command":"c"}}`, o))
	long := strings.Repeat("k", 63)
	require.Equal(t, []string{long + ": the key cannot be the prefix: the prefix has 64 bytes, which leaves no room for a name within 64; give it a prefix (line 1)"},
		faults(t, `{"`+long+`":{"command":"c"}}`, o))
	load(t, `{"a.b":{"command":"c"},"a_b":{"command":"c"}}`, options())
}

func TestServices(t *testing.T) {
	t.Parallel()

	require.Equal(t, []string{"b: it has the same service name as a; give one of them another service"},
		faults(t, `{"a":{"command":"c"},"b":{"command":"c","service":"a"}}`, options()))
	require.Equal(t, []string{`[""]: the key cannot be the service name: it is empty; give it a service (line 1)`},
		faults(t, `{"":{"command":"c"}}`, options()))
	load(t, `{"":{"command":"c","service":"a"},"__temporal_b":{"command":"c","service":"b"}}`, options())
}
