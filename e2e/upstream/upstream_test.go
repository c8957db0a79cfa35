package upstream_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// TestWithoutFaultsAllIsByTheBook: the SDK's client is served over each transport at
// every revision, and the server has nothing to object to. What it says of other
// clients is worth something then.
func TestWithoutFaultsAllIsByTheBook(t *testing.T) {
	t.Parallel()

	for _, revision := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run("http "+revision, func(t *testing.T) {
			t.Parallel()
			u := harness.StartUpstream(t)
			serve(t, u, &mcp.StreamableClientTransport{Endpoint: u.URL}, revision)
		})
		t.Run("stdio "+revision, func(t *testing.T) {
			t.Parallel()
			u := harness.PrepareUpstream(t)
			path, args := u.Command()
			serve(t, u, &mcp.CommandTransport{Command: exec.Command(path, args...)}, revision)
		})
	}
	t.Run("sse", func(t *testing.T) {
		t.Parallel()
		u := harness.StartUpstream(t)
		serve(t, u, &mcp.SSEClientTransport{Endpoint: u.SSE}, "2024-11-05")
	})
}

func serve(t *testing.T, u *harness.Upstream, transport mcp.Transport, revision string) {
	t.Helper()
	changed, progress := make(chan struct{}, 10), make(chan float64, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Progress
		},
	})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	defer func() { _ = session.Close() }()

	list, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 16)
	params := &mcp.CallToolParams{Name: "plain", Arguments: upstream.Script{Key: "k", Progress: 2}}
	params.SetProgressToken("token")
	result, err := session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, "done k", result.Content[0].(*mcp.TextContent).Text)
	require.Equal(t, 1, u.Runs(t, "k"))
	require.InDelta(t, 1, <-progress, 0)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "read", Arguments: upstream.Script{Key: "c", Wait: u.File("never")}})
	require.ErrorIs(t, err, context.Canceled)
	harness.Until(t, func() bool { return len(u.Entries(t, upstream.EventCancelled)) == 1 })

	resources, err := session.ListResources(t.Context(), nil)
	require.NoError(t, err)
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resources.Resources[1].URI})
	require.NoError(t, err)
	require.Equal(t, "%PDF-1.7\n", string(read.Contents[0].Blob))
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "plain"})
	require.NoError(t, err)
	require.Len(t, prompt.Messages, 2)

	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_tool", Arguments: map[string]any{"name": "new"}})
	require.NoError(t, err)
	select {
	case <-changed:
	case <-time.After(harness.Patience):
		require.Fail(t, "nobody says that the tools have changed")
	}
	u.NoViolation(t)
}
