package stdio

// Internal tests of what a process writes: its bytes, without the process.

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/redact"
)

// FuzzFrames: lines come whole, in order and once, however the bytes arrive; one over
// the limit is told by its size, and what follows it comes.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"a\nb\n", "\n\n", "no end", strings.Repeat("x", 100) + "\nafter\n", strings.Repeat("y", 40_000) + "\nz\n", "\r\n\x00\n"} {
		f.Add([]byte(seed), uint16(50))
		f.Add([]byte(seed), uint16(39_999))
	}
	f.Fuzz(func(t *testing.T, in []byte, limit uint16) {
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.HalfReader(bytes.NewReader(in))} {
			bound := time.Duration(-1)
			s := newScanner(r, int64(limit), func(d time.Duration) { bound = d })
			rest := in
			for {
				frame, over, err := s.next()
				line, after, whole := bytes.Cut(rest, []byte("\n"))
				if whole {
					line = rest[:len(line)+1]
				}
				if over != nil {
					require.EqualValues(t, len(line), over.Size)
					require.Greater(t, over.Size, over.Limit)
					require.True(t, bytes.HasPrefix(line, over.Start))
					require.True(t, bytes.HasSuffix(line[len(over.Start):], over.End))
					require.LessOrEqual(t, len(over.Start), int(limit)+(32<<10))
					require.Equal(t, whole, err == nil)
					require.Zero(t, bound, "a bound stays on later reads")
				} else if err == nil {
					require.Equal(t, string(line), string(frame))
				}
				if err != nil {
					require.False(t, whole)
					require.NotErrorIs(t, err, bufio.ErrBufferFull)
					break
				}
				rest = after
			}
		}
	})
}

// FuzzStderr: of what a process prints no secret reaches the log or an error, and an
// error quotes little of it.
func FuzzStderr(f *testing.F) {
	const planted = "pl4nted-s3cret"
	for _, seed := range []string{"started\n", "token " + planted + "\n", strings.Repeat("é", 5000), "\xff" + planted, "\n\n \n", strings.Repeat("a\n", 9) + "last"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var log bytes.Buffer
		s := readStderr(io.NopCloser(bytes.NewReader(in)), Options{
			Redact: redact.New(planted), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		s.close()
		require.NotContains(t, log.String(), planted)
		last := s.last()
		require.LessOrEqual(t, len(last), lastLines)
		for _, line := range last {
			require.NotContains(t, line, planted)
			require.True(t, utf8.ValidString(line))
			require.LessOrEqual(t, len(line), maxLastLine+len("…"))
			require.NotContains(t, line, "\n")
		}
	})
}
