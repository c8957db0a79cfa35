package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

const (
	// patience is how long a test waits for what has to happen.
	patience = 20 * time.Second

	answer7 = `{"jsonrpc":"2.0","id":7,"result":{"n":9007199254740993}}`
	secret  = "planted-s3cret-value"
)

// handler records what the server sends by itself, and answers pings.
type handler struct {
	mu   sync.Mutex
	seen []string
}

func (h *handler) Notification(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, method+" "+string(params))
}

func (h *handler) Request(method string, _ json.RawMessage) (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, "request "+method)
	if method == "ping" {
		return json.RawMessage(`{}`), nil
	}
	return nil, &contract.ProtocolError{Code: -32601, Message: "no such method"}
}

func (h *handler) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.seen...)
}

// serve starts a server and opens a link to it.
func serve(t *testing.T, f http.HandlerFunc, edit ...func(*streamable.Options)) (mcpclient.Link, *handler) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return dial(t, server.URL, edit...)
}

func dial(t *testing.T, url string, edit ...func(*streamable.Options)) (mcpclient.Link, *handler) {
	t.Helper()
	o := streamable.Options{URL: url}
	for _, f := range edit {
		f(&o)
	}
	transport, err := streamable.New(o)
	require.NoError(t, err)
	h := &handler{}
	link, err := transport.Open(t.Context(), h)
	require.NoError(t, err)
	t.Cleanup(link.Close)
	return link, h
}

func limit(n int64) func(*streamable.Options) {
	return func(o *streamable.Options) { o.MaxMessageBytes = n }
}

// call is a legacy request with ID 7.
func call() mcpclient.Message {
	return mcpclient.Message{
		ID: "7", Method: "tools/call", Name: "echo",
		Data: json.RawMessage(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`),
	}
}

func modern() mcpclient.Message {
	m := call()
	m.Version = "2026-07-28"
	return m
}

// initialize opens a session at a server that names one.
func initialize(t *testing.T, link mcpclient.Link, listen bool) {
	t.Helper()
	_, err := link.Exchange(t.Context(), mcpclient.Message{
		ID: "1", Method: "initialize",
		Data: json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`),
	})
	require.NoError(t, err)
	link.Negotiated("2025-11-25", listen)
}

// failure returns the error of a call that has none but ours.
func failure(t *testing.T, err error) *mcpclient.Error {
	t.Helper()
	var e *mcpclient.Error
	require.ErrorAs(t, err, &e)
	for _, text := range []string{e.Message, e.Detail, err.Error()} {
		require.NotContains(t, text, secret)
		require.NotContains(t, text, "key=")
	}
	require.NotEmpty(t, e.Message)
	return e
}

// session wraps a server with an initialize that names a session.
func session(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(body, &m) == nil && m.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", "session-1")
			reply(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
			return
		}
		f(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, string(body))))
	}
}

type bodyKey struct{}

func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, body)
}

// stream writes parts of an event stream, each on its own.
func stream(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range parts {
		_, _ = io.WriteString(w, p)
		_ = http.NewResponseController(w).Flush()
	}
}

