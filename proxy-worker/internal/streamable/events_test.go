package streamable

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func readEvents(r io.Reader, limit int64) ([]event, error) {
	s := newEvents(r, limit)
	var all []event
	for {
		ev, err := s.next()
		if err != nil {
			return all, err
		}
		all = append(all, ev)
	}
}

func show(all []event) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%q %q id %q %t retry %v partial %t\n", e.name, e.data, e.id, e.hasID, e.retry, e.partial)
	}
	return b.String()
}

func TestEvents(t *testing.T) {
	t.Parallel()
	data := func(s ...string) (all []event) {
		for _, d := range s {
			all = append(all, event{data: []byte(d)})
		}
		return all
	}
	for name, c := range map[string]struct {
		in   string
		want []event
	}{
		"LF":              {"data: a\n\ndata: b\n\n", data("a", "b")},
		"CRLF":            {"data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")},
		"CR":              {"data: a\r\rdata: b\r\r", data("a", "b")},
		"mixed":           {"data: a\r\n\ndata: b\n\r\n", data("a", "b")},
		"lines":           {"data: a\ndata:b\ndata\ndata:  c\n\n", data("a\nb\n\n c")},
		"comments":        {": hi\n:\ndata: a\n: data: x\n\n: bye\n\n", data("a")},
		"byte order mark": {"\xef\xbb\xbfdata: a\n\n", data("a")},
		"only one mark":   {"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", data("b")},
		"unknown fields":  {"foo: x\ndata: a\nDATA: y\ndata : z\n\n", data("a")},
		"colons":          {"data: a: b\n\n", data("a: b")},
		"no data":         {"event: x\nid: 3\nretry: 1500\n\n", []event{{name: "x", id: "3", hasID: true, retry: 1500 * time.Millisecond}}},
		"empty data":      {"id: 1\ndata:\n\n", []event{{id: "1", hasID: true, data: nil}}},
		"ID taken back":   {"id\ndata: a\n\n", []event{{hasID: true, data: []byte("a")}}},
		"ID with NUL":     {"id: a\x00b\ndata: a\n\n", data("a")},
		"retry in words":  {"retry: soon\ndata: a\n\n", data("a")},
		"retry negative":  {"retry: -1\ndata: a\n\n", data("a")},
		"empty":           {"\n\n\r\n", nil},
		"cut":             {"data: a\n\ndata: b", append(data("a"), event{data: []byte("b"), partial: true})},
		"no blank line":   {"data: a\n", []event{{data: []byte("a"), partial: true}}},
		"cut field":       {"data: a\n\nda", append(data("a"), event{partial: true})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				got, err := readEvents(r, 1000)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, show(c.want), show(got))
			}
		})
	}
}

func TestEventLimit(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, c := range map[string]struct {
		in string
		ok bool
	}{
		"at the limit":   {"data: " + strings.Repeat("x", limit) + "\n\n", true},
		"over it":        {"data: " + strings.Repeat("x", limit+1) + "\n\n", false},
		"many lines":     {strings.Repeat("data: xxxxxxxxx\n", 101) + "\n", false},
		"unknown field":  {"x: " + strings.Repeat("x", 2*limit) + "\n\n", false},
		"long name":      {"event: " + strings.Repeat("x", 2*limit) + "\n\n", false},
		"many comments":  {strings.Repeat(": keep-alive\n", 1000) + "data: a\n\n", true},
		"a long comment": {":" + strings.Repeat("x", 100*limit) + "\ndata: a\n\n", true},
		"many events":    {strings.Repeat("data: xxxxxxxxxxxx\n\n", 1000), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readEvents(iotest.HalfReader(strings.NewReader(c.in)), limit)
			if c.ok {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.ErrorIs(t, err, errTooLarge)
			}
		})
	}
}
