package containers_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

func TestMain(m *testing.M) {
	// The reaper of testcontainers is an image in a registry. The tests remove
	// all they make.
	setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
	// Inside a container testcontainers takes the gateway for the engine's host;
	// an engine that was started in here publishes its ports in here.
	if _, err := os.Stat("/.dockerenv"); err == nil && os.Getenv("DOCKER_HOST") == "" {
		setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	var stop func()
	interrupted, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := m.Run()
	stop()
	os.Exit(code)
}

// interrupted ends when somebody stops the tests. They fail then, and clean up as
// after any other failure.
var interrupted context.Context

// contextOf is t.Context that ends on an interruption too.
func contextOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stop := context.AfterFunc(interrupted, cancel)
	t.Cleanup(func() { stop(); cancel() })
	return ctx
}

func setDefault(variable, value string) {
	if _, set := os.LookupEnv(variable); !set {
		_ = os.Setenv(variable, value)
	}
}

// lack skips the test for the lack of something, and fails it in CI.
func lack(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		require.FailNow(t, fmt.Sprintf(format, args...))
	}
	t.Skipf(format, args...)
}

// world is a network with containers on it.
type world struct {
	provider *testcontainers.DockerProvider
	network  *testcontainers.DockerNetwork
	dir      string // of the programs
}

func newWorld(t *testing.T) *world {
	t.Helper()
	provider := connect(t)
	nw, err := network.New(contextOf(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, nw.Remove(context.Background())) })
	return &world{provider: provider, network: nw, dir: t.TempDir()}
}

// connect connects to the Docker engine.
func connect(t *testing.T) *testcontainers.DockerProvider {
	t.Helper()
	var provider *testcontainers.DockerProvider
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil { // the way in which testcontainers says that it finds none
				err = fmt.Errorf("%v", v)
			}
		}()
		if provider, err = testcontainers.NewDockerProvider(testcontainers.WithLogger(tclog.TestLogger(t))); err != nil {
			return err
		}
		return provider.Health(contextOf(t))
	}()
	if err != nil {
		lack(t, "no Docker engine answers: %v; ./justw e2e says how to get one", err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	return provider
}

// build builds programs of the workspace as static binaries for Linux.
func (w *world) build(t *testing.T, packages ...string) {
	t.Helper()
	cmd := exec.CommandContext(contextOf(t), "go", append([]string{"build", "-buildvcs=false", "-o", w.dir + string(filepath.Separator)}, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// image makes an image of one static binary and returns its name. Without USER
// and HOME a binary without cgo cannot tell who runs it.
func (w *world) image(t *testing.T, name, binary string) string {
	t.Helper()
	dir := t.TempDir()
	const dockerfile = "FROM scratch\nENV USER=root HOME=/\nCOPY program /program\nENTRYPOINT [\"/program\"]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600))
	place(t, binary, filepath.Join(dir, "program"))
	var log strings.Builder
	tag, err := w.provider.BuildImage(contextOf(t), &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: dir, Repo: "durable-mcp-e2e-" + name, BuildLogWriter: &log,
	}})
	require.NoError(t, err, "%s", log.String())
	t.Cleanup(func() {
		_, err := w.provider.Client().ImageRemove(context.Background(), tag, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		require.NoError(t, err)
	})
	return tag
}

// place links a binary, or copies it where the file system is another.
func place(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	require.NoError(t, err)
	if os.Link(from, to) == nil {
		return
	}
	in, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// temporalImage is TEMPORAL_IMAGE, or an image of the CLI.
func (w *world) temporalImage(t *testing.T) string {
	t.Helper()
	if image := os.Getenv("TEMPORAL_IMAGE"); image != "" {
		return image
	}
	cli := os.Getenv("TEMPORAL_CLI")
	switch {
	case cli == "":
		lack(t, "neither TEMPORAL_CLI nor TEMPORAL_IMAGE is set; ./justw e2e finds or installs a Temporal CLI")
	case runtime.GOOS != "linux":
		lack(t, "the Temporal CLI of this machine does not run in a container; name an image of the Temporal CLI in TEMPORAL_IMAGE")
	}
	return w.image(t, "temporal", cli)
}

// start starts a container under a name that the others know it by. It returns
// when it is ready.
func (w *world) start(t *testing.T, name, image string, ready wait.Strategy, options ...testcontainers.ContainerCustomizer) *testcontainers.DockerContainer {
	t.Helper()
	c, err := testcontainers.Run(contextOf(t), image, append(options,
		network.WithNetwork([]string{name}, w.network),
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute, ready),
		testcontainers.WithLogger(tclog.TestLogger(t)),
	)...)
	t.Cleanup(func() { // a container that did not get ready is one too
		if t.Failed() && c != nil {
			t.Logf("%s, its log:\n%s", name, logs(c))
		}
		require.NoError(t, testcontainers.TerminateContainer(c, testcontainers.StopTimeout(time.Second)))
	})
	require.NoError(t, err, name)
	return c
}

func logs(c *testcontainers.DockerContainer) string {
	r, err := c.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Close() }()
	data, _ := io.ReadAll(r)
	const most = 16 << 10
	if len(data) > most {
		data = append([]byte("…"), data[len(data)-most:]...)
	}
	return string(data)
}
