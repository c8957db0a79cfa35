package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// pipe is a peer in memory.
type pipe struct {
	in    chan string // to the client
	out   chan string // from it
	write func(string) (int, error)
	once  sync.Once
	ended chan struct{}
}

func newPipe() *pipe {
	return &pipe{in: make(chan string, 1000), out: make(chan string, 1000), ended: make(chan struct{})}
}

func (p *pipe) Read() (json.RawMessage, error) {
	select {
	case m := <-p.in:
		if m == "EOF" {
			return nil, io.EOF
		}
		return json.RawMessage(m), nil
	case <-p.ended:
		return nil, io.ErrClosedPipe
	}
}

func (p *pipe) Write(m json.RawMessage) (int, error) {
	if p.write != nil {
		if n, err := p.write(string(m)); err != nil {
			return n, err
		}
	}
	p.out <- string(m)
	return len(m), nil
}

func (p *pipe) Close() { p.once.Do(func() { close(p.ended) }) }

// peer hears notifications and answers nothing but "yes".
type peer struct{ heard chan string }

func (p peer) Notification(method string, params json.RawMessage) {
	p.heard <- method + string(params)
}

func (p peer) Request(method string, _ json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "yes":
		return json.RawMessage(`{}`), nil
	case "no":
		return nil, &contract.ProtocolError{Code: -1, Message: "no"}
	}
	return nil, errors.New("a secret of this side")
}

func newLink(t *testing.T, p *pipe) mcpclient.Link {
	t.Helper()
	l := mcpclient.NewLink(p, peer{make(chan string, 1000)}, slog.New(slog.DiscardHandler), func(s string) string { return s })
	l.Negotiated("2025-11-25", false)
	t.Cleanup(l.Close)
	return l
}

func request(id string) mcpclient.Message {
	return mcpclient.Message{ID: id, Method: "m", Data: json.RawMessage(`{"jsonrpc":"2.0","id":` + id + `,"method":"m"}`)}
}

func failure(t *testing.T, err error) *mcpclient.Error {
	t.Helper()
	var e *mcpclient.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestAWriteThatFailsSaysWhetherAnythingWentOut(t *testing.T) {
	t.Parallel()

	for n, want := range map[int]mcpclient.Outcome{0: mcpclient.NotSent, 5: mcpclient.Sent} {
		p := newPipe()
		p.write = func(string) (int, error) { return n, io.ErrClosedPipe }
		l := newLink(t, p)
		_, err := l.Exchange(t.Context(), request("1"))
		e := failure(t, err)
		require.Equal(t, want, e.Outcome, n)
		require.True(t, e.Lost)
		<-l.Done()
		_, err = l.Exchange(t.Context(), request("2"))
		e = failure(t, err)
		require.Equal(t, mcpclient.NotSent, e.Outcome)
		require.True(t, e.Lost)
		require.Error(t, l.Notify(t.Context(), mcpclient.Message{Method: "n", Data: json.RawMessage(`{}`)}))
	}
}

func TestAMessageThatAloneFailsLeavesTheLink(t *testing.T) {
	t.Parallel()

	p := newPipe()
	var once sync.Once
	p.write = func(string) (n int, err error) {
		once.Do(func() { err = &mcpclient.Error{Message: "not this one"} })
		return 1, err
	}
	l := newLink(t, p)
	_, err := l.Exchange(t.Context(), request("1"))
	require.Equal(t, mcpclient.Sent, failure(t, err).Outcome)
	require.NoError(t, l.Err())
	go func() {
		<-p.out
		p.in <- `{"jsonrpc":"2.0","id":2,"result":{}}`
	}()
	_, err = l.Exchange(t.Context(), request("2"))
	require.NoError(t, err)
}

func TestConcurrentRequestsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()

	p := newPipe()
	l := newLink(t, p)
	go func() { // answers in pairs, the second first
		for {
			var held string
			for range 2 {
				select {
				case m := <-p.out:
					o, _ := contract.ParseObject(json.RawMessage(m))
					answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]s,"result":{"for":%[1]s}}`, o.Get("id"))
					if held == "" {
						held = answer
						continue
					}
					p.in <- answer
					p.in <- held
				case <-p.ended:
					return
				}
			}
		}
	}()
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			id := fmt.Sprint(i + 1)
			raw, err := l.Exchange(t.Context(), request(id))
			if err != nil || !strings.Contains(string(raw), `{"for":`+id+`}`) {
				t.Errorf("%s: %s, %v", id, raw, err)
			}
		})
	}
	calls.Wait()
}

func TestRequestsOfThePeerAreAnswered(t *testing.T) {
	t.Parallel()

	p := newPipe()
	newLink(t, p)
	for method, want := range map[string]string{
		"yes":   `{"jsonrpc":"2.0","id":"a\n","result":{}}`,
		"no":    `{"jsonrpc":"2.0","id":"a\n","error":{"code":-1,"message":"no"}}`,
		"other": `{"jsonrpc":"2.0","id":"a\n","error":{"code":-32603,"message":"internal error"}}`,
	} {
		p.in <- `{"jsonrpc":"2.0","id":"a\n","method":"` + method + `"}`
		require.Equal(t, want, <-p.out)
	}
}

func TestAPeerThatAsksAndDoesNotReadIsBounded(t *testing.T) {
	t.Parallel()

	p := newPipe()
	blocked := make(chan struct{})
	p.write = func(string) (int, error) { <-blocked; return 0, nil }
	h := peer{make(chan string, 1000)}
	l := mcpclient.NewLink(p, h, slog.New(slog.DiscardHandler), func(s string) string { return s })
	for range 500 {
		p.in <- `{"jsonrpc":"2.0","id":1,"method":"yes"}`
	}
	p.in <- `{"jsonrpc":"2.0","method":"last"}`
	require.Equal(t, "last", <-h.heard)
	close(blocked)
	l.Close()
	require.Less(t, len(p.out), 100)
}

// modern answers the probe, and ends every subscription at once.
type modern struct {
	done    chan struct{}
	listens chan time.Time
}

func (m *modern) Open(context.Context, mcpclient.Handler) (mcpclient.Link, error) { return m, nil }
func (*modern) FreshAfterProbe() bool                                             { return false }

func (m *modern) Exchange(_ context.Context, r mcpclient.Message) (json.RawMessage, error) {
	if r.Method == "server/discover" {
		return json.RawMessage(`{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{"listChanged":true},"resources":{}}}}`), nil
	}
	m.listens <- time.Now()
	if !strings.Contains(string(r.Data), `"notifications":{"promptsListChanged":true}`) {
		return nil, errors.New("it asks for too much")
	}
	return nil, &mcpclient.Error{Message: "the stream ended"}
}

func (*modern) Notify(context.Context, mcpclient.Message) error { return nil }
func (*modern) Negotiated(string, bool)                         {}
func (m *modern) Done() <-chan struct{}                         { return m.done }
func (*modern) Err() error                                      { return nil }
func (*modern) Close()                                          {}

func TestASubscriptionIsMadeAnewAfterEverLongerPauses(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		m := &modern{done: make(chan struct{}), listens: make(chan time.Time, 100)}
		changed := make(chan string, 100)
		began := time.Now()
		s, err := mcpclient.Dial(t.Context(), m, mcpclient.Options{Changed: func(what string) { changed <- what }})
		require.NoError(t, err)
		for _, want := range []float64{0, 1, 3, 7, 15, 31, 63, 123, 183} {
			require.Equal(t, want, (<-m.listens).Sub(began).Seconds()) //nolint:testifylint // the clock is exact here
		}
		s.Close()
		require.Equal(t, "prompts", <-changed)
	})
}
