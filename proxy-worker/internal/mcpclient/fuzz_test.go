package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func FuzzDecodeIncoming(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"m","params":[]}`, `{"id":"x","method":1}`,
		`{}`, `[]`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", `{"jsonrpc":"2.0","id":null,"error":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := mcpclient.DecodeIncoming(raw)
		if err != nil {
			return
		}
		require.True(t, json.Valid(raw))
		if m.Fault == nil && m.IsResponse() {
			require.Regexp(t, `(?s)(?i)result|error|\\u`, string(raw))
		}
	})
}

// FuzzRecognize: of a message that is cut off, or that is no JSON further on, the ID
// is that of the message, or not known.
func FuzzRecognize(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":[1,{"id":2}]}}`, `{"result":{"id":3},"id":"x","jsonrpc":"2.0"}`, `{"id":1,"method":"m"}`, `[{"id":1}]`,
		`{"jsonrpc":"2.0","id":1,"result":NaN}`, `{"id":"\"}","error":{}}`, "\xef\xbb\xbf {\"id\" : 7 , \"error\": {}", `{"result":"\"id\":5}"`, `plain text`, ``,
	} {
		f.Add([]byte(seed), uint16(len(seed)/2))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint16) {
		cut := min(int(at), len(text))
		_, _ = mcpclient.Recognize(text[:cut], text[cut:])
		_, _ = mcpclient.ReadableID(text)
		m, err := mcpclient.DecodeIncoming(text)
		if err != nil || m.Fault != nil || strings.Count(string(text), `"id"`) != 1 || bytes.ContainsRune(text, '\\') {
			return // a member that is there twice, or is spelled otherwise, decides by its place
		}
		for _, end := range []int{cut, len(text)} {
			id, response := mcpclient.Recognize(text[:end], text[end:])
			if id != "" && m.ID != nil {
				require.Equal(t, string(m.ID), id)
			}
			if end == len(text) && id != "" {
				require.Equal(t, m.IsResponse(), response)
			}
		}
	})
}

// FuzzFrames: whatever a peer writes while a request waits, the request gets its own
// answer or an error, and each answer to the peer is one line of JSON.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[{"jsonrpc":"2.0","id":1,"result":{"n":1.0}},7,{}]`, "hello\n{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"yes\"}",
		`{"jsonrpc":"2.0","id":1,"result":NaN}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1.0,"result":{}}`, "\xef\xbb\xbf[", `{"jsonrpc":"2.0","id":{},"method":"no"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, ready bool) {
		lines := bytes.Split(in, []byte("\n"))
		if len(lines) > 500 || len(in) > 16<<10 {
			return // more than the peer in memory holds
		}
		p := newPipe()
		l := mcpclient.NewLink(p, peer{make(chan string, 100_000)}, slog.New(slog.DiscardHandler), func(s string) string { return s })
		if ready {
			l.Negotiated("2025-11-25", false)
		}
		type outcome struct {
			raw json.RawMessage
			err error
		}
		answered := make(chan outcome, 1)
		go func() {
			raw, err := l.Exchange(t.Context(), request("1"))
			answered <- outcome{raw, err}
		}()
		<-p.out // the request
		for _, line := range lines {
			if string(line) != "EOF" {
				p.in <- string(line)
			}
		}
		p.in <- "EOF"
		got := <-answered
		<-l.Done()
		l.Close()
		if got.err != nil {
			_ = failure(t, got.err)
		} else {
			m, err := mcpclient.DecodeIncoming(got.raw)
			require.NoError(t, err)
			require.NoError(t, m.Fault)
			require.Equal(t, "1", string(m.ID))
			require.True(t, m.IsResponse())
		}
		for {
			select {
			case reply := <-p.out:
				require.True(t, json.Valid([]byte(reply)), reply)
				require.NotContains(t, reply, "\n")
				require.NotContains(t, reply, "a secret of this side")
				continue
			default:
			}
			break
		}
	})
}

// wall is a server that answers each request with the next of its answers, members of
// a response.
type wall struct{ answers [][]byte }

func (w *wall) Open(context.Context, mcpclient.Handler) (mcpclient.Link, error) { return w, nil }
func (w *wall) FreshAfterProbe() bool                                           { return false }
func (w *wall) Notify(context.Context, mcpclient.Message) error                 { return nil }
func (w *wall) Negotiated(string, bool)                                         {}
func (w *wall) Done() <-chan struct{}                                           { return nil }
func (w *wall) Err() error                                                      { return nil }
func (w *wall) Close()                                                          {}

func (w *wall) Exchange(_ context.Context, m mcpclient.Message) (json.RawMessage, error) {
	if len(w.answers) == 0 {
		return nil, &mcpclient.Error{Outcome: mcpclient.Sent, Lost: true, Message: "the server is gone"}
	}
	raw := json.RawMessage(`{"jsonrpc":"2.0","id":` + m.ID + `,` + string(w.answers[0]) + `}`)
	w.answers = w.answers[1:]
	in, err := mcpclient.DecodeIncoming(raw)
	switch { // as a link does it
	case err != nil || !in.IsResponse():
		return nil, mcpclient.Unreadable(m.Method)
	case in.Fault != nil:
		return nil, mcpclient.Malformed(m.Method, in.Fault)
	}
	return raw, nil
}

// FuzzDial: whatever a server says of itself, there is a session of a revision that
// both speak, or an error that says nothing was sent.
func FuzzDial(f *testing.F) {
	const planted = "pl4nted-s3cret"
	for _, answers := range []string{
		`"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"x"}`,
		`"error":{"code":-32601,"message":"no"}` + "\n" + `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"\ud800"}}`,
		`"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25","` + planted + `"]}}` + "\n" + `"result":{"protocolVersion":"1999-01-01"}`,
		`"error":{"code":-32601,"message":"` + planted + `"}` + "\n" + `"error":{"code":1,"message":"` + planted + `"}`,
		`"error":{"code":-32022,"message":"no","data":{"supported":["` + planted + `"]}}`,
		`"error":{"code":-32601,"message":"no"}` + "\n" + `"result":{"protocolVersion":"` + planted + `"}`,
		`"result":{}` + "\n" + `"result":{"protocolVersion":7}`, `"result":[]`, ``,
	} {
		f.Add([]byte(answers), "")
		f.Add([]byte(answers), "2025-06-18")
		f.Add([]byte(answers), "2026-07-28")
	}
	f.Fuzz(func(t *testing.T, answers []byte, pinned string) {
		server := &wall{answers: bytes.Split(answers, []byte("\n"))}
		s, err := mcpclient.Dial(t.Context(), server, mcpclient.Options{ClientName: "fuzz", ProtocolVersion: pinned, StartupTimeout: time.Minute})
		if err != nil {
			e := failure(t, err)
			require.Equal(t, mcpclient.NotSent, e.Outcome)
			require.NotContains(t, e.Message, planted)
			require.Less(t, len(e.Message), 2000)
			return
		}
		defer s.Close()
		about := s.Server()
		require.Contains(t, mcpclient.Versions(), about.ProtocolVersion)
		if pinned != "" {
			require.Equal(t, pinned, about.ProtocolVersion)
		}
		for _, raw := range []json.RawMessage{about.Info, about.Capabilities} {
			require.True(t, raw == nil || contract.TypeName(raw) == "an object")
		}
		raw, err := s.Call(t.Context(), mcpclient.Request{Method: "tools/list"})
		if err == nil {
			require.Equal(t, "an object", contract.TypeName(raw))
		} else if pe := (*contract.ProtocolError)(nil); !errors.As(err, &pe) {
			_ = failure(t, err)
		}
	})
}
