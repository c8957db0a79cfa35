package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// methodInitialize opens a session with a server older than 2026-07-28.
const methodInitialize = "initialize"

// Codes under which the SDKs of other languages refuse, without an ID and with
// status 400, a request of a session that they do not know.
const (
	codeBadSession = -32000
	codeNoSession  = -32001
)

// drainTime is how long a response whose answer is there may take to end by
// itself, so that its connection can serve again.
const drainTime = 250 * time.Millisecond

// errorBodyTime is how long the body of an error status may take.
const errorBodyTime = 10 * time.Second

// Exchange implements [mcpclient.Link].
func (l *link) Exchange(ctx context.Context, m mcpclient.Message) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r, session, err := l.message(m)
	if err != nil {
		return nil, err
	}
	scope, free, cancel := l.scope(ctx)
	resp, err := l.t.do(scope, r)
	if err != nil {
		cancel()
		return nil, l.ended(ctx, err)
	}
	answer, body, err := l.answer(scope, m, resp, session)
	if err != nil {
		cancel()
		_ = body.Close()
		return nil, l.ended(ctx, err)
	}
	free()
	go drain(body, cancel)
	return answer, nil
}

func drain(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(drainTime, cancel)
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	timer.Stop()
	_ = body.Close()
	cancel()
}

// answer reads the answer to m out of a response, and returns the body that it
// read last: open.
func (l *link) answer(ctx context.Context, m mcpclient.Message, resp *http.Response, session bool) (json.RawMessage, io.ReadCloser, error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		answer, err := l.errorBody(m, resp, session)
		return answer, resp.Body, err
	}
	if m.Method == methodInitialize {
		if err := l.setSession(resp.Header); err != nil {
			return nil, resp.Body, err
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil, resp.Body, l.t.noAnswer("the server took the request and gave no answer", nil)
	case kind == mediaEvents:
		return l.follow(ctx, m, resp.Body)
	}
	raw, err := readAll(resp.Body, l.t.max)
	raw = bytes.TrimPrefix(raw, []byte(bom))
	switch {
	case errors.Is(err, errTooLarge):
		return nil, resp.Body, mcpclient.TooLarge(m.Method, resp.ContentLength, l.t.max)
	case err != nil:
		return nil, resp.Body, l.t.noAnswer("the connection broke before the server's answer was complete", err)
	case len(raw) == 0:
		return nil, resp.Body, l.t.noAnswer("the server took the request and gave no answer", nil)
	case kind != mediaJSON:
		return nil, resp.Body, l.t.noAnswer("the server's answer is neither JSON nor an event stream", nil)
	}
	answer, err := l.take(raw, m.ID, false)
	bad, malformed := errors.AsType[*malformedError](err)
	switch {
	case answer != nil:
		return answer, resp.Body, nil
	case malformed:
		return nil, resp.Body, bad.of(m.Method)
	case err != nil:
		return nil, resp.Body, l.t.noAnswer("the server's answer is not a JSON-RPC message", nil)
	}
	return nil, resp.Body, l.t.noAnswer("the server's answer is not the response to the request", nil)
}

// errorBody tells a JSON-RPC error under an HTTP error status, which is an answer,
// from a failure of HTTP.
func (l *link) errorBody(m mcpclient.Message, resp *http.Response, session bool) (json.RawMessage, error) {
	refusal := l.t.status(resp, session)
	raw, ok := l.errorText(resp)
	if !ok {
		return nil, refusal
	}
	refused := session && resp.StatusCode == http.StatusBadRequest
	gone := refused && saysSession(raw)
	in, err := mcpclient.DecodeIncoming(raw)
	if code, failed := errorCode(in); err == nil && failed {
		switch match(in, m.ID) {
		case matches:
			// With a session, 404 says that the session has ended, unless the error says
			// that it is the method that was not found.
			if !refusal.Lost || code == mcpclient.CodeMethodNotFound {
				return raw, nil
			}
		case matchesNull:
			gone = gone || refused && (code == codeBadSession || code == codeNoSession)
			// These say by their status alone what is to be done about them; and where the
			// server, or what stands before it, failed with the request in its hands, an
			// error that names no request does not say that it did not run.
			if !gone && !refusal.Lost && refusal.Outcome != mcpclient.Sent && resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusTooManyRequests {
				return raw, nil
			}
		case malformed, foreign:
		}
	}
	if gone {
		return nil, sessionEnded(refusal)
	}
	return nil, refusal
}

