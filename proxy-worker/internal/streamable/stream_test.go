package streamable_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
)

const progress = `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}` + "\n\n"

func TestStreams(t *testing.T) {
	t.Parallel()
	bytewise := func(s string) []string { return strings.Split(s, "") }
	for name, c := range map[string]struct {
		parts []string
		want  string
		seen  []string
	}{
		"plain":            {parts: []string{"event: message\ndata: " + answer7 + "\n\n"}},
		"bytewise":         {parts: bytewise("data: " + answer7 + "\n\n")},
		"bytewise CRLF":    {parts: bytewise(": x\r\ndata: " + answer7 + "\r\n\r\n")},
		"CR":               {parts: []string{"data: " + answer7 + "\r\r"}},
		"lines":            {parts: []string{"data: " + answer7[:17] + "\ndata:" + answer7[17:] + "\n\n"}, want: answer7[:17] + "\n" + answer7[17:]},
		"comments":         {parts: []string{": keep-alive\n\n", ": keep-alive\n\n", "data: " + answer7 + "\n\n"}},
		"unknown events":   {parts: []string{"event: other\ndata: " + answer7 + "x\n\n", "event: ping\ndata: 1\n\n", "data: " + answer7 + "\n\n"}},
		"no JSON":          {parts: []string{"data: hello\n\n", "data: [1]\n\n", "data: " + answer7 + "\n\n"}},
		"other answers":    {parts: []string{`data: {"jsonrpc":"2.0","id":8,"result":{}}` + "\n\n", "data: " + answer7 + "\n\n"}},
		"no blank line":    {parts: []string{"data: " + answer7 + "\n"}},
		"no line end":      {parts: []string{"data: " + answer7}},
		"priming event":    {parts: []string{"id: 0\ndata:\n\n", "data: " + answer7 + "\n\n"}},
		"error without ID": {parts: []string{`data: {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}` + "\n\n"}, want: `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`},
		"batch of another": {
			parts: []string{`data: [{"jsonrpc":"2.0","id":8,"result":{}},8]` + "\n\n", "data: " + answer7 + "\n\n"},
		},
		"batch": {
			parts: []string{`data: [{"jsonrpc":"2.0","method":"a"},` + answer7 + `,7]` + "\n\n"},
			seen:  []string{"a "},
		},
		"batch with another error": {
			parts: []string{`data: [` + answer7 + `,{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}]` + "\n\n"},
		},
		"batch with another error before": {
			parts: []string{`data: [{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}},` + answer7 + `]` + "\n\n"},
		},
		"notification": {
			parts: []string{progress, progress, "data: " + answer7 + "\n\n"},
			seen:  []string{`notifications/progress {"progress":1}`, `notifications/progress {"progress":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, h := serve(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, c.parts...) })
			got, err := link.Exchange(t.Context(), call())
			require.NoError(t, err)
			if c.want == "" {
				c.want = answer7
			}
			require.Equal(t, c.want, string(got))
			require.Equal(t, c.seen, h.all())
		})
	}
}

// A call ends with its answer, not with the stream.
func TestAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stream(w, "data: "+answer7+"\n\n")
		<-r.Context().Done()
		close(ended)
	})
	_, err := link.Exchange(t.Context(), call())
	require.NoError(t, err)
	<-ended // and the stream is closed
}

func TestRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 2)
	link, h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"method"`) {
			answers <- string(body)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		stream(w, `data: {"jsonrpc":"2.0","id":"p-1","method":"ping"}`+"\n\n")
		first := <-answers
		stream(w, `data: {"jsonrpc":"2.0","id":2,"method":"roots/list"}`+"\n\n")
		second := <-answers
		if first == `{"jsonrpc":"2.0","id":"p-1","result":{}}` && strings.Contains(second, `"id":2,"error":{"code":-32601`) {
			stream(w, "data: "+answer7+"\n\n")
		}
	})
	_, err := link.Exchange(t.Context(), call())
	require.NoError(t, err)
	require.Equal(t, []string{"request ping", "request roots/list"}, h.all())
}

func TestGzip(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "bomb": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, answer7+strings.Repeat(" ", size))
				_ = z.Close()
			}, limit(1<<20))
			_, err := link.Exchange(t.Context(), call())
			if name == "small" {
				require.NoError(t, err)
			} else {
				require.Contains(t, failure(t, err).Message, "limit")
			}
		})
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	cut := func() { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		message mcpclient.Message
		first   []string
		get     func(w http.ResponseWriter, n int)
		gets    int
		lost    bool
		ok      bool
	}{
		"after an event": {
			message: call(), first: []string{"retry: 1\n\n", "id: a\n" + progress}, ok: true, gets: 1,
			get: func(w http.ResponseWriter, _ int) { stream(w, "data: "+answer7+"\n\n") },
		},
		"again and again": {
			message: call(), first: []string{"id: 0\nretry: 1\ndata:\n\n"}, ok: true, gets: 9,
			get: func(w http.ResponseWriter, n int) {
				if n == 9 {
					stream(w, "data: "+answer7+"\n\n")
				}
				stream(w, "id: 1\ndata:\n\n")
			},
		},
		"after failures": {
			message: call(), first: []string{"id: 0\nretry: 1\ndata:\n\n"}, ok: true, gets: 3,
			get: func(w http.ResponseWriter, n int) {
				switch n {
				case 1:
					cut()
				case 2:
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					stream(w, "data: "+answer7+"\n\n")
				}
			},
		},
		"not allowed": {
			message: call(), first: []string{"id: 0\nretry: 1\ndata:\n\n"}, gets: 1,
			get: func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusMethodNotAllowed) },
		},
		"session gone": {
			message: call(), first: []string{"id: 0\nretry: 1\ndata:\n\n"}, gets: 1, lost: true,
			get: func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNotFound) },
		},
		"nothing ever comes": {
			message: call(), first: []string{"id: 0\nretry: 1\ndata:\n\n"}, gets: 5,
			get: func(w http.ResponseWriter, _ int) { stream(w, ": hi\n\n") },
		},
		"no event ID":   {message: call(), first: []string{"retry: 1\n\n", progress}},
		"ID taken back": {message: call(), first: []string{"retry: 1\nid: 1\n\n", "id\ndata:\n\n"}},
		"half an event": {message: call(), first: []string{"retry: 1\n\n", "id: 1\ndata: {"}},
		"modern":        {message: modern(), first: []string{"id: 1\nretry: 1\ndata:\n\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			gets, posts := 0, 0
			link, _ := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch r.Method {
				case http.MethodPost:
					posts++
					stream(w, c.first...)
					cut()
				case http.MethodGet:
					gets++
					if r.Header.Get("Last-Event-ID") == "" || r.Header.Get("Mcp-Session-Id") != "session-1" || r.Header.Get("Accept") != "text/event-stream" {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					c.get(w, gets)
				}
			}))
			initialize(t, link, false)
			got, err := link.Exchange(t.Context(), c.message)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, 1, posts, "the request was repeated")
			require.Equal(t, c.gets, gets)
			if c.ok {
				require.NoError(t, err)
				require.Equal(t, answer7, string(got))
				return
			}
			e := failure(t, err)
			require.Equal(t, mcpclient.Sent, e.Outcome)
			require.Equal(t, c.lost, e.Lost)
		})
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	const changed = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"
	gets := make(chan string, 10)
	var n atomic.Int32
	link, h := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		gets <- r.Header.Get("Last-Event-ID") + " " + r.Header.Get("Mcp-Protocol-Version") + " " + r.Header.Get("Mcp-Session-Id")
		switch n.Add(1) {
		case 1:
			stream(w, "retry: 1\nid: e1\n"+changed)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			stream(w, changed)
			<-r.Context().Done()
		}
	}))
	initialize(t, link, true)
	require.Equal(t, " 2025-11-25 session-1", <-gets)
	require.Equal(t, "e1 2025-11-25 session-1", <-gets)
	require.Equal(t, "e1 2025-11-25 session-1", <-gets)
	require.Eventually(t, func() bool { return len(h.all()) == 2 }, patience, time.Millisecond)
	require.NoError(t, link.Err())
	link.Close()
}

