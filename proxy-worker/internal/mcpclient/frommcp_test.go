package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// sdkServer is a server of the go-sdk, reached in memory.
type sdkServer struct {
	*mcp.Server
	cancelled chan struct{}
	sessions  chan *mcp.ServerSession
}

func newSDKServer() *sdkServer {
	s := &sdkServer{
		Server:    mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil),
		cancelled: make(chan struct{}, 1),
		sessions:  make(chan *mcp.ServerSession, 10),
	}
	schema := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Arguments}, nil
	})
	s.AddTool(&mcp.Tool{Name: "hang", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		s.cancelled <- struct{}{}
		return nil, ctx.Err()
	})
	return s
}

func (s *sdkServer) transport(ctx context.Context) (mcp.Transport, error) {
	client, server := mcp.NewInMemoryTransports()
	session, err := s.Connect(context.WithoutCancel(ctx), server, nil)
	s.sessions <- session
	return client, err
}

func TestATransportOfTheSDK(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			server := newSDKServer()
			changed := make(chan string, 10)
			s, err := mcpclient.Dial(t.Context(), mcpclient.FromMCP(server.transport, nil, nil), mcpclient.Options{
				ClientName: "c", ClientVersion: "1", ProtocolVersion: version, Changed: func(what string) { changed <- what },
			})
			require.NoError(t, err)
			t.Cleanup(s.Close)
			require.Equal(t, version == "", s.Server().Stateless)
			require.Contains(t, string(s.Server().Info), `"name":"sdk"`)

			raw, err := s.Call(t.Context(), mcpclient.Request{
				Method: "tools/call", Params: json.RawMessage(`{"name":"echo","arguments":{"n":9007199254740993,"m":1.0}}`),
			})
			require.NoError(t, err)
			require.Contains(t, string(raw), `{"n":9007199254740993,"m":1.0}`)

			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err = s.Call(ctx, mcpclient.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"hang","arguments":{}}`)})
			require.ErrorIs(t, err, context.Canceled)
			<-server.cancelled

			server.AddTool(&mcp.Tool{Name: "new", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
			require.Equal(t, "tools", <-changed)

			require.NoError(t, (<-server.sessions).Close())
			<-s.Done()
			_, err = s.Call(t.Context(), mcpclient.Request{Method: "tools/list"})
			e := failure(t, err)
			require.Equal(t, mcpclient.NotSent, e.Outcome)
			require.True(t, e.Lost)
		})
	}
}

func TestATransportThatDoesNotConnect(t *testing.T) {
	t.Parallel()

	open := func(context.Context) (mcp.Transport, error) { return nil, errors.New("secret=1") }
	_, err := mcpclient.Dial(t.Context(), mcpclient.FromMCP(open, nil, nil), mcpclient.Options{})
	e := failure(t, err)
	require.Equal(t, mcpclient.NotSent, e.Outcome)
	require.True(t, e.Retryable)
	require.NotContains(t, e.Message+e.Detail, "secret")
}

func TestAnUnknownPin(t *testing.T) {
	t.Parallel()

	_, err := mcpclient.Dial(t.Context(), mcpclient.FromMCP(nil, nil, nil), mcpclient.Options{ProtocolVersion: "2020-01-01"})
	require.ErrorContains(t, err, `"2020-01-01"`)
	require.ErrorContains(t, err, "2026-07-28, 2025-11-25")
}

// hangs is a transport that connects after a while, whatever its context says.
type hangs struct {
	mcp.Transport
	heeds bool
	until chan struct{}
}

func (h hangs) Connect(ctx context.Context) (mcp.Connection, error) {
	if !h.heeds {
		<-h.until
		return h.Transport.Connect(ctx)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestATransportThatHangs(t *testing.T) {
	t.Parallel()

	for name, heeds := range map[string]bool{"and heeds its context": true, "and does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, server := mcp.NewInMemoryTransports()
				peer, err := server.Connect(t.Context())
				require.NoError(t, err)
				until := make(chan struct{})
				open := func(context.Context) (mcp.Transport, error) {
					return hangs{Transport: client, heeds: heeds, until: until}, nil
				}
				began := time.Now()
				_, err = mcpclient.Dial(t.Context(), mcpclient.FromMCP(open, nil, nil), mcpclient.Options{StartupTimeout: time.Minute})
				require.Equal(t, time.Minute, time.Since(began))
				require.Contains(t, failure(t, err).Message, "startup timeout")

				close(until)
				if !heeds { // what connects all the same is closed
					_, err = peer.Read(t.Context())
					require.Error(t, err)
				}
				require.NoError(t, peer.Close())
			})
		})
	}
}
