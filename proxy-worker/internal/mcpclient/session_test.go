package mcpclient_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// mute never answers a call or a subscription, and says what else it hears, after a
// while.
type mute struct {
	*wall

	slow   time.Duration
	called chan struct{}
	heard  []string
}

func (m *mute) Open(context.Context, mcpclient.Handler) (mcpclient.Link, error) { return m, nil }

func (m *mute) Close() { m.heard = append(m.heard, "the end") }

func (m *mute) Exchange(ctx context.Context, msg mcpclient.Message) (json.RawMessage, error) {
	if len(m.answers) > 0 {
		return m.wall.Exchange(ctx, msg)
	}
	msg.Sending()
	m.called <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (m *mute) Notify(ctx context.Context, msg mcpclient.Message) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.slow):
		m.heard = append(m.heard, msg.Method)
		return nil
	}
}

// The end of a session does not overtake the word that a call of it is cancelled, and
// waits a second for it.
func TestACancelIsSaidBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slow, end time.Duration
		heard     []string
	}{
		{999 * time.Millisecond, 999 * time.Millisecond, []string{mcpclient.MethodCancelled, "the end"}},
		{time.Hour, time.Second, []string{"the end"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &mute{
				wall: &wall{answers: [][]byte{[]byte(`"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`)}},
				slow: c.slow, called: make(chan struct{}),
			}
			s, err := mcpclient.Dial(t.Context(), m, mcpclient.Options{ProtocolVersion: "2026-07-28"})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-m.called; cancel() }()
			_, err = s.Call(ctx, mcpclient.Request{Method: "tools/call"})
			require.ErrorIs(t, err, context.Canceled)
			began := time.Now()
			s.Close()
			require.Equal(t, c.end, time.Since(began))
			require.Equal(t, c.heard, m.heard)
		})
	}
}

// A server that was replaced by one that tells other changes is asked for those.
func TestTheSubscriptionIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tells := func(lists string) []byte {
			return []byte(`"result":{"supportedVersions":["2026-07-28"],"capabilities":` + lists + `}`)
		}
		const tools, both = `{"tools":{"listChanged":true}}`, `{"tools":{"listChanged":true},"prompts":{"listChanged":true}}`
		m := &mute{wall: &wall{answers: [][]byte{tells(`{"tools":{}}`)}}, called: make(chan struct{}, 1)}
		asked := func() (n int) {
			synctest.Wait()
			n = len(m.called)
			for range n {
				<-m.called
			}
			return n
		}
		s, err := mcpclient.Dial(t.Context(), m, mcpclient.Options{ProtocolVersion: "2026-07-28", Changed: func(string) {}})
		require.NoError(t, err)
		require.Zero(t, asked())
		for _, c := range []struct {
			lists        string
			asked, ended int
		}{{tools, 1, 0}, {tools, 0, 0}, {both, 1, 1}, {`{}`, 0, 1}, {tools, 1, 0}} {
			m.heard, m.answers = nil, [][]byte{tells(c.lists)}
			_, err = s.Renew(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, c.asked, asked(), c.lists)
			require.Len(t, m.heard, c.ended, c.lists)
		}
		s.Close()
	})
}
