package streamable

// Internal tests of what a hostile server can send: the parts of an answer do not show
// from outside.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// What an event holds does not depend on how the bytes arrive.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfid: 1\r\ndata: a\rdata: b\n\n:\n\ndata"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readEvents(bytes.NewReader(in), 100)
		bytewise, err2 := readEvents(iotest.OneByteReader(bytes.NewReader(in)), 100)
		require.Equal(t, err, err2)
		require.Equal(t, whole, bytewise)
		for _, ev := range whole {
			require.LessOrEqual(t, len(ev.data), 100)
		}
	})
}

// planted stands for what a server repeats of the secrets that it was sent.
const planted = "pl4nted-s3cret"

// sink is a server that takes everything.
type sink struct{}

func (sink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func fuzzed(f *testing.F) *Transport {
	f.Helper()
	t, err := New(Options{URL: "https://me:" + planted + "@example.com/mcp", Client: &http.Client{Transport: sink{}}, MaxMessageBytes: 4 << 10})
	require.NoError(f, err)
	return t
}

type nobody struct{}

func (nobody) Notification(string, json.RawMessage) {}

func (nobody) Request(string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("nothing is answered here")
}

// FuzzAnswer: a response of any kind is the response to the request, or an error that
// repeats nothing of it.
func FuzzAnswer(f *testing.F) {
	const good = `{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`
	for _, seed := range []struct {
		status     int
		kind, wait string
		body       string
	}{
		{200, mediaJSON, "", good},
		{200, mediaEvents, "", "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}\n\ndata: " + good + "\n\n"},
		{200, mediaEvents, "", "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\n\ndata: {\"id\":7,\"jsonrpc\":\"2.0\",\"result\":NaN}\n\n"},
		{200, "application/json; charset=utf-8", "", "\xef\xbb\xbf" + good},
		{200, "text/html", "", planted}, {202, "", "", ""}, {204, "", "", ""},
		{400, mediaJSON, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"` + planted + `"}}`},
		{404, mediaJSON, "", `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"` + planted + `"}}`},
		{429, "", "3", planted}, {503, "", "Wed, 21 Oct 2099 07:28:00 GMT", ""}, {500, mediaJSON, "-1", `[` + good + `]`},
		{200, mediaJSON, "", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}`},
	} {
		f.Add(uint16(seed.status), seed.kind, seed.wait, []byte(seed.body), "session", true)
		f.Add(uint16(seed.status), seed.kind, seed.wait, []byte(seed.body), "\x7f", false)
	}
	transport := fuzzed(f)
	f.Fuzz(func(t *testing.T, status uint16, kind, wait string, body []byte, id string, session bool) {
		l := newLink(transport, nobody{})
		defer l.Close()
		resp := &http.Response{
			StatusCode: 100 + int(status)%900, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"Content-Type": {kind}, "Retry-After": {wait}, headerSession: {id}},
		}
		m := mcpclient.Message{ID: "7", Method: "tools/call", Version: "2026-07-28"}
		if !session {
			m.Method = methodInitialize
		}
		raw, last, err := l.answer(t.Context(), m, resp, session)
		require.NotNil(t, last)
		if err != nil {
			e := &mcpclient.Error{}
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Message+e.Detail, planted)
			require.LessOrEqual(t, e.RetryAfter, maxRetryAfter)
			require.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
			require.NotContains(t, e.Message, "\n")
			return
		}
		in, err := mcpclient.DecodeIncoming(raw)
		require.NoError(t, err)
		require.NoError(t, in.Fault)
		require.True(t, in.IsResponse())
		require.True(t, string(in.ID) == "7" || in.ID == nil, "the answer to another request: %s", in.ID)
		require.True(t, bytes.Contains(body, raw) || bytes.Contains(raw, []byte("\n")), "the answer is not what came")
		header, _ := l.header()
		for _, c := range []byte(header.Get(headerSession)) {
			require.True(t, c > ' ' && c < 0x7f)
		}
	})
}

// FuzzAddress: no address that a server names leads elsewhere, with what the requests
// have in them.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"/messages?id=1", "https://example.com:443/x", "https://example.com.evil.com/", "//evil.com/x", `\\evil.com`, "http://example.com/", "https://user:pw@example.com/",
		"https://EXAMPLE.com", "?x", "#", "", "\x00", "https://example.com@evil.com/", "mailto:a@example.com", "https:evil.com",
	} {
		f.Add([]byte(seed))
	}
	transport := fuzzed(f)
	f.Fuzz(func(t *testing.T, named []byte) {
		u, err := transport.postAddress(named)
		if err != nil {
			e := &mcpclient.Error{}
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Message+e.Detail, planted)
			return
		}
		// As net/http reads it.
		again, err := url.Parse(u.String())
		require.NoError(t, err)
		require.Equal(t, "https", again.Scheme)
		require.True(t, strings.EqualFold("example.com", again.Hostname()), again.Host)
		require.Contains(t, []string{"", "443"}, again.Port())
		require.Equal(t, transport.url.User, again.User)
	})
}

// FuzzHeaderValue: any text goes through a header and back.
func FuzzHeaderValue(f *testing.F) {
	for _, seed := range []string{"plain", "ünï", " a", "a\t", "=?base64?YQ==?=", "=?base64??=", "a\r\nX-Evil: 1", "\xff", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := encodeValue(text)
		require.True(t, ValidValue(value))
		require.Equal(t, strings.TrimSpace(value), value, "HTTP takes off the space around it")
		if coded, ok := strings.CutPrefix(value, "=?base64?"); ok && strings.HasSuffix(coded, "?=") {
			plain, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(coded, "?="))
			require.NoError(t, err)
			value = string(plain)
		}
		require.Equal(t, text, value)

		checked, err := checkHeaders(http.Header{text: {text}}, true)
		if err == nil {
			require.True(t, ValidName(text) && ValidValue(text) && !Owned(text))
			require.Len(t, checked, 1)
		}
		wait := retryAfter(http.Header{"Retry-After": {text}})
		require.GreaterOrEqual(t, wait, time.Duration(0))
		if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
			require.Equal(t, time.Duration(seconds)*time.Second, wait)
		}
	})
}
