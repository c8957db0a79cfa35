package harness

import (
	"encoding/json"
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
func (m Message) Decode(t testing.TB, v any) {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.Raw)
	require.NotNil(t, m.Result, "%s", m.Raw)
	require.NoError(t, json.Unmarshal(m.Result, v), "%s", m.Raw)
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
func (m Message) ToolResult(t testing.TB) ToolResult {
	t.Helper()
	r := ToolResult{Raw: m.Result}
	m.Decode(t, &r)
	require.NotNil(t, r.Content, "a result without content: %s", m.Raw)
	return r
}

// Text returns the text of the only content block.
func (r ToolResult) Text(t testing.TB) string {
	t.Helper()
	require.Len(t, r.Content, 1, "%s", r.Raw)
	var block struct{ Type, Text string }
	require.NoError(t, json.Unmarshal(r.Content[0], &block))
	require.Equal(t, "text", block.Type)
	return block.Text
}

// Running is the structured content of a running result.
type Running struct {
	Status      string `json:"status"`
	OperationID string `json:"operation_id"`
}

// Running returns the operation ID of a result that says: still running. It
// fails the test if the result says something else.
func (r ToolResult) Running(t testing.TB) string {
	t.Helper()
	require.False(t, r.IsError, "%s", r.Raw)
	var state Running
	require.NoError(t, json.Unmarshal(r.Structured, &state), "%s", r.Raw)
	require.Equal(t, "running", state.Status, "%s", r.Raw)
	require.NotEmpty(t, state.OperationID)
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
func (b *Inbox) Await(t testing.TB, what string, match func(Message) bool) Message {
	t.Helper()
	m, ok := b.Find(Patience, match)
	if !ok {
		var got string
		for _, m := range b.All() {
			got += "\n" + string(m.Raw[:min(len(m.Raw), 1000)])
		}
		require.FailNow(t, "there is no "+what, "got:%s\nother lines: %q", got, b.Other())
	}
	return m
}

// AwaitEnd waits until the stream has ended.
func (b *Inbox) AwaitEnd(t testing.TB) {
	t.Helper()
	_, _ = b.Find(Patience, func(Message) bool { return false })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.True(t, b.ended, "the stream does not end")
}

// IsAnswer matches the answer to a request.
func IsAnswer(id string) func(Message) bool {
	return func(m Message) bool { return m.Method == "" && string(m.ID) == id }
}

// IsNotification matches notifications of a method.
func IsNotification(method string) func(Message) bool {
	return func(m Message) bool { return m.Method == method && m.ID == nil }
}
