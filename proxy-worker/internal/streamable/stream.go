package streamable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

const (
	maxTries   = 5                // in a row without a new event
	firstRetry = time.Second      // unless the server says another
	maxRetry   = 30 * time.Second // also for what the server says
)

// position is where a stream is to go on.
type position struct {
	id    string
	retry time.Duration
	seen  int // events so far
}

// errEnded is the end of a stream that its server ended.
var errEnded = errors.New("streamable: the stream ended")

// follow reads the stream of a request up to its answer. A stream that breaks is
// resumed where the server gave its events IDs, which those of 2026-07-28 and
// later do not.
func (l *link) follow(ctx context.Context, m mcpclient.Message, body io.ReadCloser) (json.RawMessage, io.ReadCloser, error) {
	var at position
	idle := 0 // streams in a row that ended soon, and on which nothing came
	for {
		seen, opened := at.seen, time.Now()
		answer, err := l.read(newEvents(body, l.t.max), m.ID, &at)
		if answer != nil {
			return answer, body, nil
		}
		if ctx.Err() != nil {
			return nil, body, ctx.Err()
		}
		if me, ok := errors.AsType[*malformedError](err); ok {
			return nil, body, me.of(m.Method)
		}
		if errors.Is(err, errTooLarge) {
			return nil, body, mcpclient.TooLarge(m.Method, 0, l.t.max)
		}
		broken := l.t.noAnswer("the server's stream ended before its answer", err)
		if idle++; at.seen != seen || time.Since(opened) > maxRetry {
			idle = 0
		}
		if m.Version != "" || at.id == "" || idle == maxTries {
			return nil, body, broken
		}
		_ = body.Close()
		resumed, err := l.resume(ctx, at)
		if err != nil {
			if ctx.Err() != nil {
				return nil, body, ctx.Err()
			}
			broken.Lost = isLost(err)
			return nil, body, broken
		}
		body = resumed
	}
}

// resume opens a stream again after the last event seen.
func (l *link) resume(ctx context.Context, at position) (io.ReadCloser, error) {
	wait := cmp.Or(at.retry, firstRetry)
	for try := 1; ; try++ {
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
		body, err := l.open(ctx, at)
		if err == nil {
			return body, nil
		}
		if try == maxTries || !isTransient(err) {
			return nil, err
		}
		wait = min(2*wait, maxRetry)
	}
}

// listen keeps the stream open on which the server speaks by itself. It has no
// say over the session: a server without such a stream (405), or one that fails,
// is heard at its next answer.
func (l *link) listen() {
	var at position
	wait := firstRetry
	for failures := 0; failures < maxTries; {
		body, err := l.open(l.ctx, at)
		if err != nil {
			if l.ctx.Err() != nil || !isTransient(err) {
				l.t.log.Debug("the server has no stream of its own", "error", err)
				return
			}
			failures++
		} else {
			seen, opened := at.seen, time.Now()
			_, err := l.read(newEvents(body, l.t.max), "", &at)
			_ = body.Close()
			if errors.Is(err, errTooLarge) {
				l.t.log.Warn("a message of the server is over the size limit; its stream is given up")
				return
			}
			if at.seen != seen || time.Since(opened) > maxRetry {
				failures, wait = 0, firstRetry
			} else {
				failures++
			}
		}
		if pause(l.ctx, max(wait, at.retry)) != nil {
			return
		}
		wait = min(2*wait, maxRetry)
	}
	l.t.log.Warn("the server's stream keeps failing; it is given up")
}

// open opens a stream with GET, after the event at which it broke off.
func (l *link) open(ctx context.Context, at position) (io.ReadCloser, error) {
	header, session := l.header()
	header.Set("Accept", mediaEvents)
	if at.id != "" {
		header.Set(headerLastEvent, at.id)
	}
	resp, err := l.t.do(ctx, request{method: http.MethodGet, url: l.t.url, header: header})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, l.t.status(resp, session)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != mediaEvents {
		_ = resp.Body.Close()
		return nil, &mcpclient.Error{Outcome: mcpclient.Refused, Message: "the server answers with no event stream"}
	}
	return resp.Body, nil
}

// malformedError is a message with the request's ID that is no JSON-RPC response;
// without a fault it is no JSON.
type malformedError struct{ fault error }

func (e *malformedError) Error() string { return "a malformed answer" }

func (e *malformedError) of(method string) *mcpclient.Error {
	if e.fault == nil {
		return mcpclient.Unreadable(method)
	}
	return mcpclient.Malformed(method, e.fault)
}

// read hands on what comes on a stream until the response to id is there, or the
// stream ends.
func (l *link) read(stream *events, id string, at *position) (json.RawMessage, error) {
	for {
		ev, err := stream.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errEnded
			}
			return nil, err
		}
		if !ev.partial {
			at.seen++
			if ev.hasID && ValidValue(ev.id) {
				at.id = ev.id
			}
			if ev.retry > 0 {
				at.retry = min(ev.retry, maxRetry)
			}
		}
		if len(ev.data) == 0 || ev.name != "" && ev.name != "message" {
			continue
		}
		answer, err := l.take(ev.data, id, ev.partial)
		switch {
		case answer != nil:
			return answer, nil
		case errors.Is(err, errNoMessage):
			if !ev.partial {
				l.t.log.Debug("an event of the server is no JSON-RPC message", "bytes", len(ev.data))
			}
		case err != nil:
			return nil, err
		}
	}
}

// errNoMessage is the error of what is no JSON-RPC message.
var errNoMessage = errors.New("streamable: no JSON-RPC message")

// take hands on a message, or those of a batch (2025-03-26), and returns the response
// to id, if it is there. Of an event that broke off nothing else counts. Its errors
// are errNoMessage and a [*malformedError] for that response.
func (l *link) take(data json.RawMessage, id string, partial bool) (response json.RawMessage, err error) {
	batch := []json.RawMessage{data}
	if !partial && contract.TypeName(data) == "an array" {
		if batch, err = contract.ParseArray(data); err != nil {
			return nil, errNoMessage
		}
	}
	for _, message := range batch {
		m, fault := l.takeOne(message, id, partial)
		switch {
		case m == matches: // and no other is
			response, id = message, ""
		case m == matchesNull && response == nil:
			response = message
		}
		if _, ours := errors.AsType[*malformedError](fault); err == nil || ours {
			err = fault
		}
	}
	return response, err
}

func (l *link) takeOne(data json.RawMessage, id string, partial bool) (matched, error) {
	in, err := mcpclient.DecodeIncoming(data)
	if err != nil {
		if owner, response := mcpclient.ReadableID(data); id != "" && response && !partial && (owner == "" || owner == id) {
			return malformed, &malformedError{}
		}
		return foreign, errNoMessage
	}
	if !in.IsResponse() {
		if !partial {
			l.receive(in)
		}
		return foreign, nil
	}
	if id == "" {
		return foreign, nil
	}
	m := match(in, id)
	switch m {
	case malformed:
		return m, &malformedError{in.Fault}
	case foreign:
		l.t.log.Debug("the server answers what was not asked here")
	case matches, matchesNull:
	}
	return m, nil
}

func isLost(err error) bool {
	e, ok := errors.AsType[*mcpclient.Error](err)
	return ok && e.Lost
}

// pause waits, or returns ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
