package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// maxLine bounds a line of standard error in the log.
	maxLine = 8 << 10
	// readLine bounds what of a line is looked at. It is more than maxLine: secrets
	// are taken out first, and one that is cut in two would not be known.
	readLine = 64 << 10
	// lastLines and maxLastLine bound what an error quotes.
	lastLines   = 5
	maxLastLine = 500
)

// stderr logs what a process writes to its standard error, and keeps the end.
type stderr struct {
	file   io.ReadCloser
	redact func(string) string
	log    *slog.Logger
	done   chan struct{}

	mu    sync.Mutex
	lines []string
}

func readStderr(file io.ReadCloser, o Options) *stderr {
	s := &stderr{file: file, redact: o.Redact, log: o.Logger, done: make(chan struct{})}
	go s.read()
	return s
}

func (s *stderr) read() {
	defer close(s.done)
	r := bufio.NewReaderSize(s.file, readLine)
	for {
		line, err := r.ReadSlice('\n')
		s.take(line)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line without end
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func (s *stderr) take(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	text := s.redact(strings.ToValidUTF8(string(line), "\uFFFD"))
	s.log.Info("stderr", "line", clip(text, maxLine))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == lastLines {
		s.lines = slices.Delete(s.lines, 0, 1)
	}
	s.lines = append(s.lines, clip(text, maxLastLine))
}

// clip cuts a text between characters.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// last returns the last lines.
func (s *stderr) last() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// wait waits for the end of the file.
func (s *stderr) wait(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}

func (s *stderr) close() {
	s.wait(exitGrace) // what is in the pipe, where somebody still holds it open
	_ = s.file.Close()
	<-s.done
}
