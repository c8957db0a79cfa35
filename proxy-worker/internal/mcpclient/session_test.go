package mcpclient_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// mute never answers a call, and hears what else is said.
type mute struct {
	*wall
	called chan struct{}
	heard  chan string
	closed chan struct{}
}

func (m *mute) Open(context.Context, mcpclient.Handler) (mcpclient.Link, error) { return m, nil }

func (m *mute) Close() { close(m.closed) }

func (m *mute) Exchange(ctx context.Context, msg mcpclient.Message) (json.RawMessage, error) {
	if msg.Method != "tools/call" {
		return m.wall.Exchange(ctx, msg)
	}
	msg.Sending()
	close(m.called)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *mute) Notify(ctx context.Context, msg mcpclient.Message) error {
	select {
	case <-m.closed:
	case <-ctx.Done():
	case m.heard <- msg.Method:
	}
	return nil
}

// The end of a session does not overtake the word that a call of it is cancelled.
func TestACancelIsSaidBeforeTheEnd(t *testing.T) {
	t.Parallel()

	m := &mute{
		wall:   &wall{answers: [][]byte{[]byte(`"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`)}},
		called: make(chan struct{}), heard: make(chan string), closed: make(chan struct{}),
	}
	s, err := mcpclient.Dial(t.Context(), m, mcpclient.Options{ProtocolVersion: "2026-07-28", StartupTimeout: time.Minute})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-m.called; cancel() }()
	_, err = s.Call(ctx, mcpclient.Request{Method: "tools/call"})
	require.ErrorIs(t, err, context.Canceled)
	ended := make(chan struct{})
	go func() {
		s.Close()
		close(ended)
	}()
	select {
	case word := <-m.heard:
		require.Equal(t, mcpclient.MethodCancelled, word)
	case <-m.closed:
		require.Fail(t, "the session ended first")
	}
	<-ended
}
