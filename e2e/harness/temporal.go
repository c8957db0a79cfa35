package harness

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// Namespace is the only namespace of the dev servers.
const Namespace = "default"

// ServerFlags are the settings that Durable MCP needs beyond the default.
var ServerFlags = []string{
	"--dynamic-config-value", "nexusoperation.enableStandalone=true",
	"--dynamic-config-value", "activity.enableCallbacks=true",
}

// Temporal is a dev server.
type Temporal struct {
	// Address is HOST:PORT of the frontend. It stays over a restart.
	Address string

	path    string
	args    []string
	process *Process
	client  func() (client.Client, error)
}

var shared = sync.OnceValues(func() (*Temporal, error) {
	s, err := newTemporal(os.Getenv("TEMPORAL_CLI"), ServerFlags...)
	if err != nil {
		return nil, err
	}
	stopLater(s.process.terminate)
	return s, nil
})

// Shared returns the dev server of the package's tests.
func Shared(tb testing.TB) *Temporal {
	tb.Helper()
	cli(tb)
	s, err := shared()
	require.NoError(tb, err)
	return s
}

// StartTemporal starts a dev server for one test, with flags of its own: see
// [ServerFlags].
func StartTemporal(tb testing.TB, flags ...string) *Temporal {
	tb.Helper()
	s, err := newTemporal(cli(tb), flags...)
	require.NoError(tb, err)
	tb.Cleanup(func() { s.process.Kill() })
	return s
}

// StartDurableTemporal is [StartTemporal] with a store that outlives the process.
func StartDurableTemporal(tb testing.TB) *Temporal {
	tb.Helper()
	return StartTemporal(tb, append([]string{"--db-filename", filepath.Join(tb.TempDir(), "temporal.db")}, ServerFlags...)...)
}

func newTemporal(path string, flags ...string) (*Temporal, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	s := &Temporal{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])),
		path:    path,
		args: append([]string{
			"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "warn",
			"--port", strconv.Itoa(ports[0]), "--http-port", strconv.Itoa(ports[1]),
		}, flags...),
	}
	s.client = sync.OnceValues(func() (client.Client, error) {
		return client.NewLazyClient(client.Options{HostPort: s.Address, Namespace: Namespace, Logger: quiet{}})
	})
	return s, s.start()
}

// start returns when the server answers. The server picks ports of its own beside
// those it is told, and may lose one before it listens there: it is started again.
func (s *Temporal) start() error {
	for tries := 1; ; tries++ {
		err := s.tryStart()
		if err == nil || tries == 3 || s.process == nil || !strings.Contains(s.process.Stderr.String(), "address already in use") {
			return err
		}
	}
}

func (s *Temporal) tryStart() (err error) {
	if s.process, err = start(command{name: "temporal", path: s.path, args: s.args}); err != nil {
		return err
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	for end := time.Now().Add(Patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
		cancel()
		switch {
		case err == nil:
			return nil
		case !s.process.Running(), time.Now().After(end):
			s.process.Kill()
			return fmt.Errorf("the Temporal dev server does not answer: %w\n%s", err, s.process.Stderr.tail())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// PID is that of the process.
func (s *Temporal) PID() int { return s.process.PID() }

// Kill is kill -9 of the server.
func (s *Temporal) Kill() { s.process.Kill() }

// Child is the server's process.
func (s *Temporal) Child() *Process { return s.process }

// Via is the server as others reach it through another address, a relay's. Its
// client goes the direct way.
func (s *Temporal) Via(address string) *Temporal {
	via := *s
	via.Address = address
	return &via
}

// Restart starts the server again, at the same address.
func (s *Temporal) Restart(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.start())
	tb.Cleanup(func() { s.process.Kill() })
}

// Client returns a client of the server, which all tests share.
func (s *Temporal) Client(tb testing.TB) client.Client {
	tb.Helper()
	c, err := s.client()
	require.NoError(tb, err)
	return c
}

// CreateEndpoint creates a Nexus endpoint that leads to a task queue.
func (s *Temporal) CreateEndpoint(tb testing.TB, name, taskQueue string) {
	tb.Helper()
	require.NoError(tb, s.TryCreateEndpoint(context.Background(), name, taskQueue))
}

// TryCreateEndpoint is [Temporal.CreateEndpoint] where a test cannot be failed.
func (s *Temporal) TryCreateEndpoint(ctx context.Context, name, taskQueue string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	_, err = c.OperatorService().CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{Name: name, Target: &nexuspb.EndpointTarget{
			Variant: &nexuspb.EndpointTarget_Worker_{Worker: &nexuspb.EndpointTarget_Worker{
				Namespace: Namespace, TaskQueue: taskQueue,
			}},
		}},
	})
	return err
}

// FreePort returns a port of the loopback address that nobody listens on.
func FreePort(tb testing.TB) int {
	tb.Helper()
	ports, err := freePorts(1)
	require.NoError(tb, err)
	return ports[0]
}

// portsAsked counts the ports that [freePorts] has tried; portsFrom, where it began,
// differs from process to process.
var (
	portsAsked atomic.Int64
	portsFrom  = mathrand.Int64N(1 << 32)
)

// freePorts returns ports of the loopback address that nobody listens on, none of
// them twice. They are below those that systems give to a connection or a listener
// that asks for none: nobody gets them by chance before the process that they are for.
func freePorts(n int) (ports []int, err error) {
	const first, count = 10_000, 6_000
	for tries := 0; len(ports) < n; tries++ {
		port := first + int((portsFrom+portsAsked.Add(1))%count)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		switch {
		case err == nil:
			_ = l.Close()
			ports = append(ports, port)
		case tries == count:
			return nil, err
		}
	}
	return ports, nil
}

// Unique returns a name that no other test has and that Temporal takes for an
// endpoint.
func Unique(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:10])
}

// quiet is the logger of the tests' own clients.
type quiet struct{}

var _ sdklog.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
