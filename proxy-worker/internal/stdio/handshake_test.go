package stdio_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/stretchr/testify/require"
)

func TestTheHandshakeFindsARevision(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		flags  []string
		pinned string
		want   string
	}{
		"modern":                              {flags: []string{"modern"}, want: "2026-07-28"},
		"an error on the probe":               {want: "2025-11-25"},
		"other versions supported":            {flags: []string{"unsupported"}, want: "2025-06-18"},
		"contradicts itself":                  {flags: []string{"contradicts"}, want: "2025-11-25"},
		"contradicts itself once":             {flags: []string{"contradicts-once", "modern"}, want: "2026-07-28"},
		"a result of nothing on the probe":    {flags: []string{"answers-all"}, want: "2025-11-25"},
		"the server chooses":                  {flags: []string{"version=2024-11-05"}, want: "2024-11-05"},
		"silent on the probe":                 {flags: []string{"silent-probe"}, want: "2025-11-25"},
		"exit on the probe":                   {flags: []string{"exit-on-probe"}, want: "2025-11-25"},
		"exit after an answer to the probe":   {flags: []string{"answer-and-exit"}, want: "2025-11-25"},
		"greets on stdout":                    {flags: []string{"banner"}, want: "2025-11-25"},
		"protocol on stderr":                  {flags: []string{"stderr-json"}, want: "2025-11-25"},
		"pinned to an old one":                {flags: []string{"modern"}, pinned: "2025-03-26", want: "2025-03-26"},
		"pinned to an old one, dies on probe": {flags: []string{"exit-on-probe"}, pinned: "2025-11-25", want: "2025-11-25"},
		"pinned to the modern one":            {flags: []string{"modern"}, pinned: "2026-07-28", want: "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := options()
			o.ProtocolVersion, o.ProbeTimeout = test.pinned, 2*time.Second
			s := dial(t, server(test.flags...), o)
			require.Equal(t, test.want, s.Server().ProtocolVersion)
			require.Equal(t, test.want == "2026-07-28", s.Server().Stateless)
			var heard struct{ Heard []string }
			call(t, s, "heard", "", &heard)
			if s.Server().Stateless {
				require.Empty(t, heard.Heard)
				return
			}
			require.Equal(t, []string{"notifications/initialized "}, heard.Heard, "once, before anything else")
		})
	}
}

func TestAServerWithoutInfo(t *testing.T) {
	t.Parallel()

	s := dial(t, server("no-info"), options())
	require.Nil(t, s.Server().Info)
	require.JSONEq(t, `{}`, string(s.Server().Capabilities))
	require.False(t, s.Server().Has("tools"))
}

func TestAFailedHandshakeSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		flags    []string
		pinned   string
		startup  time.Duration
		contains []string
		detail   string
	}{
		"unknown revision chosen": {flags: []string{"version=2099-01-01"}, contains: []string{`"2099-01-01"`, "2025-11-25"}},
		"other than the pinned":   {flags: []string{"version=2025-03-26"}, pinned: "2025-11-25", contains: []string{`"2025-03-26"`, "2025-11-25"}},
		"only unknown ones":       {flags: []string{"unknown-versions"}, contains: []string{`"2099-01-01"`, "2026-07-28"}},
		"pinned to the modern one": {
			pinned: "2026-07-28", contains: []string{"-32601"},
		},
		"wrong ID":        {flags: []string{"wrong-id"}, contains: []string{"initialize", "another ID"}},
		"refused":         {flags: []string{"refuse"}, contains: []string{"-32000"}},
		"silent":          {flags: []string{"silent"}, startup: 2 * time.Second, contains: []string{"startup timeout of 2s", "initialize"}},
		"silent for good": {flags: []string{"deaf", "stubborn"}, startup: 2 * time.Second, contains: []string{"startup timeout of 2s"}},
		"exit at start":   {flags: []string{"exit-at-start"}, contains: []string{"exited with code 3"}, detail: "its last lines on stderr: line 2: *** is wrong | line 3: *** is wrong | line 4: *** is wrong | line 5: *** is wrong | line 6: *** is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			pids := filepath.Join(t.TempDir(), "pids")
			so := server(append(test.flags, "pids="+pids)...)
			so.Redact = strings.NewReplacer("s3cret-value", "***").Replace
			o := options()
			o.ProtocolVersion, o.StartupTimeout = test.pinned, test.startup
			_, err := mcpclient.Dial(t.Context(), stdio.New(so), o)
			e := failure(t, err)
			require.Equal(t, mcpclient.NotSent, e.Outcome)
			for _, c := range test.contains {
				require.Contains(t, e.Message, c)
			}
			require.NotContains(t, e.Message, "s3cret")
			require.Equal(t, test.detail, e.Detail)
			requireGone(t, started(t, pids)...)
		})
	}
}

