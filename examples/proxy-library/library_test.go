package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/stretchr/testify/require"
)

// world is what README.md starts, on free ports.
type world struct {
	*stage.Stage

	temporal  *stage.Temporal
	weather   *stage.Child
	address   string // of the weather server
	tokenFile string
}

var theWorld *world

func TestMain(m *testing.M) { os.Exit(withWorld(m.Run)) }

func withWorld(run func() int) int {
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		return run()
	}
	st, err := stage.New()
	if err == nil {
		defer func() { _ = st.Close() }()
		theWorld = &world{Stage: st, address: "127.0.0.1:0", tokenFile: filepath.Join(st.Dir(), "token")}
		err = theWorld.start(context.Background(), cli)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func (w *world) start(ctx context.Context, cli string) (err error) {
	const module = "github.com/durable-mcp/durable-mcp/"
	err = w.Build(ctx, module+"connector/cmd/durable-mcp-connector", module+"examples/weather-proxy/weather-server",
		module+"examples/proxy-library", module+"examples/proxy-library/almanac")
	if err != nil {
		return err
	}
	if w.temporal, err = w.StartTemporal(ctx, cli); err != nil {
		return err
	}
	if err := w.startWeather(ctx, "secret-1"); err != nil {
		return err
	}
	if err := os.WriteFile(w.tokenFile, []byte("secret-1\n"), 0o600); err != nil {
		return err
	}
	worker, err := w.Start("worker", w.Program("proxy-library"), append(w.args(w.tokenFile), "--ensure-endpoints"), w.temporal.Env())
	if err != nil {
		return err
	}
	return worker.AwaitLog(ctx, "proxy-library is ready")
}

func (w *world) args(tokenFile string) []string {
	return []string{"--weather", "http://" + w.address + "/mcp", "--token-file", tokenFile, "--almanac", w.Program("almanac")}
}

func (w *world) startWeather(ctx context.Context, token string) (err error) {
	w.weather, err = w.Start("weather-server", w.Program("weather-server"), []string{"--listen", w.address}, []string{"WEATHER_TOKEN=" + token})
	if err != nil {
		return err
	}
	serves, err := w.weather.AwaitLogged(ctx, regexp.MustCompile(`serving MCP at http://(\S+)/mcp;`), 1)
	if err != nil {
		return err
	}
	w.address = serves[1]
	return nil
}

func needWorld(t *testing.T) *world {
	t.Helper()
	if theWorld != nil {
		return theWorld
	}
	const how = "TEMPORAL_CLI names no Temporal CLI; ./justw test sets it up"
	if os.Getenv("CI") == "true" {
		require.FailNow(t, how)
	}
	t.Skip(how)
	return nil
}

// run runs the connector's command for all three services.
func (w *world) run(t *testing.T, command string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.Program("durable-mcp-connector"),
		append([]string{command, "--service", "garden", "--service", "weather", "--service", "almanac"}, args...)...)
	cmd.Env = append(os.Environ(), w.temporal.Env()...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%w: %s%s", err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

func TestOneWorkerServesAllThree(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	tools, err := w.run(t, "tools")
	require.NoError(t, err)
	for _, tool := range []string{"watering", "forecast", "alerts", "book_trip", "trips", "outlook"} {
		require.Regexp(t, `(?m)^  `+tool+` `, tools)
	}
	require.NotContains(t, tools, "burn_pages")
	for _, call := range []struct{ tool, args, want string }{
		{"watering", `{"square_metres":10,"sky":"sun","high_celsius":20}`, `{"litres":40}`},
		{"alerts", `{"place":"Lisbon"}`, `{"alerts":["Day 2: a storm over Lisbon.","Day 6: a storm over Lisbon."]}`},
		{"outlook", `{"crop":"barley"}`, `{"crop":"barley","outlook":"It will be as good a year for barley as any."}`},
	} {
		out, err := w.run(t, "call", call.tool, call.args)
		require.NoError(t, err)
		require.Equal(t, call.want+"\n", out)
	}
	_, err = w.run(t, "call", "burn_pages")
	require.ErrorContains(t, err, "burn_pages")
	_, err = w.run(t, "call", "watering", `{"square_metres":10,"sky":"snow","high_celsius":20}`)
	require.ErrorContains(t, err, "arguments.sky")

	// The weather server gets another token, and so does the file: the Worker goes on.
	require.NoError(t, os.WriteFile(w.tokenFile, []byte("secret-2\n"), 0o600))
	w.weather.Kill()
	require.NoError(t, w.weather.Ended(t.Context()))
	require.NoError(t, w.startWeather(t.Context(), "secret-2"))
	out, err := w.run(t, "call", "forecast", `{"place":"Lisbon","days":1}`)
	require.NoError(t, err)
	require.Contains(t, out, `"sky":"rain"`)
}

func TestAWorkerThatCannotServeDoesNotStart(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	wrong := filepath.Join(t.TempDir(), "wrong")
	require.NoError(t, os.WriteFile(wrong, []byte("another-token"), 0o600))
	cmd := exec.CommandContext(t.Context(), w.Program("proxy-library"), w.args(wrong)...)
	cmd.Env = append(os.Environ(), w.temporal.Env()...)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "proxy-library: mcpproxy: weather: ")
	require.NotContains(t, string(out), "another-token")
}

func TestAnEndpointThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	c := w.temporal.Client
	require.NoError(t, ensureEndpoint(t.Context(), c, stage.Namespace, "here"))
	require.NoError(t, ensureEndpoint(t.Context(), c, stage.Namespace, "here"))
	require.ErrorContains(t, ensureEndpoint(t.Context(), c, "temporal-system", "here"), `the endpoint "here" exists and leads elsewhere: to task queue "garden" in namespace "default"`)
}

func TestTokenFile(t *testing.T) {
	t.Parallel()

	_, err := newTokenFile("")
	require.ErrorContains(t, err, "--token-file")
	_, err = newTokenFile(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(" \n"), 0o600))
	_, err = newTokenFile(path)
	require.ErrorContains(t, err, "there is no token")

	require.NoError(t, os.WriteFile(path, []byte("first\n"), 0o600))
	file, err := newTokenFile(path)
	require.NoError(t, err)
	refused := func() error {
		req := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		req.Header.Set("Authorization", "Bearer first")
		return file.Authorize(t.Context(), req, httptest.NewRecorder().Result())
	}
	require.ErrorContains(t, refused(), "the server refuses the token")
	require.NotContains(t, refused().Error(), "first")
	require.NoError(t, os.WriteFile(path, []byte("second\n"), 0o600))
	require.NoError(t, refused())
}

func TestWatering(t *testing.T) {
	t.Parallel()

	for in, want := range map[wateringInput]int{
		{10, "sun", 20}: 40, {10, "clouds", 20}: 20, {10, "rain", 20}: 0, {10, "storm", 20}: 0, {10, "sun", -5}: 0,
	} {
		require.Equal(t, want, litres(in), "%v", in)
	}
}
