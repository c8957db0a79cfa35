package stdio

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

// scanner divides what a process writes into messages, one a line.
type scanner struct {
	r     *bufio.Reader
	limit int64
	// within bounds the next reads; zero takes the bound off.
	within func(time.Duration)
}

func newScanner(r io.Reader, limit int64, within func(time.Duration)) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 32<<10), limit: limit, within: within}
}

// next returns the next message with its line feed. What the process wrote last,
// without one, comes as no message. One over the limit comes as over, and with the
// error of its end, if that has not come.
func (s *scanner) next() (frame json.RawMessage, over *mcpclient.Oversize, err error) {
	for {
		part, err := s.r.ReadSlice('\n')
		frame = append(frame, part...)
		switch {
		case int64(len(frame)) > s.limit:
			over, err := s.skip(frame, err)
			return nil, over, err
		case err == nil:
			return frame, nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, nil, err
		}
	}
}

// What of a message over the limit is read, so that the process can go on.
const (
	maxSkip  = 64 << 20
	skipIdle = 30 * time.Second // for each part
	keptEnd  = 256              // can show whose answer it is
)

// skip reads a message over the limit up to its end, if that comes. Its error is
// [bufio.ErrBufferFull] for one that has none within what is read.
func (s *scanner) skip(start []byte, err error) (*mcpclient.Oversize, error) {
	o := &mcpclient.Oversize{Start: start, Size: int64(len(start)), Limit: s.limit}
	defer s.within(0)
	for errors.Is(err, bufio.ErrBufferFull) && o.Size-o.Limit <= maxSkip {
		var part []byte
		s.within(skipIdle)
		part, err = s.r.ReadSlice('\n')
		o.Size += int64(len(part))
		o.End = append(o.End, part...)
		o.End = slices.Clone(o.End[max(0, len(o.End)-keptEnd):])
	}
	return o, err
}