// Without a stream of its own a server is as good as any other.
func TestListenIsNotRequired(t *testing.T) {
	t.Parallel()
	for _, code := range []int{401, 403, 404, 405, 501} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 10)
			link, _ := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					asked <- struct{}{}
					w.WriteHeader(code)
					return
				}
				reply(w, answer7)
			}))
			initialize(t, link, true)
			<-asked
			_, err := link.Exchange(t.Context(), call())
			require.NoError(t, err)
			require.NoError(t, link.Err())
		})
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	for name, respond := range map[string]http.HandlerFunc{
		"taken":    status(200, ""),
		"unlawful": status(405, ""),
		"unknown":  status(404, ""),
		"silent":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deleted := make(chan http.Header, 2)
			link, _ := serve(t, session(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					deleted <- r.Header
					respond(w, r)
				}
			}), func(o *streamable.Options) { o.Headers = http.Header{"X-Key": {secret}} })
			initialize(t, link, false)
			began := time.Now()
			link.Close()
			link.Close()
			require.Less(t, time.Since(began), 10*time.Second)
			h := <-deleted
			require.Equal(t, "session-1", h.Get("Mcp-Session-Id"))
			require.Equal(t, "2025-11-25", h.Get("Mcp-Protocol-Version"))
			require.Equal(t, secret, h.Get("X-Key"))
			require.Empty(t, deleted)
			<-link.Done()
			_, err := link.Exchange(t.Context(), call())
			require.Equal(t, mcpclient.NotSent, failure(t, err).Outcome)
			require.True(t, failure(t, err).Lost)
		})
	}
}

// A server that asks and takes no answers holds up no call.
func TestTheServerTakesNoAnswers(t *testing.T) {
	t.Parallel()
	link, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"method"`) {
			<-r.Context().Done()
			return
		}
		for range 500 {
			stream(w, `data: {"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n\n")
		}
		stream(w, "data: "+answer7+"\n\n")
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := link.Exchange(ctx, call())
	require.NoError(t, err)
}