func TestExchangeReturnsTheBytes(t *testing.T) {
	t.Parallel()
	for body, seen := range map[string][]string{
		answer7: nil,
		` [{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":8,"result":{}},` + answer7 + `,{"jsonrpc":"2.0","method":"b","params":[1]}]`: {"a ", "b [1]"},
	} {
		link, h := serve(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, body) })
		got, err := link.Exchange(t.Context(), call())
		require.NoError(t, err)
		require.Equal(t, answer7, string(got))
		require.Equal(t, seen, h.all())
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const (
		refused = mcpclient.Refused
		sent    = mcpclient.Sent

		answered = mcpclient.Answered
	)
	for name, c := range map[string]struct {
		respond   http.HandlerFunc
		outcome   mcpclient.Outcome
		retryable bool
		after     time.Duration
	}{
		"401":       {status(401, ""), refused, false, 0},
		"403":       {status(403, "text"), refused, false, 0},
		"404":       {status(404, ""), refused, false, 0},
		"405":       {status(405, ""), refused, false, 0},
		"400":       {status(400, "Bad Request"), refused, false, 0},
		"400 JSON":  {status(400, `{"error":"no JSON-RPC"}`), refused, false, 0},
		"400 other": {status(400, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"x"}}`), refused, false, 0},
		"401 null":  {status(401, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}`), refused, false, 0},
		"406":       {status(406, ""), refused, false, 0},
		"413":       {status(413, ""), refused, false, 0},
		"415":       {status(415, ""), refused, false, 0},
		"422":       {status(422, ""), refused, false, 0},
		"408":       {status(408, ""), refused, true, 0},
		"429":       {status(429, "", "Retry-After", "7"), refused, true, 7 * time.Second},
		"429 date":  {status(429, "", "Retry-After", time.Now().Add(48*time.Hour).UTC().Format(http.TimeFormat)), refused, true, time.Hour},
		"500":       {status(500, "oops"), sent, true, 0},
		"502":       {status(502, "<html>"), sent, true, 0},
		"502 null":  {status(502, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}`, "Content-Type", "application/json"), sent, true, 0},
		"500 no ID": {status(500, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"m"}}`, "Content-Type", "application/json"), sent, true, 0},
		"503":       {status(503, "", "Retry-After", "99999"), sent, true, time.Hour},
		"503 past":  {status(503, "", "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"), sent, true, 0},
		"202":       {status(202, ""), sent, true, 0},
		"204":       {status(204, ""), sent, true, 0},
		"200 empty": {status(200, "", "Content-Type", "application/json"), sent, true, 0},
		"no JSON":   {status(200, "{oops", "Content-Type", "application/json"), sent, true, 0},
		"HTML":      {status(200, "<html>", "Content-Type", "text/html"), sent, true, 0},
		"JSON 1.0":  {status(200, `{"jsonrpc":"1.0","id":7,"result":{}}`, "Content-Type", "application/json"), answered, false, 0},
		"both":      {status(200, `{"jsonrpc":"2.0","id":7,"result":{},"error":{}}`, "Content-Type", "application/json"), answered, false, 0},
		"other id":  {status(200, `{"jsonrpc":"2.0","id":8,"result":{}}`, "Content-Type", "application/json"), sent, true, 0},
		"too large": {status(200, `{"jsonrpc":"2.0","id":7,"result":{"x":"`+string(make([]byte, 1<<20))+`"}}`, "Content-Type", "application/json"), answered, false, 0},
		"cut":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, sent, true, 0},
		"cut in the body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			reply(w, answer7[:20])
		}, sent, true, 0},
		"stream without answer": {func(w http.ResponseWriter, _ *http.Request) { stream(w, ": hello\n\n") }, sent, true, 0},
		"half an event":         {func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: "+answer7[:30]) }, sent, true, 0},
		"stream cut": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "data: "+answer7[:30])
			panic(http.ErrAbortHandler)
		}, sent, true, 0},
		"body without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}, answered, false, 0},
		"error body without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}, refused, false, 0},
		"event too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			for range 20 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		}, answered, false, 0},
		"malformed event": {func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7}\n\n") }, answered, false, 0},
		"batch":           {status(200, `[7,{"jsonrpc":"2.0","id":7,"result":{},"error":{}},8]`, "Content-Type", "application/json"), answered, false, 0},
		"foreign batch":   {status(200, `[{"jsonrpc":"2.0","id":8,"result":{}}]`, "Content-Type", "application/json"), sent, true, 0},
		"NaN":             {status(200, `{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}`, "Content-Type", "application/json"), answered, false, 0},
		"NaN in an event": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "data: {\"result\":{\"x\":NaN},\"jsonrpc\":\"2.0\",\"id\":7}\n\n")
		}, answered, false, 0},
		"unlawful redirect":    {status(302, "", "Location", "/elsewhere"), refused, false, 0},
		"redirect to nowhere":  {status(307, ""), refused, false, 0},
		"redirects in circles": {status(308, "", "Location", "/?token="+secret), refused, false, 0},
		"another origin":       {status(307, "", "Location", "http://elsewhere.example/?token="+secret), refused, false, 0},
		"another scheme":       {status(307, "", "Location", "file:///etc/passwd"), refused, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var times atomic.Int32
			link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				times.Add(1)
				c.respond(w, r)
			}, limit(1<<20), func(o *streamable.Options) {
				o.URL += "/mcp?key=" + secret
				o.Headers = http.Header{"Authorization": {"Bearer " + secret}}
			})
			_, err := link.Exchange(t.Context(), call())
			e := failure(t, err)
			require.Equal(t, c.outcome, e.Outcome, e.Message)
			require.Equal(t, c.retryable, e.Retryable, e.Message)
			require.False(t, e.Lost)
			require.Equal(t, c.after, e.RetryAfter.Round(time.Second))
			require.Equal(t, c.after > 0, regexp.MustCompile("asks to wait for .*[0-9]s").MatchString(e.Message), e.Message)
			require.NotContains(t, e.Message, "127.0.0.1")
			if name != "redirects in circles" {
				require.EqualValues(t, 1, times.Load(), "the request was repeated")
			}
			require.NoError(t, link.Err())
		})
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestErrorBodyIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code int
		body string
	}{
		"404": {404, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"m"}}`},
		"400": {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}`},
		"403": {403, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}`},
		"500": {500, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"m"}}`},
		"429": {429, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"m"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, _ := serve(t, status(c.code, c.body, "Content-Type", "application/json"))
			got, err := link.Exchange(t.Context(), call())
			require.NoError(t, err)
			require.Equal(t, c.body, string(got))
		})
	}
}

func TestLostSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code int
		body string
	}{
		"plain":    {404, "404 page not found"},
		"null":     {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`},
		"id":       {404, `{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Session not found"}}`},
		"400 text": {400, "Bad Request: No valid session ID provided"},
		"400 null": {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, _ := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Session-Id") != "session-1" {
					t.Error("the request names no session")
				}
				status(c.code, c.body)(w, r)
			}))
			initialize(t, link, false)
			for range 2 { // the second finds the link closed
				_, err := link.Exchange(t.Context(), call())
				e := failure(t, err)
				require.Equal(t, mcpclient.NotSent, e.Outcome)
				require.True(t, e.Lost)
				require.True(t, e.Retryable)
			}
			<-link.Done()
			require.Error(t, link.Err())
		})
	}
}

func TestA400ThatSpeaksOfTheSession(t *testing.T) {
	t.Parallel()
	for body, lost := range map[string]bool{
		"Bad Request: No valid session ID provided\n":                             true,
		"Invalid session ID":                                                      true,
		"Invalid or missing session ID":                                           true,
		"Missing or invalid session ID.":                                          true,
		`{"error":"Invalid or missing session ID"}`:                               true,
		`{"code":400,"message":"Session not found: 6f1c-7"}`:                      true,
		"Invalid sessionId":                                                       true,
		"invalid session_id: 6f1c-7":                                              true,
		"Invalid Mcp-Session-Id header":                                           true,
		"Invalid MCP session ID":                                                  true,
		"Session 6f1c-7 not found":                                                true,
		"Session has expired":                                                     true,
		"Session does not exist":                                                  true,
		"No active session":                                                       true,
		"Error: no session found":                                                 true,
		"Session not found. Please re-initialize.":                                true,
		"Session not found or expired":                                            true,
		"Session ID is invalid or expired":                                        true,
		"Not Found: Session not found":                                            true,
		"Invalid request: session not found":                                      true,
		"Invalid session. Please reinitialize":                                    true,
		"Session not found (id=6f1c)":                                             true,
		"Invalid session ID: eyJh.bG.ci/9=":                                       true,
		"No transport found for sessionId":                                        true,
		"Session has been terminated":                                             true,
		"Session closed":                                                          true,
		`{"statusCode":400,"error":"Bad Request","message":"Invalid session ID"}`: true,
		`{"error":{"code":400,"message":"Session not found"}}`:                    true,
		"Unknown session type":                                                    false,
		"Missing session parameter":                                               false,
		"Session booking expired":                                                 false,
		"session user not found":                                                  false,
		"the payment was taken, and the checkout session is closed":               false,
		"Your checkout session is invalid; the card was charged":                  false,
		"Session invalid; the card was charged":                                   false,
		"<!DOCTYPE html><title>Bad Request</title><p>Invalid session ID":          false,
		"Invalid session ID. " + strings.Repeat("The customer was charged. ", 20): false,
		"": false,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			link, _ := serve(t, session(status(400, body)))
			initialize(t, link, false)
			_, err := link.Exchange(t.Context(), call())
			e := failure(t, err)
			require.Equal(t, lost, e.Lost)
			require.Equal(t, lost, e.Retryable)
			require.Equal(t, lost, e.Outcome == mcpclient.NotSent)
			require.Equal(t, lost, link.Err() != nil)
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(nil)
	t.Cleanup(tls.Close)
	for name, url := range map[string]string{
		"refused": "http://127.0.0.1:1",
		"TLS":     tls.URL,
		"DNS":     "http://nowhere.invalid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, _ := dial(t, url+"/?key="+secret)
			m := call()
			sending := false
			m.Sending = func() { sending = true }
			_, err := link.Exchange(t.Context(), m)
			e := failure(t, err)
			require.Equal(t, mcpclient.NotSent, e.Outcome)
			require.True(t, e.Retryable)
			require.False(t, sending)
			require.Contains(t, e.Message, "cannot be reached")
		})
	}
}