// errorText reads the body of an error status. The status is an answer already, so
// a body without an end is not waited for: who asked closes it.
func (l *link) errorText(resp *http.Response) (raw []byte, ok bool) {
	read := make(chan []byte, 1)
	go func() {
		raw, err := readAll(resp.Body, l.t.max)
		if err == nil {
			read <- raw
		}
		close(read)
	}()
	timer := time.NewTimer(errorBodyTime)
	defer timer.Stop()
	select {
	case raw, ok = <-read:
	case <-timer.C:
	}
	return raw, ok
}

// maxSessionText bounds a refusal that speaks of the session alone.
const maxSessionText = 500

// noSession matches a refusal that begins with the session's being none. One that comes
// to speak of a session may mean another kind, after it has run the tool.
var noSession = regexp.MustCompile(`(?is)^\s*((bad request|error|not found|invalid request|unauthorized)\s*[:.-]\s*)*(` +
	`(no( valid| active)?|invalid|unknown|expired|missing|(invalid|missing) or \w+) ` + session + `( (provided|found|given|header|format))?|` +
	session + `( (\S*[\d-]\S*|"[^"]*"|'[^']*'))?:? (is |has |was |does |has been )?(not found|not valid|not exist|not initialized|invalid|unknown|expired|terminated|closed)|` +
	`no transport (found )?for session[ _-]?id` +
	`)( or [\w ]+)?(\s*([.:(!]|,? ?please).*|\s*)$`)

const session = `(mcp[- ])?session([ _-]?id)?`

// saysSession reports whether the text of a refusal is that the session is none: so do
// servers that know neither a status nor a code for it. In JSON it may be any of the
// members that errors have.
func saysSession(text []byte) bool {
	if len(text) > maxSessionText {
		return false
	}
	o, err := contract.ParseObject(text)
	if err != nil {
		return noSession.Match(text)
	}
	for _, key := range []string{"error", "message", "detail", "title"} {
		var said string
		switch value := o.Get(key); {
		case contract.TypeName(value) == "an object" && saysSession(value),
			json.Unmarshal(value, &said) == nil && noSession.MatchString(said):
			return true
		}
	}
	return false
}

// matched says what a message is to a request.
type matched int

const (
	foreign     matched = iota // something else
	matches                    // its response
	matchesNull                // an error without an ID, in answer to what the server could not read
	malformed                  // its ID, and no valid response
)

func match(in mcpclient.Incoming, id string) matched {
	switch {
	case !in.IsResponse():
		return foreign
	case string(in.ID) == id && in.Fault != nil:
		return malformed
	case string(in.ID) == id:
		return matches
	case in.ID == nil && in.Fault == nil:
		if _, failed := errorCode(in); failed {
			return matchesNull
		}
	}
	return foreign
}

// errorCode returns the code of an error response, and whether it is one.
func errorCode(in mcpclient.Incoming) (int64, bool) {
	obj, err := contract.ParseObject(in.Raw)
	if err != nil || !in.IsResponse() || !obj.Has("error") {
		return 0, false
	}
	pe, err := contract.DecodeProtocolError(obj.Get("error"))
	if err != nil {
		return 0, false
	}
	return pe.Code, true
}

// readAll reads a body of at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = errTooLarge
	}
	return raw, err
}

// isTransient reports whether an error of a GET may pass.
func isTransient(err error) bool {
	e, ok := errors.AsType[*mcpclient.Error](err)
	return ok && e.Retryable && !e.Lost
}
