package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Request is one request to the server.
type Request struct {
	Method string
	// Name is the tool, the prompt or the URI that it is about.
	Name string
	// Params is an object, or nil. The session sets the protocol's own keys of its
	// _meta; every other byte stays.
	Params json.RawMessage
	// Headers are arguments that the tool's schema asks to have as headers.
	Headers map[string]string
	// Once says that the request must not be sent again, whatever becomes of its
	// connection.
	Once bool
	// Sending, unless it is nil, is called right before the first byte may go out.
	Sending func()
}

// cancelTimeout bounds the word to the server that a call is cancelled.
const cancelTimeout = 5 * time.Second

// lastWords is how long the end of a session waits for such words.
const lastWords = time.Second

// Call sends a request and returns the bytes of its result, an object. Its error
// is a [*contract.ProtocolError] where that is the server's answer, an [*Error],
// or ctx's. When ctx ends, the server is told so in the background, and the
// session goes on.
func (s *Session) Call(ctx context.Context, r Request) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id := s.nextID()
	params, err := s.params(r.Params)
	if err != nil {
		return nil, &Error{Outcome: Refused, Message: fmt.Sprintf("%s: %v", r.Method, err)}
	}
	m := Message{ID: id, Method: r.Method, Name: r.Name, Headers: r.Headers, Once: r.Once, Data: encode(id, r.Method, params)}
	if sv := s.Server(); sv.Stateless {
		m.Version = sv.ProtocolVersion
	}
	if size := int64(len(m.Data)) + 1; size > s.options.MaxMessageBytes {
		return nil, &Error{Outcome: Refused, Message: fmt.Sprintf(
			"the %s request has %d bytes, at most %d are allowed to this server", r.Method, size, s.options.MaxMessageBytes)}
	}
	var sent atomic.Bool
	m.Sending = func() {
		if r.Sending != nil {
			r.Sending()
		}
		sent.Store(true)
	}
	raw, err := s.link.Exchange(ctx, m)
	if err != nil {
		if ctx.Err() != nil && sent.Load() {
			s.cancel(id)
		}
		return nil, err
	}
	result, err := decodeResult(r.Method, raw)
	if pe, ok := errors.AsType[*contract.ProtocolError](err); ok && pe.Code == codeUnsupportedVersion && m.Version != "" {
		return nil, otherServer(m.Version, pe)
	}
	return result, err
}

// otherServer is the error of a server that no longer speaks the revision that it was
// asked in: another one stands there, and the next session finds out what it speaks.
func otherServer(version string, cause error) *Error {
	return &Error{Lost: true, Retryable: true, Message: fmt.Sprintf("the server no longer speaks protocol version %s", version), Cause: cause}
}

// cancel tells the server, in the background, that nobody waits for a request.
func (s *Session) cancel(id string) {
	m := Message{Method: MethodCancelled, Data: encode("", MethodCancelled,
		json.RawMessage(`{"requestId":`+id+`,"reason":"the caller cancelled the call"}`))}
	if sv := s.Server(); sv.Stateless {
		m.Version = sv.ProtocolVersion
	}
	s.background(&s.words, func() {
		ctx, stop := context.WithTimeout(s.closing, cancelTimeout)
		defer stop()
		if err := s.link.Notify(ctx, m); err != nil {
			s.options.Logger.Debug("cancelling a request", "error", err)
		}
	})
}

// params sets the protocol's own keys of the _meta of a request's params: those
// of a caller speak of the caller's connection, not of this one. Progress is not
// asked for.
func (s *Session) params(raw json.RawMessage) (json.RawMessage, error) {
	var params, meta contract.Object
	var err error
	if raw != nil {
		if params, err = contract.ParseObject(raw); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	given := params.Get("_meta")
	if !contract.IsNull(given) {
		if meta, err = contract.ParseObject(given); err != nil {
			return nil, fmt.Errorf("params._meta: %w", err)
		}
	}
	capabilities, had := clientCapabilities(meta.Get(metaClientCapabilities)), meta.Len()
	for _, key := range []string{
		metaProtocolVersion, metaClientInfo, metaClientCapabilities, metaLogLevel, metaSubscriptionID, metaProgressToken,
	} {
		meta.Delete(key)
	}
	if sv := s.Server(); sv.Stateless {
		s.setModern(&meta, sv.ProtocolVersion, capabilities)
	}
	switch {
	case meta.Len() > 0:
		params.Set("_meta", meta.JSON())
	case had > 0:
		params.Delete("_meta")
	case raw == nil:
		return nil, nil
	}
	return params.JSON(), nil
}

// setModern sets what each request of a modern revision says.
func (s *Session) setModern(meta *contract.Object, version string, capabilities json.RawMessage) {
	meta.Set(metaProtocolVersion, contract.Quote(version))
	meta.Set(metaClientInfo, s.clientInfo())
	meta.Set(metaClientCapabilities, capabilities)
}

// clientCapabilities returns those of the caller, which can answer what the
// server asks in a result, without extensions, which nobody here would carry
// out. A caller without any has none.
func clientCapabilities(of json.RawMessage) json.RawMessage {
	o, err := contract.ParseObject(of)
	if err != nil {
		return json.RawMessage("{}")
	}
	o.Delete("extensions")
	return o.JSON()
}

func (s *Session) clientInfo() json.RawMessage {
	var o contract.Object
	o.Set("name", contract.Quote(s.options.ClientName))
	o.Set("version", contract.Quote(s.options.ClientVersion))
	return o.JSON()
}
