package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Message is one JSON-RPC message as it came.
type Message struct {
	Raw    json.RawMessage `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *RPCError       `json:"error"`
	// At is when it came.
	At time.Time `json:"-"`
}

// RPCError is a JSON-RPC error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func parseMessage(raw []byte) (Message, error) {
	m := Message{Raw: raw, At: time.Now()}
	return m, json.Unmarshal(raw, &m)
}

// Decode decodes the result.
func (m Message) Decode(tb testing.TB, v any) {
	tb.Helper()
	require.Nil(tb, m.Error, "%s", m.Raw)
	require.NotNil(tb, m.Result, "%s", m.Raw)
	require.NoError(tb, json.Unmarshal(m.Result, v), "%s", m.Raw)
}

// ToolResult is a CallToolResult with its values as bytes.
type ToolResult struct {
	Raw        json.RawMessage            `json:"-"`
	ResultType string                     `json:"resultType"`
	Content    []json.RawMessage          `json:"content"`
	Structured json.RawMessage            `json:"structuredContent"`
	IsError    bool                       `json:"isError"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

// ToolResult decodes the result of tools/call.
func (m Message) ToolResult(tb testing.TB) ToolResult {
	tb.Helper()
	r := ToolResult{Raw: m.Result}
	m.Decode(tb, &r)
	require.NotNil(tb, r.Content, "a result without content: %s", m.Raw)
	return r
}

// Text returns the text of the only content block.
func (r ToolResult) Text(tb testing.TB) string {
	tb.Helper()
	require.Len(tb, r.Content, 1, "%s", r.Raw)
	var block struct{ Type, Text string }
	require.NoError(tb, json.Unmarshal(r.Content[0], &block))
	require.Equal(tb, "text", block.Type)
	return block.Text
}

// Running is the structured content of a running result.
type Running struct {
	Status      string `json:"status"`
	OperationID string `json:"operation_id"`
}

// Running returns the operation ID of a result that says: still running. It
// fails the test if the result says something else.
func (r ToolResult) Running(tb testing.TB) string {
	tb.Helper()
	require.False(tb, r.IsError, "%s", r.Raw)
	var state Running
	require.NoError(tb, json.Unmarshal(r.Structured, &state), "%s", r.Raw)
	require.Equal(tb, "running", state.Status, "%s", r.Raw)
	require.NotEmpty(tb, state.OperationID)
	return state.OperationID
}

// Inbox holds messages in the order in which they came.
type Inbox struct {
	mu      sync.Mutex
	list    []Message
	other   []string // lines that are no messages
	changed chan struct{}
	ended   bool
}

func newInbox() *Inbox { return &Inbox{changed: make(chan struct{})} }

func (b *Inbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Inbox) add(raw []byte) {
	m, err := parseMessage(raw)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.other = append(b.other, string(raw))
	} else {
		b.list = append(b.list, m)
	}
	b.wake()
}

func (b *Inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.wake()
}

// All returns what has come until now.
func (b *Inbox) All() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Message(nil), b.list...)
}

// Other returns the lines that were no messages.
func (b *Inbox) Other() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.other...)
}

// Find returns the first message that matches, waiting for it until the end of
// the stream or of the time. ok is false if there is none.
func (b *Inbox) Find(within time.Duration, match func(Message) bool) (m Message, ok bool) {
	last := time.NewTimer(within)
	defer last.Stop()
	for seen := 0; ; {
		b.mu.Lock()
		list, changed, ended := b.list, b.changed, b.ended
		b.mu.Unlock()
		for ; seen < len(list); seen++ {
			if match(list[seen]) {
				return list[seen], true
			}
		}
		if ended {
			return Message{}, false
		}
		select {
		case <-changed:
		case <-last.C:
			return Message{}, false
		}
	}
}

// Await is [Inbox.Find] for what must come.
func (b *Inbox) Await(tb testing.TB, what string, match func(Message) bool) Message {
	tb.Helper()
	m, ok := b.Find(Patience, match)
	if !ok {
		var got strings.Builder
		for _, m := range b.All() {
			fmt.Fprintf(&got, "\n%s", m.Raw[:min(len(m.Raw), 1000)])
		}
		require.FailNow(tb, "there is no "+what, "got:%s\nother lines: %q", got.String(), b.Other())
	}
	return m
}

// AwaitEnd waits until the stream has ended.
func (b *Inbox) AwaitEnd(tb testing.TB) {
	tb.Helper()
	_, _ = b.Find(Patience, func(Message) bool { return false })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.True(tb, b.ended, "the stream does not end")
}

// IsAnswer matches the answer to a request.
func IsAnswer(id string) func(Message) bool {
	return func(m Message) bool { return m.Method == "" && string(m.ID) == id }
}

// IsNotification matches notifications of a method.
func IsNotification(method string) func(Message) bool {
	return func(m Message) bool { return m.Method == method && m.ID == nil }
}
