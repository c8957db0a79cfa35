package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/stretchr/testify/require"
)

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A result that is lost on its way out is no success.
func TestAResultThatCannotBePrinted(t *testing.T) {
	t.Parallel()

	temporal := temporaltest.Start()
	t.Cleanup(temporal.Close)
	temporal.Serve("tools", `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`, map[string]temporaltest.Handler{
		"echo": func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil },
	})
	for _, flags := range [][]string{nil, {"--json"}} {
		running.Lock()
		var stderr strings.Builder
		code := Main(append([]string{"durable-mcp-connector", "call", "--service", "tools", "--temporal-address", temporal.Address(), "echo"}, flags...),
			strings.NewReader(""), full{}, &stderr)
		running.Unlock()
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr.String(), "the result could not be printed: no space left")
	}
}

func TestCodecEndpointThatIsNoURL(t *testing.T) {
	t.Parallel()

	for _, value := range []string{"nonsense", "ftp://localhost", "http://", "://"} {
		code, _, errOut := run("tools", "--service", "tools", "--codec-endpoint", value)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errOut, "--codec-endpoint: ")
	}
}
