package streamable_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
)

// sse scripts a server of 2024-11-05: f writes to the stream of each message.
func sse(t *testing.T, endpoint string, post func(w http.ResponseWriter, body string, out chan<- string)) *httptest.Server {
	t.Helper()
	out := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != secret {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			post(w, string(body), out)
			return
		}
		stream(w, ": hello\n\n", "event: endpoint\ndata: "+endpoint+"\n\n")
		for {
			select {
			case part, ok := <-out:
				if !ok {
					return
				}
				stream(w, part)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

func openSSE(t *testing.T, ctx context.Context, url string) (mcpclient.Link, *handler, error) {
	t.Helper()
	transport, err := streamable.NewSSE(streamable.Options{URL: url, Headers: http.Header{"X-Key": {secret}}, MaxMessageBytes: 1 << 20})
	require.NoError(t, err)
	require.True(t, transport.FreshAfterProbe())
	h := &handler{}
	link, err := transport.Open(ctx, h)
	if err == nil {
		t.Cleanup(link.Close)
	}
	return link, h, err
}

func TestSSE(t *testing.T) {
	t.Parallel()
	server := sse(t, "/messages?session=1", func(w http.ResponseWriter, body string, out chan<- string) {
		w.WriteHeader(http.StatusAccepted)
		if strings.Contains(body, "tools/call") {
			out <- progress
			out <- "event: message\ndata: " + answer7 + "\n\n"
		}
	})
	link, h, err := openSSE(t, t.Context(), server.URL+"/sse")
	require.NoError(t, err)
	got, err := link.Exchange(t.Context(), call())
	require.NoError(t, err)
	require.Equal(t, answer7, string(got))
	require.Len(t, h.all(), 1)
	link.Close()
	<-link.Done()
}

func TestSSEFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		post    func(w http.ResponseWriter, out chan<- string)
		outcome mcpclient.Outcome
		lost    bool
	}{
		"refused":      {func(w http.ResponseWriter, _ chan<- string) { w.WriteHeader(http.StatusUnauthorized) }, mcpclient.Refused, false},
		"gone":         {func(w http.ResponseWriter, _ chan<- string) { w.WriteHeader(http.StatusNotFound) }, mcpclient.NotSent, true},
		"failed":       {func(w http.ResponseWriter, _ chan<- string) { w.WriteHeader(http.StatusBadGateway) }, mcpclient.Sent, false},
		"cut":          {func(http.ResponseWriter, chan<- string) { panic(http.ErrAbortHandler) }, mcpclient.Sent, false},
		"stream ended": {func(_ http.ResponseWriter, out chan<- string) { close(out) }, mcpclient.Sent, true},
		"too large": {func(_ http.ResponseWriter, out chan<- string) {
			out <- "data: " + strings.Repeat("x", 2<<20) + "\n\n"
		}, mcpclient.Sent, true},
		"too large answer": {func(_ http.ResponseWriter, out chan<- string) {
			out <- `data: {"jsonrpc":"2.0","id":7,"result":{"x":"` + strings.Repeat("x", 2<<20) + "\"}}\n\n"
		}, mcpclient.Answered, false},
		"NaN": {func(_ http.ResponseWriter, out chan<- string) {
			out <- `data: {"jsonrpc":"2.0","id":7,"result":{"x":NaN}}` + "\n\n"
		}, mcpclient.Answered, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := sse(t, "/messages", func(w http.ResponseWriter, _ string, out chan<- string) { c.post(w, out) })
			link, _, err := openSSE(t, t.Context(), server.URL)
			require.NoError(t, err)
			_, err = link.Exchange(t.Context(), call())
			e := failure(t, err)
			require.Equal(t, c.outcome, e.Outcome, e.Message)
			require.Equal(t, c.lost, e.Lost)
			if c.lost {
				<-link.Done()
			}
		})
	}
}

func TestSSEOpenFails(t *testing.T) {
	t.Parallel()
	elsewhere := sse(t, "http://elsewhere.example/?"+secret, nil)
	_, _, err := openSSE(t, t.Context(), elsewhere.URL)
	require.Contains(t, failure(t, err).Message, "another origin")

	none := httptest.NewServer(status(404, ""))
	t.Cleanup(none.Close)
	_, _, err = openSSE(t, t.Context(), none.URL)
	require.Equal(t, mcpclient.NotSent, failure(t, err).Outcome)

	arrived := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream(w, ": wait\n\n")
		close(arrived)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, _, err = openSSE(t, ctx, silent.URL)
	require.ErrorIs(t, err, context.Canceled)
}

// Sessions with servers of the go-sdk, over each of its HTTP transports.
func TestDial(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: r.Params.Arguments}, nil
		})
	get := func(*http.Request) *mcp.Server { return server }
	for name, c := range map[string]struct {
		handler http.Handler
		build   func(streamable.Options) (*streamable.Transport, error)
		modern  bool
	}{
		"stateless": {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}), streamable.New, true},
		"sessions":  {mcp.NewStreamableHTTPHandler(get, nil), streamable.New, false},
		"JSON":      {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true}), streamable.New, false},
		"SSE":       {mcp.NewSSEHandler(get, nil), streamable.NewSSE, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.handler)
			t.Cleanup(s.Close)
			t.Cleanup(s.CloseClientConnections)
			transport, err := c.build(streamable.Options{URL: s.URL})
			require.NoError(t, err)
			session, err := mcpclient.Dial(t.Context(), transport, mcpclient.Options{ClientName: "test", Changed: func(string) {}})
			require.NoError(t, err)
			t.Cleanup(session.Close)
			t.Log(session.Server().ProtocolVersion)
			if name != "SSE" {
				require.Equal(t, c.modern, session.Server().Stateless)
			}
			for range 3 {
				got, err := session.Call(t.Context(), mcpclient.Request{
					Method: "tools/call", Name: "echo", Params: json.RawMessage(`{"name":"echo","arguments":{"n":9007199254740993}}`),
				})
				require.NoError(t, err)
				require.Contains(t, string(got), `9007199254740993`)
			}
		})
	}
}
