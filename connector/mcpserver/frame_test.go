package mcpserver

// Internal tests of what takes bytes from strangers: the properties of each part
// do not show from outside.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func TestReadLine(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("a", MaxFrameBytes)
	r := bufio.NewReaderSize(strings.NewReader("one\n"+long+"\ntwo\n"+long[1:]+"\n\nlast"), 4096)
	line, err := readLine(r)
	require.NoError(t, err)
	require.Equal(t, "one\n", string(line))
	_, err = readLine(r)
	require.ErrorIs(t, err, errFrameTooLong)
	line, err = readLine(r)
	require.NoError(t, err, "the line after one that is too long is whole")
	require.Equal(t, "two\n", string(line))
	line, err = readLine(r)
	require.NoError(t, err, "a line of just the limit")
	require.Len(t, line, MaxFrameBytes)
	line, err = readLine(r)
	require.NoError(t, err)
	require.Equal(t, "\n", string(line))
	line, err = readLine(r)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "last", string(line))
}

// FuzzStdio feeds lines to a connection whose session does nothing: each line is
// a message, an answer that says what is wrong, or nothing.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1e400}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[]`, `{`, "\x00\xff", "{}\n\n{}", `{"jsonrpc":"2.0","id":null,"method":"a"}`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"initialize"}` + "\n" +
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1.0,"method":"ping"},7,{"jsonrpc":"2.0","method":"x"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		c := newStdioConn(bytes.NewReader(in), &out)
		messages := 0
		for ended := false; !ended; {
			select {
			case msg := <-c.messages:
				messages++
				if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
					require.NoError(t, c.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(`{"protocolVersion":"2025-03-26"}`)}))
				}
			case <-c.inputEnded:
				ended = true
			}
		}
		c.drain()
		<-c.idle
		require.LessOrEqual(t, messages, bytes.Count(in, []byte("{")))
		for line := range bytes.Lines(out.Bytes()) {
			require.True(t, json.Valid(line), "%q", line)
		}
	})
}

// FuzzIDs: an ID comes back as it went in, whatever surrounds it.
func FuzzIDs(f *testing.F) {
	for _, seed := range []string{`1`, `9007199254740993`, `-0`, `1e3`, `"a"`, `"\ud800"`, `"<\u0000"`, `123456789012345678901234567890`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, id []byte) {
		message, err := json.Marshal(map[string]json.RawMessage{"method": json.RawMessage(`"a"`), "id": id})
		if err != nil {
			return // no JSON
		}
		id = requestID(message)
		if id == nil || checkID(id) != "" {
			return // it is refused, and never encoded
		}
		encoded := encodeID(id)
		require.True(t, echoed(encoded))
		require.Equal(t, `{"id":`+string(id)+`,"x":[`+string(id)+`]}`, string(decodeIDs([]byte(`{"id":`+string(encoded)+`,"x":[`+string(encoded)+`]}`))))
	})
}

func FuzzPeek(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, `{"method":1}`, `{"method":"a","method":"b"}`, `[]`, `{`, `{"params":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, params := peek(body)
		if params != nil {
			require.True(t, json.Valid(params))
		}
		require.Len(t, representable(body), len(body))
		if json.Valid(body) {
			require.True(t, json.Valid(representable(body)))
			var v any
			require.NoError(t, json.Unmarshal(representable(body), &v))
		}
	})
}
