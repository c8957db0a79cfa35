package containers_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// The parts of compose.yaml that the tests know by name.
const (
	temporal     = "temporal"
	toolService  = "lucky-number"
	upstream     = "weather"
	proxy        = "proxy"
	connectorOne = "connector-1"
	connectorTwo = "connector-2"

	connectorPort = "8080/tcp"
	proxyPort     = "8081/tcp"
)

var connectors = []string{connectorOne, connectorTwo}

// stack is what compose.yaml describes.
type stack struct {
	*world
	compose

	token string // of the upstream
}

// TestStack starts the stack and uses it, as those would who have it from
// compose.yaml: first as it is, then while parts of it die.
func TestStack(t *testing.T) {
	t.Parallel()
	s := startStack(t)

	// One after the other, since each leaves the stack as the next one wants it.
	t.Run("images", s.images)   //nolint:paralleltest // see above
	t.Run("health", s.health)   //nolint:paralleltest // see above
	t.Run("calls", s.calls)     //nolint:paralleltest // see above
	t.Run("deaths", s.deaths)   //nolint:paralleltest // see above
	t.Run("secrets", s.secrets) //nolint:paralleltest // see above
	t.Run("end", s.end)         //nolint:paralleltest // see above
}

func startStack(t *testing.T) *stack {
	t.Helper()
	token := strings.ReplaceAll(harness.Unique("token"), "-", "")
	values := map[string]string{"WEATHER_TOKEN": token, "LOG_LEVEL": "debug", "TEMPORAL_IMAGE": os.Getenv("TEMPORAL_IMAGE")}
	s := &stack{world: newWorld(t), compose: readCompose(t, values), token: token}
	scratch, goImage := "scratch", s.goImage(t)
	for _, name := range s.order(t) {
		service := s.Services[name]
		switch {
		case service.Build != nil:
			require.Equal(t, ".", service.Build.Context)
			service.Image = s.build(t, service.Build.Target, root, service.Build.Target, map[string]*string{"BASE": &scratch, "GO": &goImage})
		case name == temporal:
			service.Image = s.temporalImage(t, service.Image)
		default:
			require.Fail(t, "an image from nowhere", name)
		}
		s.Services[name] = service
		for needed, how := range service.DependsOn {
			healthy := s.Services[needed].Healthcheck != nil
			require.Equal(t, healthy, how.Condition == "service_healthy", "%s waits for %s", name, needed)
		}
		s.start(t, name, service)
	}
	for _, name := range connectors {
		s.awaitAll(t, name)
	}
	return s
}

// awaitAll waits until a connector serves what all services have.
func (s *stack) awaitAll(t *testing.T, name string) {
	t.Helper()
	s.awaitReady(t, name, connectorPort)
	p := s.peer(t, name, harness.Revision2026)
	until(t, name+" has all lists", func(context.Context) error {
		for method, wanted := range map[string][]string{
			"tools/list": {"lucky_number", "forecast", "outlook"}, "resources/list": {"weather://skies"},
			"resources/templates/list": {"weather://places/{place}"}, "prompts/list": {"plan_trip"},
		} {
			list := string(p.Call(t, method, `{}`).Raw)
			for _, one := range wanted {
				if !strings.Contains(list, `"`+one+`"`) {
					return fmt.Errorf("%s: there is no %s in %s", method, one, list)
				}
			}
		}
		return nil
	})
}

// awaitReady waits until a container says that it is ready.
func (s *stack) awaitReady(t *testing.T, name, port string) {
	t.Helper()
	until(t, name+" is ready", func(ctx context.Context) error {
		status, body, err := get(ctx, "http://"+s.address(t, name, port)+"/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	})
}

func get(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// peer is an MCP client of a connector.
func (s *stack) peer(t *testing.T, name, revision string) *harness.Peer {
	t.Helper()
	base := "http://" + s.address(t, name, connectorPort)
	return (&harness.HTTP{URL: base + "/mcp", Base: base}).Speak(revision)
}

// once runs a command with the image and the settings of a service, and returns how
// it ended and what it wrote.
func (s *stack) once(t *testing.T, name, as string, environment map[string]string, command ...string) (code int, log string) {
	t.Helper()
	service := s.Services[name]
	service.Ports, service.Command = nil, command
	service.Environment = maps.Clone(service.Environment)
	maps.Copy(service.Environment, environment)
	s.start(t, as, service)
	code = s.exit(t, as)
	return code, s.log(contextOf(t), as)
}
