package mcpclient

import (
	"context"
	"encoding/json"
	"time"
)

// Transport opens connections to one upstream. It is safe for concurrent use.
type Transport interface {
	// Open connects. Its errors are an [*Error] with [NotSent], or ctx's.
	Open(ctx context.Context, h Handler) (Link, error)
	// FreshAfterProbe reports whether a peer that did not understand the modern
	// probe needs a new link for the older handshake, as a process does that
	// exits at, or waits after, a message that it does not know.
	FreshAfterProbe() bool
}

// Link carries JSON-RPC messages to one peer and back. It is safe for concurrent
// use.
type Link interface {
	// Exchange sends a request and returns the whole response object as it came:
	// JSON-RPC 2.0, with the request's ID, and either a result or an error. When
	// ctx ends it returns ctx's error at once; what is to be said to the peer of
	// that is the session's to say. Every other error is an [*Error].
	Exchange(ctx context.Context, m Message) (json.RawMessage, error)
	// Notify sends a notification. A link that tells the peer by itself that nobody
	// waits for a request, as the end of a response stream does in the modern
	// revisions, leaves [MethodCancelled] out.
	Notify(ctx context.Context, m Message) error
	// Negotiated tells which revision the peer speaks, once, after the handshake.
	// With listen a link that has a way to hear the peer's own messages opens it.
	Negotiated(version string, listen bool)
	// Done is closed when the link is of no more use; Err says why.
	Done() <-chan struct{}
	Err() error
	// Close ends the link in bounded time, whatever the peer does. It may be
	// called more than once.
	Close()
}

// Message is one outgoing JSON-RPC message. What a link needs for headers is
// stated beside the bytes, so that no link has to decode them.
type Message struct {
	// ID is the decimal text of the JSON-RPC ID, empty for a notification.
	ID     string
	Method string
	// Name is the tool, the prompt or the URI that a request is about.
	Name string
	// Version is the revision of a message that states it itself (2026-07-28 and
	// later); empty for the older ones.
	Version string
	// Headers are the arguments that the tool's schema asks to have as headers
	// (x-mcp-header), under their whole header names.
	Headers map[string]string
	// Data is the message: one JSON object without a line feed.
	Data json.RawMessage
	// Once is [Request.Once].
	Once bool
	// Sending, unless it is nil, is called right before the first byte may go out.
	Sending func()
}

// Handler takes what a peer sends by itself. The calls for one link come one
// after the other; they must not block.
type Handler interface {
	Notification(method string, params json.RawMessage)
	// Request answers a request of the peer; an error that is no
	// [contract.ProtocolError] becomes an internal error.
	Request(method string, params json.RawMessage) (json.RawMessage, error)
}

// Outcome says what became of a request that has no answer.
type Outcome int

// The outcomes.
const (
	// NotSent: the peer cannot have acted upon it. A server that says that it has
	// no such session has not either.
	NotSent Outcome = iota
	// Refused: the peer answered that it would not take it.
	Refused
	// Sent: it may have run.
	Sent
	// Answered: the peer answered, so it is done with it, and the answer is of no
	// use. The next one would be alike.
	Answered
)

// Error is the error of a request that has no answer, or of a connection that
// was not made.
type Error struct {
	Outcome Outcome
	// Lost reports that the session is gone: another one has to be made.
	Lost bool
	// Retryable reports whether the same may end otherwise later.
	Retryable bool
	// TooLarge reports that the answer is over the limit of a message.
	TooLarge bool
	// RetryAfter is the time that the peer asked to be left alone for; zero where
	// it did not say.
	RetryAfter time.Duration
	// Message is for callers, logs and history. It holds no address, no header
	// and nothing that the peer wrote.
	Message string
	// Detail says more, for logs only. It holds no secret.
	Detail string
	// Cause is for errors.Is; it may hold secrets and is not printed.
	Cause error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
