package streamable_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
)

// resetter is an HTTP/2 server that reads each request whole and ends its stream with an
// error.
func resetter(t *testing.T, code http2.ErrCode, requests *atomic.Int32) func(*http.Server, *tls.Conn, http.Handler) {
	t.Helper()
	return func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		defer func() { _ = conn.Close() }()
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		framer := http2.NewFramer(conn, conn)
		if framer.WriteSettings() != nil {
			return
		}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					err = framer.WriteSettingsAck()
				}
			case *http2.DataFrame:
				if f.StreamEnded() {
					requests.Add(1)
					err = framer.WriteRSTStream(f.StreamID, code)
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// net/http takes some stream errors for a reason to send a request again, which the
// server may have carried out.
func TestHTTP2SendsARequestOnce(t *testing.T) {
	t.Parallel()
	for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream} {
		var requests atomic.Int32
		server := httptest.NewUnstartedServer(nil)
		server.EnableHTTP2 = true
		server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": resetter(t, code, &requests)}
		server.TLS = &tls.Config{NextProtos: []string{"h2"}}
		server.StartTLS()
		t.Cleanup(server.Close)
		client := server.Client()
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		link, _ := dial(t, server.URL, func(o *streamable.Options) { o.Client = client })
		_, err := link.Exchange(t.Context(), call())
		require.Equal(t, mcpclient.Sent, failure(t, err).Outcome, "%v", code)
		require.EqualValues(t, 1, requests.Load(), "%v", code)
		client.Transport.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	}
}