func TestRequestOverTheLimitIsNotSent(t *testing.T) {
	t.Parallel()
	link, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, limit(10))
	_, err := link.Exchange(t.Context(), call())
	require.Equal(t, mcpclient.NotSent, failure(t, err).Outcome)
}

// deadConn fails to write anything once it is dead.
type deadConn struct {
	net.Conn
	dead atomic.Bool
}

func (c *deadConn) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(b)
}

// A connection that turns out to be dead before anything is written costs no call.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	conns := make(chan *deadConn, 10)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		c := &deadConn{Conn: conn}
		conns <- c
		return c, err
	}}
	for _, client := range []*http.Client{{Transport: transport}, {Transport: wrapped{transport}}} {
		link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			reply(w, answer7)
		}, func(o *streamable.Options) { o.Client = client })
		for i := range 6 {
			sending := 0
			m := call()
			m.Once = i%2 == 0
			m.Sending = func() { sending++ }
			_, err := link.Exchange(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, 1, sending)
			(<-conns).dead.Store(true)
		}
	}
}

// Over HTTP/2 too a request that the server had counts as sent.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.ProtoMajor != 2:
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		case r.URL.Path == "/cut":
			panic(http.ErrAbortHandler)
		default:
			stream(w, "data: "+answer7+"\n\n")
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	for path, ok := range map[string]bool{"/": true, "/cut": false} {
		link, _ := dial(t, server.URL+path, func(o *streamable.Options) { o.Client = server.Client() })
		_, err := link.Exchange(t.Context(), call())
		if ok {
			require.NoError(t, err)
		} else {
			require.Equal(t, mcpclient.Sent, failure(t, err).Outcome)
		}
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(w http.ResponseWriter){
		"no response": func(http.ResponseWriter) {},
		"slow body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer7[:10])
			_ = http.NewResponseController(w).Flush()
		},
		"slow stream": func(w http.ResponseWriter) { stream(w, "data: half") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, ended := make(chan struct{}), make(chan struct{})
			link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				before(w)
				close(arrived)
				<-r.Context().Done()
				close(ended)
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			_, err := link.Exchange(ctx, call())
			require.ErrorIs(t, err, context.Canceled)
			<-ended // the stream was closed
			require.NoError(t, link.Err())
		})
	}
}

func TestCloseEndsACall(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, ": working\n\n")
		close(arrived)
		<-r.Context().Done()
	})
	go func() { <-arrived; link.Close() }()
	_, err := link.Exchange(t.Context(), call())
	e := failure(t, err)
	require.Equal(t, mcpclient.Sent, e.Outcome)
	require.True(t, e.Lost)
	<-link.Done()
	link.Close()
}

func TestTheEndOfTheStreamIsTheWordForCancel(t *testing.T) {
	t.Parallel()
	var posts atomic.Int32
	link, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { posts.Add(1); w.WriteHeader(http.StatusAccepted) })
	m := mcpclient.Message{Method: mcpclient.MethodCancelled, Version: "2026-07-28", Data: json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)}
	require.NoError(t, link.Notify(t.Context(), m))
	require.Zero(t, posts.Load())
	m.Version = ""
	require.NoError(t, link.Notify(t.Context(), m))
	require.EqualValues(t, 1, posts.Load())
}
