package stdio_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// neighbour is a call that waits in the same session.
func neighbour(t *testing.T, s *mcpclient.Session) <-chan error {
	t.Helper()
	ended, sending := make(chan error, 1), make(chan struct{})
	go func() {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		_, err := s.Call(ctx, mcpclient.Request{
			Method: "tools/call", Params: json.RawMessage(`{"name":"hang"}`), Sending: func() { close(sending) },
		})
		ended <- err
	}()
	<-sending
	return ended
}

func TestAnAnswerOverTheLimitHarmsNoOtherCall(t *testing.T) {
	t.Parallel()

	const limit = 4000
	pad := strings.Repeat("x", 100_000)
	for name, test := range map[string]struct{ frame, want string }{
		"the ID first":        {`{"jsonrpc":"2.0","id":ID,"result":{"id":1,"pad":"PAD"}}`, "has 100"},
		"the ID last":         {`{"result":{"id":1,"pad":"PAD"},"jsonrpc":"2.0","id":ID}`, "has 100"},
		"the ID very last":    {`{"jsonrpc": "2.0", "result": {"pad": "PAD"}, "id": ID }`, "has 100"},
		"the ID before":       {`{"result":{"id":1,"pad":"PAD"},"id":ID,"jsonrpc":"2.0"}`, "has 100"},
		"a notification":      {`{"jsonrpc":"2.0","method":"m","params":{"pad":"PAD"},"id":ID}` + "\n" + `{"jsonrpc":"2.0","id":ID,"result":{}}`, ""},
		"a line of something": {"PAD\n" + `{"jsonrpc":"2.0","id":ID,"result":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := server()
			o.MaxMessageBytes = limit
			s := dial(t, o, options())
			other := neighbour(t, s)
			_, err := try(t.Context(), s, "raw", string(contract.Quote(strings.ReplaceAll(test.frame, "PAD", pad))))
			if test.want == "" {
				require.NoError(t, err)
			} else {
				e := failure(t, err)
				require.Equal(t, mcpclient.Answered, e.Outcome)
				require.True(t, e.TooLarge)
				require.False(t, e.Retryable || e.Lost)
				require.Contains(t, e.Message, test.want)
				require.Contains(t, e.Message, "4000 bytes")
			}
			_, err = try(t.Context(), s, "size", fmt.Sprint(limit))
			require.NoError(t, err, "the session goes on")
			select {
			case err := <-other:
				require.NoError(t, err, "it still waits")
				require.Fail(t, "the other call has ended")
			default:
			}
		})
	}
}

func TestAnAnswerOverTheLimitThatMayBeOfAnyCallEndsTheSession(t *testing.T) {
	t.Parallel()

	o := server()
	o.MaxMessageBytes = 4000
	frame := string(contract.Quote(`{"result":"` + strings.Repeat("x", 100_000) + `","id":ID,"more":[]}`))
	s := dial(t, o, options())
	other := neighbour(t, s)
	_, err := try(t.Context(), s, "raw", frame)
	for _, err := range []error{err, <-other} {
		e := failure(t, err)
		require.Equal(t, mcpclient.Sent, e.Outcome)
		require.True(t, e.Lost && e.Retryable)
		require.NotContains(t, e.Message, "answer", "it is not to blame")
	}

	s = dial(t, o, options())
	_, err = try(t.Context(), s, "raw", frame)
	require.True(t, failure(t, err).TooLarge, "there is no other call that it may be of")
}

func TestAnAnswerWithoutEndEndsTheProcess(t *testing.T) {
	t.Parallel()

	s := dial(t, server(), options())
	other := neighbour(t, s)
	_, err := try(t.Context(), s, "endless", "")
	e := failure(t, err)
	require.True(t, e.TooLarge)
	require.Contains(t, e.Message, "more than 16777216 bytes")
	e = failure(t, <-other)
	require.True(t, e.Lost && e.Retryable)
	require.Contains(t, e.Message, "for another request")
	<-s.Done()
}
