package harness

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Service is a tool service: an endpoint, and a Worker in a child process behind
// it. What its tools do is in e2e/toolservice.
type Service struct {
	// Name is the name of the Nexus service, of its endpoint and of its task
	// queue.
	Name string

	temporal *Temporal
	process  *Process
	path     string
	dir      string
}

var sharedService = sync.OnceValues(func() (*Service, error) {
	temporal, err := shared()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "durable-mcp-e2e-")
	if err != nil {
		return nil, err
	}
	bin, err := build()
	if err != nil {
		return nil, err
	}
	s := &Service{Name: Unique("kit"), temporal: temporal, path: filepath.Join(bin, "toolservice"), dir: dir}
	if err := temporal.TryCreateEndpoint(context.Background(), s.Name, s.Name); err != nil {
		return nil, err
	}
	stopLater(func() {
		if s.process != nil {
			s.process.terminate()
		}
		_ = os.RemoveAll(dir)
	})
	if err := s.start(); err != nil {
		return nil, err
	}
	shareLater(s.process)
	return s, nil
})

// SharedService returns the tool service of the package's tests, on the server of
// [Shared].
func SharedService(tb testing.TB) *Service {
	tb.Helper()
	Shared(tb)
	s, err := sharedService()
	require.NoError(tb, err)
	return s
}

// StartService starts a tool service for one test.
func (s *Temporal) StartService(tb testing.TB) *Service {
	tb.Helper()
	service := s.PrepareService(tb)
	service.Start(tb)
	return service
}

// PrepareService is [Temporal.StartService] without the Worker.
func (s *Temporal) PrepareService(tb testing.TB) *Service {
	tb.Helper()
	service := &Service{Name: Unique("svc"), temporal: s, path: Program(tb, "toolservice"), dir: tb.TempDir()}
	s.CreateEndpoint(tb, service.Name, service.Name)
	return service
}

// Start starts the Worker. It returns when it polls.
func (s *Service) Start(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.start())
	s.process.own(tb)
}

func (s *Service) start() (err error) {
	s.process, err = start(command{name: "toolservice " + s.Name, path: s.path, args: []string{
		s.temporal.Address, s.Name, s.manifest(), s.effects(),
	}})
	if err != nil {
		return err
	}
	_, err = s.process.Stdout.await("ready", func(out string) (string, bool) { return "", strings.Contains(out, "ready\n") })
	return err
}

// Kill is kill -9 of the Worker.
func (s *Service) Kill() { s.process.Kill() }

func (s *Service) manifest() string { return filepath.Join(s.dir, "manifest.json") }
func (s *Service) effects() string  { return filepath.Join(s.dir, "effects") }

// SetManifest replaces what the service answers to list_tools.
func (s *Service) SetManifest(tb testing.TB, manifest string) {
	tb.Helper()
	next := s.manifest() + ".next"
	require.NoError(tb, os.WriteFile(next, []byte(manifest), 0o600))
	require.NoError(tb, os.Rename(next, s.manifest()))
}

// Effects counts how often a tool has had the effect of writing a line: what
// happened outside of Temporal and of the product.
func (s *Service) Effects(tb testing.TB, line string) int {
	tb.Helper()
	n := 0
	for _, l := range s.AllEffects(tb) {
		if l == line {
			n++
		}
	}
	return n
}

// AllEffects returns every line that a tool has written, in order.
func (s *Service) AllEffects(tb testing.TB) []string {
	tb.Helper()
	data, err := os.ReadFile(s.effects())
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(tb, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