func TestACommandThatDoesNotStart(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("\x7fELF but not really"), 0o700))
	for name, test := range map[string]struct {
		o    stdio.Options
		want string
	}{
		"unknown":        {stdio.Options{Command: "no-such-command"}, `command "no-such-command": not found`},
		"empty":          {stdio.Options{}, "empty"},
		"no such file":   {stdio.Options{Command: "/no/such/file"}, `command "/no/such/file": not found`},
		"a directory":    {stdio.Options{Command: dir}, "not an executable file"},
		"not executable": {stdio.Options{Command: plain}, "not an executable file"},
		"in the path":    {stdio.Options{Command: "plain", Env: []string{"PATH=" + dir}}, "not an executable file"},
		"no program":     {stdio.Options{Command: garbage}, "exec format error"},
		"no directory":   {stdio.Options{Command: os.Args[0], Dir: dir + "/none"}, "no working directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := mcpclient.Dial(t.Context(), stdio.New(test.o), options())
			e := failure(t, err)
			require.Equal(t, mcpclient.NotSent, e.Outcome)
			require.Equal(t, "connect: the server's command does not start", e.Message, "callers and history do not see the path")
			require.Contains(t, e.Detail, test.want)
		})
	}
}

func TestACommandIsFound(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "bin", "a-server")))
	for name, o := range map[string]stdio.Options{
		"by name":     {Command: "a-server", Env: []string{"PATH=/none:" + filepath.Join(dir, "bin")}},
		"by path":     {Command: filepath.Join(dir, "bin", "a-server")},
		"from Dir":    {Command: "./bin/a-server", Dir: dir},
		"own symlink": {Command: "bin/../bin/a-server", Dir: dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o.Env = append(o.Env, serverEnv+"=1")
			require.NotEmpty(t, dial(t, o, options()).Server().ProtocolVersion)
		})
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()

	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := mcpclient.Dial(ctx, stdio.New(server("silent", "stubborn", "pids="+pids)), options())
		failed <- err
	}()
	require.Eventually(t, func() bool { return len(started(t, pids)) > 0 }, patience, 5*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	requireGone(t, started(t, pids)...)
}

// logs are the lines of a logger.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestWhatAServerPrintsIsLoggedWithoutSecrets(t *testing.T) {
	t.Parallel()

	var l logs
	o := server("banner", "stderr-json")
	o.Logger = slog.New(slog.NewJSONHandler(&l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Redact = strings.NewReplacer("s3cret-value", "***").Replace
	s := dial(t, o, options())
	s.Close()
	require.Contains(t, l.String(), "token ***")
	require.NotContains(t, l.String(), "s3cret-value")
	var line struct{ Level, Line string }
	for text := range strings.Lines(l.String()) {
		if strings.Contains(text, `"stderr"`) {
			require.NoError(t, json.Unmarshal([]byte(text), &line))
		}
	}
	require.Equal(t, "INFO", line.Level)
	require.Contains(t, line.Line, `"supportedVersions"`)
}

func TestALongLineIsCutAndTheNextIsWhole(t *testing.T) {
	t.Parallel()

	var l logs
	o := server("long-stderr", "exit-at-start")
	o.Logger = slog.New(slog.NewJSONHandler(&l, nil))
	o.Redact = strings.NewReplacer("s3cret-value", "***").Replace
	_, err := mcpclient.Dial(t.Context(), stdio.New(o), options())
	require.Error(t, err)
	require.NotContains(t, l.String(), "s3cret-")
	require.Contains(t, l.String(), `"line":"the next line"`)
	for line := range strings.Lines(l.String()) {
		require.Less(t, len(line), 9<<10)
	}
}
