package stdio_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

func TestParamsKeepTheirBytes(t *testing.T) {
	t.Parallel()

	const given = `{"name":"params","arguments":{"z":1e400,"a":-0,"z":1.0,"s":"<\ud800>","n":` + "\n" + `[ ]},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2024-11-05","progressToken":"theirs","mine":1.00,` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"x/tasks":{}}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"them"},"io.modelcontextprotocol/logLevel":"debug"}}`
	const arguments = `"arguments":{"z":1e400,"a":-0,"z":1.0,"s":"<\ud800>","n":[]}`
	for name, test := range map[string]struct {
		flags []string
		meta  string
	}{
		"modern": {[]string{"modern"}, `"mine":1.00,"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`},
		"legacy": {nil, `"mine":1.00`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := dial(t, server(test.flags...), options())
			r := mcpclient.Request{Method: "tools/call", Params: json.RawMessage(given)}
			raw, err := s.Call(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, `{"params":{"name":"params",`+arguments+`,"_meta":{`+test.meta+`}}}`, string(raw))
		})
	}
}

func TestBadParamsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	for _, params := range []string{`[]`, `{"_meta":1}`, `{`, `"x"`} {
		_, err := s.Call(t.Context(), mcpclient.Request{
			Method: "tools/call", Params: json.RawMessage(params),
			Sending: func() { t.Error("it was sent") },
		})
		e := failure(t, err)
		require.Equal(t, mcpclient.Refused, e.Outcome)
		require.False(t, e.Retryable)
	}
}

func TestACancelledCallLeavesTheSession(t *testing.T) {
	t.Parallel()

	for _, flag := range []string{"modern", "legacy"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()

			s := dial(t, server(flag), options())
			ctx, cancel := context.WithCancel(t.Context())
			_, err := s.Call(ctx, mcpclient.Request{
				Method: "tools/call", Params: json.RawMessage(`{"name":"hang"}`),
				Sending: func() { time.AfterFunc(50*time.Millisecond, cancel) },
			})
			cancel()
			require.ErrorIs(t, err, context.Canceled)
			require.Eventually(t, func() bool {
				var heard struct{ Heard []string }
				call(t, s, "heard", "", &heard)
				return strings.Contains(strings.Join(heard.Heard, "\n"), `notifications/cancelled {"requestId":`)
			}, time.Second, 5*time.Millisecond)

			_, err = s.Call(ctx, mcpclient.Request{Method: "tools/call", Sending: func() { t.Error("it was sent") }})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

func TestMalformedAnswersEndTheirCall(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	for name, test := range map[string]struct{ frame, want string }{
		"old JSON-RPC":         {`{"jsonrpc":"1.0","id":ID,"result":{}}`, "2.0"},
		"no JSON-RPC":          {`{"id":ID,"result":{}}`, "2.0"},
		"both":                 {`{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}`, "both"},
		"neither":              {`{"jsonrpc":"2.0","id":ID}`, "neither"},
		"no object":            {`{"jsonrpc":"2.0","id":ID,"result":[1]}`, "its result is an array, want an object"},
		"not UTF-8":            {`{"jsonrpc":"2.0","id":ID,"result":{"s":"LATIN1"}}`, "UTF-8"},
		"null":                 {`{"jsonrpc":"2.0","id":ID,"result":null}`, "null"},
		"NaN":                  {`{"jsonrpc": "2.0", "id": ID, "result": {"x": NaN, "id": 0}}`, "not JSON"},
		"NaN, the ID last":     {`{"result":{"x":-Infinity},"jsonrpc":"2.0","id":ID}`, "not JSON"},
		"nested too deep":      {`{"id":ID,"jsonrpc":"2.0","result":{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, "not JSON"},
		"error without a code": {`{"jsonrpc":"2.0","id":ID,"error":{"message":"m"}}`, "code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := try(t.Context(), s, "raw", string(contract.Quote(test.frame)))
			e := failure(t, err)
			require.Equal(t, mcpclient.Answered, e.Outcome)
			require.False(t, e.Retryable)
			require.False(t, e.Lost)
			require.Contains(t, e.Message, "malformed")
			require.Contains(t, e.Message, test.want)
		})
	}
}

func TestAnswersFindTheirCall(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	for name, frames := range map[string][]string{
		"unrelated IDs first": {`{"jsonrpc":"2.0","id":999999,"result":{"x":1}}`, `{"jsonrpc":"2.0","id":"ID","result":{"x":2}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":ID,"result":{"x":1.50}}`},
		"twice":               {`{"jsonrpc":"2.0","id":ID,"result":{"x":1.50}}`, `{"jsonrpc":"2.0","id":ID,"result":{"x":2}}`},
		"in a batch":          {`[{"jsonrpc":"2.0","method":"notifications/message"}, {"jsonrpc":"2.0","id":ID,"result":{"x":1.50}}]`},
		"after no JSON":       {`hello`, `{"jsonrpc":`, ``, `[1`, `3`, `{"level":"info","id":ID,"value":NaN}`, `{"jsonrpc":"2.0","id":ID,"method":"m","params":{"x":NaN}}`, "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":ID,"result":{"x":1.50}}`},
		"with white space":    {` { "jsonrpc" : "2.0" , "result" : {"x":1.50}, "id" : ID }` + " \r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			raw, err := try(t.Context(), s, "raw", string(contract.Quote(strings.Join(frames, "\n"))))
			require.NoError(t, err)
			require.Equal(t, `{"x":1.50}`, string(raw))
		})
	}
}

func TestAServersErrorIsAProtocolError(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	_, err := try(t.Context(), s, "raw", string(contract.Quote(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Unknown tool","data":{"n":1e999}}}`)))
	var pe *contract.ProtocolError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, &contract.ProtocolError{Code: -32602, Message: "Unknown tool", Data: json.RawMessage(`{"n":1e999}`)}, pe)
}

func TestTheFrameLimitIsExact(t *testing.T) {
	t.Parallel()

	const limit = 4000
	for _, flags := range [][]string{nil, {"bytewise"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()

			o := server(flags...)
			o.MaxMessageBytes = limit
			s := dial(t, o, options())
			_, err := try(t.Context(), s, "size", fmt.Sprint(limit))
			require.NoError(t, err)
			_, err = try(t.Context(), s, "size", fmt.Sprint(limit+1))
			e := failure(t, err)
			require.Equal(t, mcpclient.Answered, e.Outcome)
			require.True(t, e.TooLarge)
			require.False(t, e.Lost)
			require.False(t, e.Retryable, "it would be as large again")
			require.Contains(t, e.Message, "has 4001 bytes")
			require.Contains(t, e.Message, "4000 bytes")
			_, err = try(t.Context(), s, "size", fmt.Sprint(20*limit))
			require.Contains(t, failure(t, err).Message, "has 80000 bytes")
			_, err = try(t.Context(), s, "size", fmt.Sprint(limit))
			require.NoError(t, err, "the session goes on")
		})
	}
}

