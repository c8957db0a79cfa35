package streamable_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
)

// resetter is an HTTP/2 server that reads each request whole and ends the stream of the
// first ones with an error. To the others it says status 204.
type resetter struct {
	code     http2.ErrCode
	resets   int32
	requests atomic.Int32
}

func (s *resetter) serve(conn net.Conn) {
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
			switch {
			case !f.StreamEnded():
			case s.requests.Add(1) <= s.resets:
				err = framer.WriteRSTStream(f.StreamID, s.code)
			default:
				var block bytes.Buffer
				_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "204"})
				err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
			}
		}
		if err != nil {
			return
		}
	}
}

// start returns the server's address and a client for it.
func (s *resetter) start(t *testing.T, encrypted bool) (string, *http.Transport) {
	t.Helper()
	if !encrypted {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
				go s.serve(conn)
			}
		}()
		client := &http.Transport{Protocols: new(http.Protocols)}
		client.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(client.CloseIdleConnections)
		return "http://" + listener.Addr().String(), client
	}
	server := httptest.NewUnstartedServer(nil)
	server.EnableHTTP2 = true
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { s.serve(conn) },
	}
	server.TLS = &tls.Config{NextProtos: []string{"h2"}}
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client().Transport.(*http.Transport)
	client.ForceAttemptHTTP2 = true
	t.Cleanup(client.CloseIdleConnections)
	return server.URL, client
}

// wrapped is a RoundTripper before another, as tracers are.
type wrapped struct{ http.RoundTripper }

// net/http takes some stream errors for a reason to send a request again, which the
// server may have carried out.
func TestHTTP2SendsARequestOnce(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{true, false} {
		for _, code := range []http2.ErrCode{http2.ErrCodeProtocol, http2.ErrCodeRefusedStream} {
			for _, wrap := range []bool{false, true} {
				server := &resetter{code: code, resets: 1}
				url, transport := server.start(t, encrypted)
				client := &http.Client{Transport: transport}
				if wrap {
					client.Transport = wrapped{transport}
				}
				link, _ := dial(t, url, func(o *streamable.Options) { o.Client = client })
				once := call()
				once.Once = true
				_, err := link.Exchange(t.Context(), once)
				require.Equal(t, mcpclient.Sent, failure(t, err).Outcome, "%v, encrypted %v, wrapped %v", code, encrypted, wrap)
				require.EqualValues(t, 1, server.requests.Load(), "%v, encrypted %v, wrapped %v", code, encrypted, wrap)
			}
		}
	}
}

// What may run twice does not fail for a stream that the server would not take.
func TestHTTP2SendsAgainWhatMayRunTwice(t *testing.T) {
	t.Parallel()
	server := &resetter{code: http2.ErrCodeRefusedStream, resets: 1}
	url, transport := server.start(t, true)
	link, _ := dial(t, url, func(o *streamable.Options) { o.Client = &http.Client{Transport: transport} })
	_, err := link.Exchange(t.Context(), call())
	require.Contains(t, failure(t, err).Message, "took the request and gave no answer")
	require.EqualValues(t, 2, server.requests.Load())
}
