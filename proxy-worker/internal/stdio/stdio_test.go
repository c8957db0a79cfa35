package stdio_test

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/stdio"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// quickExit: a program that is built to find data races sleeps for a second before
// it ends, where nobody says otherwise.
const quickExit = "GORACE=atexit_sleep_ms=0"

// server returns the options of a test server with faults.
func server(flags ...string) stdio.Options {
	return stdio.Options{Command: os.Args[0], Args: flags, Env: []string{serverEnv + "=1", quickExit}}
}

func options() mcpclient.Options {
	return mcpclient.Options{ClientName: "test", ClientVersion: "1"}
}

func dial(t *testing.T, so stdio.Options, o mcpclient.Options) *mcpclient.Session {
	t.Helper()
	s, err := mcpclient.Dial(t.Context(), stdio.New(so), o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// call calls a tool of the test server and decodes its result.
func call(t *testing.T, s *mcpclient.Session, name, arguments string, into any) {
	t.Helper()
	raw, err := try(t.Context(), s, name, arguments)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

func try(ctx context.Context, s *mcpclient.Session, name, arguments string) (json.RawMessage, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if arguments == "" {
		arguments = "{}"
	}
	return s.Call(ctx, mcpclient.Request{
		Method: "tools/call", Name: name, Params: json.RawMessage(`{"name":"` + name + `","arguments":` + arguments + `}`),
	})
}

func failure(t *testing.T, err error) *mcpclient.Error {
	t.Helper()
	var e *mcpclient.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestTheProcessGetsWhatWasGiven(t *testing.T) {
	t.Parallel()

	o := server("modern", "a b", "", `"quoted" $HOME`, "ü\n", `C:\A B\`)
	o.Dir = t.TempDir()
	o.Env = append(o.Env, "ONLY=this one", "EMPTY=")
	s := dial(t, o, options())
	var p struct {
		Pid, Pipes int
		Args, Env  []string
		Dir        string
	}
	call(t, s, "process", "", &p)
	require.Equal(t, append([]string{o.Command}, o.Args...), p.Args)
	require.Equal(t, o.Env, p.Env)
	require.Equal(t, o.Dir, p.Dir)
	if runtime.GOOS == "linux" {
		require.Equal(t, 3, p.Pipes, "none of this process's or of the supervisor's")
	}
	first := p.Pid
	call(t, s, "process", "", &p)
	require.Equal(t, first, p.Pid, "one process for the session")
	require.Equal(t, "2026-07-28", s.Server().ProtocolVersion)
	require.True(t, s.Server().Stateless)
	require.JSONEq(t, `{"name":"m","version":"1e2"}`, string(s.Server().Info))
	require.Equal(t, "be kind", s.Server().Instructions)
	require.True(t, s.Server().Has("tools"))
	require.False(t, s.Server().Has("prompts"))
}
