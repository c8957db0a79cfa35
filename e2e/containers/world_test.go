package containers_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

// world is a network with containers on it, known by the names of their services.
type world struct {
	t          *testing.T // whose containers they are, until its end
	engine     *testcontainers.DockerProvider
	network    *testcontainers.DockerNetwork
	containers map[string]*testcontainers.DockerContainer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, engine: connect(t), containers: map[string]*testcontainers.DockerContainer{}}
	t.Cleanup(func() { require.NoError(t, removeImages(context.Background(), w.engine.Client())) })
	var err error
	w.network, err = network.New(contextOf(t), network.WithLabels(map[string]string{label: run}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.network.Remove(context.Background())) })
	// Whoever waits for an answer of a container need not wait any more.
	stop := context.AfterFunc(interrupted, func() {
		list, _ := w.engine.Client().ContainerList(context.Background(), client.ContainerListOptions{
			Filters: make(client.Filters).Add("label", label+"="+run),
		})
		for _, c := range list.Items {
			_, _ = w.engine.Client().ContainerKill(context.Background(), c.ID, client.ContainerKillOptions{})
		}
	})
	t.Cleanup(func() { stop() })
	return w
}

// start starts a service, which the others know by its name. It is as compose.yaml
// has it, but for the ports: they are published as any that are free. With a health
// check it returns when that is passed.
func (w *world) start(t *testing.T, name string, s service) {
	t.Helper()
	var exposed []string
	bindings := dockernet.PortMap{}
	for _, published := range s.Ports {
		parts := strings.Split(published, ":")
		require.Len(t, parts, 3, "%s: ports are IP:PORT:PORT", published)
		port, err := dockernet.ParsePort(parts[2])
		require.NoError(t, err)
		exposed = append(exposed, port.String())
		bindings[port] = []dockernet.PortBinding{{HostIP: netip.MustParseAddr(parts[0]), HostPort: "0"}}
	}
	var volumes []string
	for _, v := range s.Volumes {
		require.True(t, strings.HasPrefix(v, "./"), v)
		volumes = append(volumes, filepath.Join(root, filepath.FromSlash("."))+v[1:])
	}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(s.Environment),
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithLabels(map[string]string{label: run}),
		testcontainers.WithConfigModifier(func(c *container.Config) {
			if seconds := int(s.StopGracePeriod.Seconds()); seconds > 0 {
				c.StopTimeout = &seconds
			}
			if h := s.Healthcheck; h != nil {
				c.Healthcheck = &container.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, Retries: h.Retries}
			}
		}),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings, c.Binds = bindings, volumes
			c.ReadonlyRootfs, c.CapDrop, c.SecurityOpt = s.ReadOnly, s.CapDrop, s.SecurityOpt
		}),
		testcontainers.WithLogger(tclog.TestLogger(w.t)),
		network.WithNetwork([]string{name}, w.network),
	}
	if len(s.Command) > 0 {
		options = append(options, testcontainers.WithCmd(s.Command...))
	}
	if s.Healthcheck != nil {
		options = append(options, testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForHealthCheck()))
	}
	c, err := testcontainers.Run(contextOf(t), s.Image, options...)
	if c != nil { // one that did not get ready is one too
		w.containers[name] = c
		w.t.Cleanup(func() {
			keepLog(w.t, name, w.log(context.Background(), name))
			require.NoError(w.t, testcontainers.TerminateContainer(c, testcontainers.StopTimeout(time.Second)))
		})
	}
	require.NoError(t, err, name)
}

// keepLog writes a log to where go test -artifacts keeps it, and shows the end of it
// if the test has failed.
func keepLog(t *testing.T, name, log string) {
	t.Helper()
	file := filepath.Join(t.ArtifactDir(), name+".log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Error(err)
	}
	if !t.Failed() {
		return
	}
	const most = 64 << 10
	if len(log) > most {
		log = "…" + log[len(log)-most:]
	}
	t.Logf("%s, its log:\n%s", name, log)
}

// log is what a container has written until now, in all of its lives.
func (w *world) log(ctx context.Context, name string) string {
	r, err := w.containers[name].Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		return string(data) + err.Error()
	}
	return string(data)
}

// awaitLog waits until a container has written a text so often.
func (w *world) awaitLog(t *testing.T, name, text string, times int) {
	t.Helper()
	until(t, name+" says "+text, func(ctx context.Context) error {
		if n := strings.Count(w.log(ctx, name), text); n < times {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
}

// address is HOST:PORT of a container's port here. It is another one after a start.
func (w *world) address(t *testing.T, name, port string) string {
	t.Helper()
	mapped, err := w.containers[name].MappedPort(contextOf(t), port)
	require.NoError(t, err)
	return "127.0.0.1:" + mapped.Port()
}

// kill is kill -9.
func (w *world) kill(t *testing.T, name string) {
	t.Helper()
	_, err := w.engine.Client().ContainerKill(contextOf(t), w.containers[name].GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	require.Equal(t, 137, w.exit(t, name))
}

// restart starts a container that has ended.
func (w *world) restart(t *testing.T, name string) {
	t.Helper()
	_, err := w.engine.Client().ContainerStart(contextOf(t), w.containers[name].GetContainerID(), client.ContainerStartOptions{})
	require.NoError(t, err)
}

// stop asks a container to end, gives it the time of its service, and returns its
// exit code.
func (w *world) stop(t *testing.T, name string) (code int) {
	t.Helper()
	_, err := w.engine.Client().ContainerStop(contextOf(t), w.containers[name].GetContainerID(), client.ContainerStopOptions{})
	require.NoError(t, err)
	return w.exit(t, name)
}

// exit waits for the end of a container.
func (w *world) exit(t *testing.T, name string) (code int) {
	t.Helper()
	until(t, name+" ends", func(ctx context.Context) error {
		state, err := w.containers[name].State(ctx)
		if err == nil && state.Running {
			err = fmt.Errorf("it is %s", state.Status)
		}
		if err == nil {
			code = state.ExitCode
		}
		return err
	})
	return code
}

// names are the services that run.
func (w *world) names() (names []string) {
	for name := range w.containers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
