package streamable

// Internal tests in synthetic time: servers that are slow for longer than a test may be.

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// roundTrip is a server.
type roundTrip func(r *http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := f(r)
	resp.Request = r
	return resp, nil
}

// silent is a body that says a text and ends after a while, or with the request.
type silent struct {
	io.Reader
	ctx   context.Context
	after time.Duration
}

func (s *silent) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, errOr(pause(s.ctx, s.after), io.EOF)
}

func (*silent) Close() error { return nil }

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// A refusal is one also where its text has no end.
func TestARefusalWithoutAnEnd(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		transport, err := New(Options{URL: "https://example.com", Client: &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusTooManyRequests, Body: &silent{strings.NewReader("no"), r.Context(), time.Hour}}
		})}})
		require.NoError(t, err)
		link := newLink(transport, nobody{})
		began := time.Now()
		_, err = link.Exchange(t.Context(), mcpclient.Message{ID: "7", Method: "tools/call", Data: []byte(`{"id":7}`)})
		var e *mcpclient.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, mcpclient.Refused, e.Outcome)
		require.True(t, e.Retryable)
		require.Equal(t, errorBodyTime, time.Since(began))
		link.Close()
	})
}

// A tool may be silent for longer than what stands before its server lets a stream be.
func TestStreamsThatAreCutWhileNothingComes(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const answer = `{"jsonrpc":"2.0","id":7,"result":{}}`
		streams := 0
		transport, err := New(Options{URL: "https://example.com", Client: &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
			text := ""
			switch streams++; streams {
			case 1:
				text = "id: 1\ndata:\n\n"
			case 20:
				text = "data: " + answer + "\n\n"
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {mediaEvents}},
				Body: &silent{strings.NewReader(text), r.Context(), time.Minute},
			}
		})}})
		require.NoError(t, err)
		link := newLink(transport, nobody{})
		link.Negotiated("2025-11-25", false)
		got, err := link.Exchange(t.Context(), mcpclient.Message{ID: "7", Method: "tools/call", Data: []byte(`{"id":7}`)})
		require.NoError(t, err)
		require.Equal(t, answer, string(got))
		link.Close()
	})
}
