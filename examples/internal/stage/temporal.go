package stage

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// Namespace is the only namespace of the dev server.
const Namespace = client.DefaultNamespace

// Temporal is a dev server.
type Temporal struct {
	// Address is HOST:PORT of the frontend.
	Address string
	// UI is the address of the web interface.
	UI string
	// Client is a client of the server. The server's end closes it.
	Client client.Client

	child *Child
}

// Env configures a child for the server.
func (t *Temporal) Env() []string {
	return []string{"TEMPORAL_ADDRESS=" + t.Address, "TEMPORAL_NAMESPACE=" + Namespace}
}

// StartTemporal starts a dev server on free ports from the Temporal CLI, with the
// two settings that Durable MCP needs. It returns when the server answers.
func (s *Stage) StartTemporal(ctx context.Context, cli string) (*Temporal, error) {
	for tries := 1; ; tries++ {
		t, err := s.tryTemporal(ctx, cli)
		switch {
		case err == nil:
			return t, nil
		case tries == 3 || !t.lostItsPort():
			return nil, err
		}
	}
}

// lostItsPort reports whether another process took a port that was free just
// before.
func (t *Temporal) lostItsPort() bool {
	if t == nil || t.child == nil {
		return false
	}
	log, _ := os.ReadFile(t.child.Log)
	return strings.Contains(string(log), "address already in use")
}

// tryTemporal returns what it has started beside an error too.
func (s *Stage) tryTemporal(ctx context.Context, cli string) (*Temporal, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	t := &Temporal{Address: "127.0.0.1:" + ports[0], UI: "http://127.0.0.1:" + ports[1]}
	t.child, err = s.Start("temporal", cli, []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--log-level", "warn",
		"--port", ports[0], "--ui-port", ports[1], "--http-port", ports[2],
		"--dynamic-config-value", "nexusoperation.enableStandalone=true",
		"--dynamic-config-value", "activity.enableCallbacks=true",
	}, nil)
	if err != nil {
		return nil, err
	}
	t.Client, err = client.NewLazyClient(client.Options{HostPort: t.Address, Namespace: Namespace, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	err = t.child.await(ctx, func(ctx context.Context) error {
		// gRPC would wait a second before its second try.
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.Address)
		if err != nil {
			return err
		}
		_ = conn.Close()
		_, err = t.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
		return err
	})
	if err != nil {
		t.Client.Close()
		return t, fmt.Errorf("the Temporal dev server: %w", err)
	}
	return t, nil
}

// freePorts returns ports of the loopback address that nobody listens on.
func freePorts(n int) ([]string, error) {
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a local listener opens at once
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// quiet is the logger of a client that nobody debugs.
type quiet struct{}

var _ sdklog.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
