package chaos_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/upstream"
	"github.com/stretchr/testify/require"
)

// ledger counts the executions of each key from the journals on disk.
type ledger struct {
	tools, upstream tail

	mu   sync.Mutex
	runs map[string]int
}

func newLedger(tools, upstream string) *ledger {
	return &ledger{tools: tail{path: tools}, upstream: tail{path: upstream}, runs: map[string]int{}}
}

// read takes over what the journals have had since the last time.
func (l *ledger) read(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.tools.lines(t) {
		l.runs[string(line)]++
	}
	for _, line := range l.upstream.lines(t) {
		if !bytes.Contains(line, []byte(`"`+upstream.EventRun+`"`)) {
			continue
		}
		var e upstream.Entry
		require.NoError(t, json.Unmarshal(line, &e), "%s", line)
		if e.Event == upstream.EventRun {
			l.runs[e.Key]++
		}
	}
}

// executions is how often a call has been executed, as of the last read.
func (l *ledger) executions(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[key]
}

// tail reads a file that others append to.
type tail struct {
	path string
	at   int64
}

// lines returns the complete lines that are new.
func (f *tail) lines(t *testing.T) [][]byte {
	t.Helper()
	file, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(f.at, io.SeekStart)
	require.NoError(t, err)
	data, err := io.ReadAll(file)
	require.NoError(t, err)
	end := bytes.LastIndexByte(data, '\n') + 1
	f.at += int64(end)
	if end == 0 {
		return nil
	}
	return bytes.Split(data[:end-1], []byte("\n"))
}
