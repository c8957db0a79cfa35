package containers_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
)

// connected tells whether a test has made anything.
var connected atomic.Bool

// leftovers are what a run has made and not removed.
func leftovers(ctx context.Context, run string) (left []string, err error) {
	if !connected.Load() {
		return nil, nil
	}
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }()
	ours := make(client.Filters).Add("label", label+"="+run)
	containers, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	for _, c := range containers.Items {
		left = append(left, fmt.Sprint("container ", c.ID, " of ", c.Image))
	}
	networks, err2 := engine.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	for _, n := range networks.Items {
		left = append(left, fmt.Sprint("network ", n.Name))
	}
	images, err3 := engine.ImageList(ctx, client.ImageListOptions{All: true, Filters: ours})
	for _, i := range images.Items {
		left = append(left, fmt.Sprint("image ", i.ID, " ", i.RepoTags))
	}
	return left, errors.Join(err, err2, err3)
}

const endVariable = "DURABLE_MCP_E2E_END"

// TestNothingIsLeft ends runs of the tests in every way there is, with a container in
// the middle of its work, and looks for what they leave. Each run is this test again,
// in a process of its own.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	if end := os.Getenv(endVariable); end != "" {
		endLike(t, end)
		return
	}

	connect(t)
	programs := buildPrograms(t)
	for _, end := range []string{"failure", "interruption", "timeout"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			id := run + "-" + end
			cmd := exec.CommandContext(contextOf(t), os.Args[0], "-test.run=^TestNothingIsLeft$", "-test.v", "-test.timeout=100s")
			cmd.Env = append(os.Environ(), runVariable+"="+id, endVariable+"="+end, programsVariable+"="+programs)
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // so that it cleans up
			cmd.WaitDelay = patience
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			var log strings.Builder
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the run, and what it says at its end:\n%s\n%s", log.String(), errOut.String())
				}
			})
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				fmt.Fprintln(&log, lines.Text())
				if !strings.Contains(lines.Text(), hasStarted) {
					continue
				}
				left, err := leftovers(contextOf(t), id)
				require.NoError(t, err)
				for _, kind := range []string{"container ", "network ", "image "} {
					require.True(t, slices.ContainsFunc(left, func(thing string) bool { return strings.HasPrefix(thing, kind) }), "%s: %v", kind, left)
				}
				if end == "interruption" {
					require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
				}
			}
			require.ErrorAs(t, cmd.Wait(), new(*exec.ExitError), "a run that fails says so")
			require.Contains(t, log.String(), hasStarted)
			require.Contains(t, log.String(), "serving MCP at", "the container's log")
			require.NotContains(t, log.String(), "panic: test timed out")
			require.NotContains(t, errOut.String(), "left behind")
			left, err := leftovers(contextOf(t), id)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

const hasStarted = "the container has started"

// endLike starts a container and fails: at once, or when the run is ended.
func endLike(t *testing.T, end string) {
	t.Helper()
	w := newWorld(t)
	image := w.programImage(t, "weather-server")
	w.start(t, "weather", service{Image: image, Environment: map[string]string{"WEATHER_TOKEN": "x"}})
	until(t, "the container's log", func(ctx context.Context) error {
		if log := w.log(ctx, "weather"); !strings.Contains(log, "serving MCP at") {
			return errors.New(log)
		}
		return nil
	})
	t.Log(hasStarted)
	if end != "failure" {
		<-contextOf(t).Done()
	}
	require.FailNow(t, "this is the end by "+end)
}
