package streamable

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// errTooLarge ends the reading of a body or an event over the limit.
var errTooLarge = errors.New("streamable: over the size limit")

// bom is a byte order mark in UTF-8.
const bom = "\xef\xbb\xbf"

// lineOverhead is what a line may have beside its data: a field name and a colon.
const lineOverhead = 64

// event is one server-sent event.
type event struct {
	name  string
	data  []byte
	id    string
	hasID bool
	retry time.Duration // zero: not stated
	// partial: the stream ended before the blank line that dispatches it.
	partial bool
}

// events reads an event stream as the HTML standard says (section 9.2.6), with a
// limit for what one event holds. Comments do not count: they are dropped as they
// come.
type events struct {
	r      *bufio.Reader
	limit  int64
	line   []byte
	skipLF bool // the line before ended in CR, which may be half of CRLF
	begun  bool
	err    error
	large  []byte // the start of the data of an event over the limit
}

func newEvents(r io.Reader, limit int64) *events {
	return &events{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// next returns the next event, including one without data that has an ID or a
// retry time. An event that the end of the stream cut short comes marked partial,
// before the error.
func (s *events) next() (event, error) {
	var ev event
	stated, data := false, false
	for s.err == nil {
		line, err := s.readLine(s.limit - int64(len(ev.data)) + lineOverhead)
		if errors.Is(err, errTooLarge) {
			s.err = err
			if s.large = ev.data; !data {
				_, value, _ := bytes.Cut(s.line, []byte(":"))
				s.large = bytes.Clone(value)
			}
			return event{}, err
		}
		if err != nil {
			s.err = err
			if len(line) == 0 && !data {
				break
			}
			ev.partial = true
		} else if len(line) == 0 {
			if stated {
				return ev, nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if data {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
			stated, data = true, true
		case "event":
			ev.name, stated = string(value), true
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				ev.id, ev.hasID, stated = string(value), true, true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.retry, stated = time.Duration(ms)*time.Millisecond, true
			}
		}
		if int64(len(ev.data)) > s.limit {
			s.err, s.large = errTooLarge, ev.data
			return event{}, errTooLarge
		}
		if ev.partial {
			return ev, nil
		}
	}
	return event{}, s.err
}

// readLine reads up to CR, LF or CRLF, without waiting for what may follow a CR.
// The line is valid until the next call; at an error it is what came before.
func (s *events) readLine(limit int64) ([]byte, error) {
	s.line = s.line[:0]
	for {
		if _, err := s.r.Peek(1); err != nil {
			return s.line, err
		}
		buffered, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if buffered[0] == '\n' {
				_, _ = s.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(buffered, "\r\n")
		chunk := buffered
		if end >= 0 {
			chunk = buffered[:end]
		}
		// Of a comment its colon is enough.
		if len(s.line) == 0 || s.line[0] != ':' {
			s.line = append(s.line, chunk...)
			if s.line = s.trimBOM(s.line, end >= 0); len(s.line) > 0 && s.line[0] == ':' {
				s.line = s.line[:1]
			}
			if int64(len(s.line)) > limit {
				return nil, errTooLarge
			}
		}
		if end < 0 {
			_, _ = s.r.Discard(len(chunk))
			continue
		}
		s.skipLF = buffered[end] == '\r'
		_, _ = s.r.Discard(end + 1)
		return s.line, nil
	}
}

// trimBOM takes a byte order mark off the start of the stream.
func (s *events) trimBOM(line []byte, whole bool) []byte {
	if s.begun || len(line) < len(bom) && !whole {
		return line
	}
	s.begun = true
	return bytes.TrimPrefix(line, []byte(bom))
}
