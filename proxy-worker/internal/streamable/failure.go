package streamable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
)

const maxRetryAfter = time.Hour

// origin is what may be said of an address in a log.
func (t *Transport) origin() string { return t.url.Scheme + "://" + t.url.Host }

// detail is a text for logs without the secrets that are known, and without the
// address that url.Error puts in front of everything.
func (t *Transport) detail(err error) string {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return t.redact(t.origin() + ": " + err.Error())
}

// unanswered is the error of a request for which no response came.
func (t *Transport) unanswered(err error, touched bool) *mcpclient.Error {
	e := &mcpclient.Error{Outcome: mcpclient.Sent, Retryable: true, Detail: t.detail(err), Cause: err}
	if touched {
		e.Message = "the connection broke before the server answered"
		return e
	}
	e.Outcome = mcpclient.NotSent
	e.Message = "the server cannot be reached" + reason(err)
	return e
}

func reason(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return ": its host name cannot be resolved"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return ": its TLS certificate is not trusted"
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return ": no connection in time"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return ": connection refused"
	}
	return ""
}

// noAnswer is the error of a request that the server took and did not answer.
func (t *Transport) noAnswer(message string, cause error) *mcpclient.Error {
	e := &mcpclient.Error{Outcome: mcpclient.Sent, Retryable: true, Message: message, Detail: t.origin(), Cause: cause}
	if cause != nil {
		e.Detail = t.detail(cause)
	}
	return e
}

// status is the error of a response that is no answer, by its status.
func (t *Transport) status(resp *http.Response, session bool) *mcpclient.Error {
	code := resp.StatusCode
	e := &mcpclient.Error{
		Outcome: mcpclient.Refused,
		Message: fmt.Sprintf("the server refused the request with HTTP status %d", code),
		Detail:  fmt.Sprintf("%s: HTTP status %d", t.origin(), code),
	}
	switch {
	case code == http.StatusNotFound && session:
		// The server no longer knows the session (Streamable HTTP, "Session Management").
		return sessionEnded(e)
	case code == http.StatusUnauthorized:
		e.Message = "the server does not accept the credentials (HTTP status 401)"
	case code == http.StatusForbidden:
		e.Message = "the server forbids the request (HTTP status 403)"
	case code == http.StatusTooManyRequests:
		e.Retryable = true
		e.Message = "the server has too many requests (HTTP status 429)"
		wait(e, retryAfter(resp.Header))
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusMisdirectedRequest:
		e.Retryable = true
	case code >= 500:
		e.Outcome, e.Retryable = mcpclient.Sent, true
		e.Message = fmt.Sprintf("the server failed with HTTP status %d", code)
		wait(e, retryAfter(resp.Header))
	}
	return e
}

// sessionEnded makes a refusal that of a server which no longer knows the session.
func sessionEnded(e *mcpclient.Error) *mcpclient.Error {
	e.Outcome, e.Lost, e.Retryable = mcpclient.NotSent, true, true
	e.Message = "the server has ended the session"
	return e
}

// retryAfter reads Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = time.Until(at)
	}
	return max(wait, 0)
}

// wait keeps how long the server asks to be left alone.
func wait(e *mcpclient.Error, asked time.Duration) {
	e.RetryAfter = min(asked, maxRetryAfter)
	if asked > 0 {
		e.Message += fmt.Sprintf(", and asks to wait for %v", asked.Round(time.Second))
	}
}

// ended turns the error of a call whose context has ended into that context's.
func (l *link) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*mcpclient.Error](err); ok {
		if l.ctx.Err() != nil {
			e.Lost, e.Message = true, "the connection was closed"
		}
		if e.Lost {
			l.fail(e)
		}
		return e
	}
	// The scope of the call has ended, and its context has not: the link has.
	return &mcpclient.Error{Outcome: mcpclient.Sent, Lost: true, Retryable: true, Message: "the connection was closed", Cause: err}
}
