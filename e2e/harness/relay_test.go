package harness_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
)

// echo returns the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, r *harness.Relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Address)
	require.NoError(t, err, "also a relay that is cut can be connected to")
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(harness.Patience)))
	got := make([]byte, len(text))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// hearNothing wants a connection to be open and silent.
func hearNothing(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := c.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), "%v", err)
}

func TestRelay(t *testing.T) {
	t.Parallel()

	r := harness.StartRelay(t, echo(t))
	old := dial(t, r)
	say(t, old, "one")
	hear(t, old, "one")

	r.Cut()
	say(t, old, "two")
	late := dial(t, r)
	say(t, late, "three")
	hearNothing(t, old)
	hearNothing(t, late)
	r.Heal()
	hear(t, old, "two")
	hear(t, late, "three")

	r.Cut()
	say(t, old, "four")
	r.Reset()
	for _, c := range []net.Conn{old, late} {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(harness.Patience)))
		_, err := io.ReadAll(c)
		require.Error(t, err, "a reset, and nothing of what was held back")
	}
	again := dial(t, r)
	say(t, again, "five")
	hear(t, again, "five")
	require.NoError(t, again.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(again)
	require.NoError(t, err, "an end in order passes as one")
	require.Empty(t, rest)
}
