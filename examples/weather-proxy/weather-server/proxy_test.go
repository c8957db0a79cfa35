package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/stretchr/testify/require"
)

// config is the file that the reader gives to the proxy.
const config = "../mcp.json"

// token is that of the weather server of the tests.
const token = "the-token-of-the-weather-server"

// world is what README.md starts, on free ports.
type world struct {
	*stage.Stage

	temporal       *stage.Temporal
	weather, proxy *stage.Child
	url            string
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
		theWorld = &world{Stage: st}
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
	err = w.Build(ctx, module+"connector/cmd/durable-mcp-connector", module+"proxy-worker/cmd/durable-mcp-proxy",
		module+"examples/weather-proxy/weather-server")
	if err != nil {
		return err
	}
	if w.temporal, err = w.StartTemporal(ctx, cli); err != nil {
		return err
	}
	w.weather, err = w.Start("weather-server", w.Program("weather-server"),
		[]string{"--listen", "127.0.0.1:0", "--confirmation", "0.2s"}, []string{"WEATHER_TOKEN=" + token})
	if err != nil {
		return err
	}
	serves, err := w.weather.AwaitLogged(ctx, regexp.MustCompile(`serving MCP at (http://\S+/mcp);`), 1)
	if err != nil {
		return err
	}
	w.url = serves[1]
	w.proxy, err = w.Start("proxy", w.Program("durable-mcp-proxy"),
		[]string{"serve", "--config", config, "--ensure-endpoints", "--log-level", "debug"}, w.env(token))
	if err != nil {
		return err
	}
	return w.proxy.AwaitLog(ctx, "msg=serving")
}

func (w *world) env(token string) []string {
	env := append(w.temporal.Env(), "WEATHER_URL="+w.url)
	if token != "" {
		env = append(env, "WEATHER_TOKEN="+token)
	}
	return env
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

// run runs a command of README.md with a token and returns its exit code.
func (w *world) run(t *testing.T, token, program string, args ...string) (code int, out, errOut string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.Program(program), args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WEATHER_") || strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "DURABLE_MCP_")
	}), w.env(token)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// call is the connector's command; the structured content goes into v.
func (w *world) call(t *testing.T, tool, args string, v any) {
	t.Helper()
	code, out, errOut := w.run(t, "", "durable-mcp-connector", "call", "--service", "weather", "--json", tool, args)
	require.Equal(t, 0, code, "%s\n%s", out, errOut)
	result := struct{ StructuredContent any }{v}
	require.NoError(t, json.Unmarshal([]byte(out), &result), out)
}

func TestCheckSaysWhichPolicyEachToolHas(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	code, out, errOut := w.run(t, token, "durable-mcp-proxy", "check", "--config", config)
	require.Equal(t, 0, code, errOut)
	require.Contains(t, out, "weather: weather-server 1.0.0, MCP 2026-07-28\n")
	for _, want := range []string{
		`forecast +yes +tool_policies +20 +3s +1m `,
		`alerts +yes +annotation readOnlyHint +5 +10m +10m `,
		`book_trip +no +tool_policies +5 +1m +5m `,
		`trips +yes +annotation readOnlyHint +5 +10m +10m `,
	} {
		require.Regexp(t, want, out)
	}
	require.NotContains(t, out, "warning")
	require.Empty(t, errOut)
}

func TestCheckSaysWhatIsWrongWithTheToken(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	code, out, errOut := w.run(t, "another", "durable-mcp-proxy", "check", "--config", config)
	require.Equal(t, 1, code, errOut)
	require.Contains(t, out, "the server does not accept the credentials (HTTP status 401)")
	code, _, errOut = w.run(t, "", "durable-mcp-proxy", "check", "--config", config)
	require.Equal(t, 2, code)
	require.Contains(t, errOut, "mcpServers.weather.headers.Authorization: the environment variable WEATHER_TOKEN is not set")
}

func TestTheConnectorCallsTheTools(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	var forecast struct {
		Place string
		Days  []struct {
			Day int
			Sky string
		}
	}
	w.call(t, "forecast", `{"place":"Lisbon","days":2}`, &forecast)
	require.Equal(t, "Lisbon", forecast.Place)
	require.Len(t, forecast.Days, 2)
	require.Equal(t, "storm", forecast.Days[1].Sky)
	var alerts struct{ Alerts []string }
	w.call(t, "alerts", `{"place":"Lisbon"}`, &alerts)
	require.Contains(t, alerts.Alerts, "Day 2: a storm over Lisbon.")
	var booked struct{ Trips int }
	for want := range 2 {
		w.call(t, "book_trip", `{"traveller":"Ada","place":"Lisbon"}`, &booked)
		require.Equal(t, want+1, booked.Trips)
	}
	var trips struct{ Trips []struct{ Place string } }
	w.call(t, "trips", `{"traveller":"Ada"}`, &trips)
	require.Len(t, trips.Trips, 2)

	code, out, _ := w.run(t, "", "durable-mcp-connector", "call", "--service", "weather", "forecast", `{"place":"Lisbon","days":8}`)
	require.Equal(t, 1, code)
	require.Contains(t, out, "want a place and 1 to 7 days")
}

// TestTheTokenStaysInTheProxy: the connector has no token, and no log has one.
func TestTheTokenStaysInTheProxy(t *testing.T) {
	t.Parallel()
	w := needWorld(t)

	w.call(t, "alerts", `{"place":"Porto"}`, new(any))
	logs, err := filepath.Glob(filepath.Join(w.Dir(), "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		require.NotContains(t, string(data), token, log)
	}
	calls := w.kept(t, "Porto")
	require.NotContains(t, calls, token)
	require.NotContains(t, calls, "Authorization")
}

// kept is what Temporal keeps of the calls, with inputs and results, as soon as a
// word is in it.
func (w *world) kept(t *testing.T, word string) (all string) {
	t.Helper()
	show := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Getenv("TEMPORAL_CLI"), append(args, "--address", w.temporal.Address, "--output", "json")...)
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	require.Eventually(t, func() bool { // Temporal's list lags behind
		var activities []struct{ ActivityID string }
		require.NoError(t, json.Unmarshal([]byte(show("activity", "list")), &activities))
		all = ""
		for _, a := range activities {
			all += show("activity", "describe", "--activity-id", a.ActivityID)
		}
		return strings.Contains(all, word)
	}, 30*time.Second, 100*time.Millisecond)
	return all
}