func TestALargeFrame(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	raw, err := try(t.Context(), s, "size", "9000000")
	require.NoError(t, err)
	require.Len(t, raw, 9000000-len(`{"jsonrpc":"2.0","id":N,"result":}`+"\n"))
}

func TestAnOutgoingMessageOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()

	const limit = 2000
	o := options()
	o.MaxMessageBytes = limit
	s := dial(t, server(), o)
	pad := func(n int) mcpclient.Request {
		frame := len(`{"jsonrpc":"2.0","id":N,"method":"tools/call","params":{"name":"params","x":""}}` + "\n")
		return mcpclient.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"params","x":"` + strings.Repeat("x", n-frame) + `"}`)}
	}
	_, err := s.Call(t.Context(), pad(limit))
	require.NoError(t, err)
	r := pad(limit + 1)
	r.Sending = func() { t.Error("it was sent") }
	_, err = s.Call(t.Context(), r)
	e := failure(t, err)
	require.Equal(t, mcpclient.Refused, e.Outcome)
	require.False(t, e.Retryable)
	require.Contains(t, e.Message, "2001 bytes")
	require.Contains(t, e.Message, "2000")
	require.NoError(t, s.Err())
}

func TestTheServerMayAskInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	raw, err := try(t.Context(), s, "ping", "")
	require.NoError(t, err)
	require.Equal(t, `{"id":"p-1","answer":{}}`, string(raw))
	raw, err = try(t.Context(), s, "ask", "")
	require.NoError(t, err)
	require.Equal(t, `{"id":77,"answer":{"code":-32601,"message":"Method not found"}}`, string(raw))
}

func TestABrokenPipeEndsEveryCall(t *testing.T) {
	t.Parallel()

	for tool, want := range map[string]string{
		"close-stdout": "closed its standard",
		"half":         "exited with code 0",
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()

			s := dial(t, server(), options())
			var calls sync.WaitGroup
			waiting := make(chan struct{}, 3)
			for range 3 {
				calls.Go(func() {
					_, err := s.Call(t.Context(), mcpclient.Request{
						Method: "tools/call", Params: json.RawMessage(`{"name":"hang"}`),
						Sending: func() { waiting <- struct{}{} },
					})
					var e *mcpclient.Error
					if !errors.As(err, &e) || !e.Lost || !e.Retryable {
						t.Errorf("%v", err)
					}
				})
			}
			for range 3 {
				<-waiting
			}
			_, err := try(t.Context(), s, tool, "")
			e := failure(t, err)
			require.Equal(t, mcpclient.Sent, e.Outcome)
			require.Contains(t, e.Message, want)
			calls.Wait()
		})
	}
}

func TestAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()

	s := dial(t, server("stubborn"), options())
	_, err := try(t.Context(), s, "stop-reading", "")
	require.NoError(t, err)
	big := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 2 { // the one is being written, the other waits for it
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := s.Call(ctx, mcpclient.Request{Method: "tools/call", Params: big})
		stop()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	began := time.Now()
	s.Close()
	require.Less(t, time.Since(began), 6*time.Second)
}

func TestListChangesAreHeard(t *testing.T) {
	t.Parallel()

	for _, flags := range [][]string{{"modern"}, {"modern", "listen-ends"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			t.Parallel()

			o := options()
			changed := make(chan string, 100)
			o.Changed = func(what string) { changed <- what }
			dial(t, server(flags...), o)
			require.Equal(t, "tools", <-changed)
			if len(flags) > 1 { // the second time by itself, the third from the new subscription
				require.Equal(t, "tools", <-changed)
				require.Equal(t, "tools", <-changed)
			}
		})
	}
}
