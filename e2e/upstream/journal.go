package upstream

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Entry is one line of the journal.
type Entry struct {
	Event   string              `json:"event"` // one of the constants below
	PID     int                 `json:"pid"`
	At      time.Time           `json:"at"`
	Method  string              `json:"method,omitempty"`
	Tool    string              `json:"tool,omitempty"`
	Key     string              `json:"key,omitempty"` // the "key" of a call's arguments
	Session string              `json:"session,omitempty"`
	Text    string              `json:"text,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"` // of a request over HTTP
	Params  json.RawMessage     `json:"params,omitempty"`  // of a request or notification, as they came
}

// What an [Entry] tells.
const (
	EventStart     = "start"     // a process began; Text has what made it
	EventChild     = "child"     // a grandchild of the client began; PID is its own
	EventRequest   = "request"   // a request or notification came
	EventRun       = "run"       // a tool has had its effect
	EventAnswer    = "answer"    // the answer to a call goes out
	EventCancelled = "cancelled" // a call under way heard that it is cancelled
	EventFault     = "fault"     // a fault took place; Text has its name
	EventViolation = "violation" // the client broke a rule; Text says which
	EventDelete    = "delete"    // a session was ended by its client
	EventToken     = "token"     // an access token was handed out
	EventAnswered  = "answered"  // the client answered a request of the server; Params has the message
)

// JournalPath is the journal of a directory, for those who read it as it grows.
func JournalPath(dir string) string { return filepath.Join(dir, "journal") }

type journal struct{ path string }

func (j journal) add(e Entry) {
	if e.PID == 0 {
		e.PID = os.Getpid()
	}
	e.At = time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	if e.Event == EventRun {
		if err := f.Sync(); err != nil {
			panic(err)
		}
	}
}

// runs counts how often a call with the key has had its effect, over all processes.
func (j journal) runs(tool, key string) int {
	entries, _ := ReadJournal(filepath.Dir(j.path))
	n := 0
	for _, e := range entries {
		if e.Event == EventRun && e.Tool == tool && e.Key == key {
			n++
		}
	}
	return n
}

// ReadJournal returns what the servers of a directory have written until now.
func ReadJournal(dir string) ([]Entry, error) {
	data, err := os.ReadFile(JournalPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// locked runs f while no other process does so in the directory.
func locked(dir string, f func() error) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return f()
}
