package harness

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// HTTP is a connector as a child process that serves Streamable HTTP.
type HTTP struct {
	*Process

	// URL is that of MCP; Base has no path.
	URL, Base string

	args []string
}

var servedURL = regexp.MustCompile(`url=(http://[^/\s]+)/mcp`)

// StartHTTP starts a connector on a free port. It returns when the port is open.
func (s *Temporal) StartHTTP(tb testing.TB, args ...string) *HTTP {
	tb.Helper()
	args = append([]string{"--transport", "http", "--listen", "127.0.0.1:0"}, args...)
	h := &HTTP{args: s.connectorArgs(args)}
	h.Base = h.start(tb)
	h.URL = h.Base + "/mcp"
	return h
}

// Start starts the connector again, at the same address. It returns when the port
// is open.
func (h *HTTP) Start(tb testing.TB) {
	tb.Helper()
	h.start(tb, "--listen", strings.TrimPrefix(h.Base, "http://"))
}

func (h *HTTP) start(tb testing.TB, more ...string) (base string) {
	tb.Helper()
	p, err := start(command{name: "connector", path: Program(tb, "durable-mcp-connector"), args: slices.Concat(h.args, more)})
	require.NoError(tb, err)
	h.Process = p.own(tb)
	base, err = p.Stderr.await("URL", func(log string) (string, bool) {
		m := servedURL.FindStringSubmatch(log)
		if m == nil {
			return "", false
		}
		return m[1], true
	})
	require.NoError(tb, err)
	return base
}

// Exchange is one request and the response to it, as it comes.
type Exchange struct {
	*Inbox

	Status  int
	Header  http.Header
	Opened  time.Time // when the headers came
	close   context.CancelFunc
	mu      sync.Mutex
	body    bytes.Buffer
	comment int
}

// Close closes the connection, whatever is yet to come.
func (e *Exchange) Close() { e.close() }

// Body is what the body has until now.
func (e *Exchange) Body() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.body.String()
}

// Comments counts the comments in the event stream until now.
func (e *Exchange) Comments() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.comment
}

// httpClient keeps no connection open, so that Close closes one.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Post posts a body with the headers of MCP and those given, of which an empty
// value removes one. It returns when the response's headers have come.
func (h *HTTP) Post(tb testing.TB, body string, headers map[string]string) *Exchange {
	tb.Helper()
	e, err := h.TryPost(body, headers)
	require.NoError(tb, err)
	tb.Cleanup(e.Close)
	return e
}

// TryPost is [HTTP.Post] for a connector that may be gone.
func (h *HTTP) TryPost(body string, headers map[string]string) (*Exchange, error) {
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, strings.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		switch {
		case v == "":
			req.Header.Del(k)
		case strings.EqualFold(k, "Host"):
			req.Host = v
		default:
			req.Header.Set(k, v)
		}
	}
	resp, err := httpClient.Do(req) //nolint:bodyclose // read closes it
	if err != nil {
		cancel()
		return nil, err
	}
	e := &Exchange{Inbox: newInbox(), Status: resp.StatusCode, Header: resp.Header, Opened: time.Now(), close: cancel}
	go e.read(resp.Body)
	return e, nil
}

func (e *Exchange) read(body io.ReadCloser) {
	defer e.end()
	defer func() { _ = body.Close() }()
	kind, _, _ := strings.Cut(e.Header.Get("Content-Type"), ";")
	lines := bufio.NewReader(body)
	var data []string
	for {
		line, err := lines.ReadString('\n')
		e.mu.Lock()
		e.body.WriteString(line)
		if strings.HasPrefix(line, ":") {
			e.comment++
		}
		e.mu.Unlock()
		if kind == "text/event-stream" {
			text := strings.TrimRight(line, "\r\n")
			if value, ok := strings.CutPrefix(text, "data:"); ok {
				data = append(data, strings.TrimPrefix(value, " "))
			}
			if (text == "" || err != nil) && len(data) > 0 {
				e.add([]byte(strings.Join(data, "\n")))
				data = nil
			}
		}
		if err != nil {
			break
		}
	}
	if kind == "application/json" {
		e.add([]byte(e.Body()))
	}
}
