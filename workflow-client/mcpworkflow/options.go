package mcpworkflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	timeout      *time.Duration
	summary      string
	cancellation Cancellation
	key          string
	sentKey      string // key, or that of the round of the call
	headers      []header
	meta         json.RawMessage
	responses    json.RawMessage
	state        json.RawMessage
}

// WithTimeout bounds the call from its start to its end, in place of the timeout
// that the tool states; from 3 s on, which is the shortest that a Temporal server
// can keep. Zero is no bound. The time that the call waits for its turn is not
// counted.
func WithTimeout(d time.Duration) CallOption {
	return func(o *callOptions) { o.timeout = &d }
}

// WithSummary says in the UI of Temporal what the call is for, in one line of at
// most 200 bytes. Defaults to none.
func WithSummary(s string) CallOption {
	return func(o *callOptions) { o.summary = s }
}

// Cancellation says what a call does when the Workflow, or the scope of its
// context, is cancelled.
type Cancellation int

const (
	// WaitCompleted asks the service to cancel and waits for how the call ends:
	// that may be its result all the same.
	WaitCompleted Cancellation = iota
	// TryCancel asks the service to cancel and does not wait.
	TryCancel
	// Abandon leaves the call running and does not wait.
	Abandon
)

// WithCancellation says what the call does when its context is cancelled.
// Defaults to [WaitCompleted]. A call that is not waited for counts as pending
// until it ends.
func WithCancellation(c Cancellation) CallOption {
	return func(o *callOptions) { o.cancellation = c }
}

// WithIdempotencyKey names the call. The key travels as a header; a proxy hands
// it on to the upstream, the same with every attempt. Temporal itself attaches
// nothing to it: two calls of a Workflow with one key are two operations, and
// whether the second has an effect is up to the tool. With [WithInput] the call
// goes under a key of its own, made of this one. It needs [Interceptor].
func WithIdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.key = key }
}

// WithHeader sets a Nexus header of the call, such as traceparent. Headers show in
// Temporal's history: put no secret there. It needs [Interceptor].
func WithHeader(key, value string) CallOption {
	return func(o *callOptions) { o.headers = append(o.headers, header{strings.ToLower(key), value}) }
}

// WithMeta sends an object as the `_meta` of the call. Tools with the encoding
// "value" have no room for one, and do not get it.
func WithMeta(meta json.RawMessage) CallOption {
	return func(o *callOptions) { o.meta = meta }
}

// WithInput goes on with a call whose result asked for input
// ([contract.Result.NeedsInput]; MCP 2026-07-28, multi round-trip requests): the
// answers by their names, and the result's requestState as it came, nil for none.
// Only tools with the encoding "mcp" ask.
func WithInput(responses, requestState json.RawMessage) CallOption {
	return func(o *callOptions) { o.responses, o.state = responses, requestState }
}

func gather(options []CallOption) callOptions {
	var o callOptions
	for _, set := range options {
		if set != nil {
			set(&o)
		}
	}
	o.sentKey = o.key
	return o
}

// Limits of what travels beside the arguments.
const (
	maxSummaryBytes = 200 // encoded, it must stay below the server's 400
	maxKeyBytes     = 1024
)

// check returns every fault of the options.
func (o callOptions) check(intercepted bool) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.timeout != nil && *o.timeout != 0 && *o.timeout < contract.MinScheduleToClose {
		fault("WithTimeout: %v, the shortest that a Temporal server can keep is %v", *o.timeout, contract.MinScheduleToClose)
	}
	if len(o.summary) > maxSummaryBytes {
		fault("WithSummary: %d bytes, at most %d are allowed", len(o.summary), maxSummaryBytes)
	}
	if o.cancellation < WaitCompleted || o.cancellation > Abandon {
		fault("WithCancellation: %d is none of the constants", o.cancellation)
	}
	if len(o.key) > maxKeyBytes {
		fault("WithIdempotencyKey: %d bytes, at most %d are allowed", len(o.key), maxKeyBytes)
	}
	if !printable(o.key) {
		fault("WithIdempotencyKey: it has a control character, or bytes that are not UTF-8")
	}
	size := 0
	for _, h := range o.headers {
		size += len(h.key) + len(h.value)
		if err := h.check(); err != nil {
			fault("WithHeader: %.80q: %w", h.key, err)
		}
	}
	if size += len(o.sentKey) + ownHeaderBytes; size > contract.MaxHeaderBytes {
		fault("WithHeader: %d bytes in all, at most %d are allowed", size, contract.MaxHeaderBytes)
	}
	if !intercepted && (o.key != "" || len(o.headers) > 0) {
		fault("the call has headers, and the Worker lacks mcpworkflow.Interceptor(): " +
			"add it to worker.Options.Interceptors, since the Go SDK sets Nexus headers in no other way. " +
			"With it a Workflow does other things, so give the Worker a new version, or let the runs end first")
	}
	return errors.Join(errs...)
}

// ownHeaderBytes is what the headers take that the package sets, without the key.
const ownHeaderBytes = len(contract.HeaderCaller) + 16 + len(contract.HeaderIdempotencyKey)

// reservedHeaders are set by Temporal and the Nexus SDK, or by this package.
var reservedHeaders = []string{
	"request-timeout", "operation-timeout", contract.HeaderCaller, contract.HeaderIdempotencyKey,
}

func (h header) check() error {
	switch {
	case h.key == "":
		return errors.New("the key is empty")
	case strings.ContainsFunc(h.key, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }):
		return errors.New("a key has letters, digits and punctuation of ASCII only, and no space or colon")
	case slices.Contains(reservedHeaders, h.key), strings.HasPrefix(h.key, "content-"), strings.HasPrefix(h.key, "nexus-"):
		return errors.New("the key is reserved")
	case !printable(h.value):
		return errors.New("the value has a control character, or bytes that are not UTF-8")
	}
	return nil
}

// printable reports whether Temporal takes the text as a header's value.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
