package connector_test

import (
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
)

// eachPeer runs a test over both transports at every revision, with connectors
// to the shared tool service.
func eachPeer(t *testing.T, args []string, test func(t *testing.T, p *harness.Peer)) {
	t.Helper()
	kit := harness.SharedService(t)
	temporal := harness.Shared(t)
	args = append([]string{"--service", kit.Name}, args...)
	http := temporal.StartHTTP(t, args...)
	for _, revision := range harness.Revisions {
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			test(t, http.Speak(revision))
		})
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			test(t, temporal.StartStdio(t, args...).Speak(t, revision))
		})
	}
}

// stdioPeer starts a connector to the shared tool service.
func stdioPeer(t *testing.T, revision string, args ...string) *harness.Peer {
	t.Helper()
	kit := harness.SharedService(t)
	return harness.Shared(t).StartStdio(t, append([]string{"--service", kit.Name}, args...)...).Speak(t, revision)
}

// httpServer starts a connector to the shared tool service.
func httpServer(t *testing.T, args ...string) *harness.HTTP {
	t.Helper()
	kit := harness.SharedService(t)
	return harness.Shared(t).StartHTTP(t, append([]string{"--service", kit.Name}, args...)...)
}
