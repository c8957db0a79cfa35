package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FromMCP returns a transport over those of the go-sdk, a new one for each
// connection. It reaches a server with any that does not depend on what the
// go-sdk tells its own connections, as its Streamable HTTP does. log may be nil;
// redact takes secrets out of what is logged, and where it is nil the texts of
// the transport's errors are left out.
func FromMCP(open func(context.Context) (mcp.Transport, error), log *slog.Logger, redact func(string) string) Transport {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if redact == nil {
		redact = func(string) string { return "" }
	}
	return &sdkTransport{open: open, log: log, redact: redact}
}

type sdkTransport struct {
	open   func(context.Context) (mcp.Transport, error)
	log    *slog.Logger
	redact func(string) string
}

// FreshAfterProbe implements [Transport].
func (*sdkTransport) FreshAfterProbe() bool { return true }

// Open implements [Transport].
func (t *sdkTransport) Open(ctx context.Context, h Handler) (Link, error) {
	f := &sdkFrames{redact: t.redact}
	// The connection may live as long as the context that it is made with.
	f.ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, f.stop)
	connected := make(chan error, 1)
	go func() { // it is foreign code, which may not heed a context
		transport, err := t.open(ctx)
		if err == nil {
			f.conn, err = transport.Connect(f.ctx)
		}
		connected <- err
	}()
	select {
	case err := <-connected:
		if err != nil && ctx.Err() == nil {
			f.stop()
			return nil, &Error{Retryable: true, Message: "the transport does not connect", Detail: t.redact(err.Error()), Cause: err}
		}
		if inTime() && err == nil {
			return NewLink(f, h, t.log, t.redact), nil
		}
		connected <- err
	case <-ctx.Done():
	}
	go func() {
		if err := <-connected; err == nil {
			f.Close()
		}
	}()
	return nil, ctx.Err()
}

// sdkFrames are the messages of a go-sdk connection. It decodes only the envelope:
// params and results stay bytes.
type sdkFrames struct {
	conn   mcp.Connection
	redact func(string) string
	ctx    context.Context
	stop   context.CancelFunc
	close  sync.Once
}

// sdkCloseTimeout bounds the end of a connection, which is foreign code.
const sdkCloseTimeout = 10 * time.Second

// codeRejected is that of the go-sdk for a message that its connection did not
// take, while the connection goes on.
const codeRejected = -32005

// Read implements [Frames].
func (f *sdkFrames) Read() (json.RawMessage, error) {
	m, err := f.conn.Read(f.ctx)
	if err != nil {
		return nil, f.error(err)
	}
	return jsonrpc.EncodeMessage(m)
}

// Write implements [Frames].
func (f *sdkFrames) Write(data json.RawMessage) (int, error) {
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return 0, err
	}
	if err := f.conn.Write(f.ctx, m); err != nil {
		if errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing) {
			return 0, f.error(err)
		}
		return len(data), f.error(err)
	}
	return len(data), nil
}

func (f *sdkFrames) error(err error) *Error {
	e := &Error{Lost: true, Retryable: true, Message: "the connection to the server ended", Detail: f.redact(err.Error()), Cause: err}
	var wire *jsonrpc.Error
	if errors.As(err, &wire) && wire.Code == codeRejected {
		e.Lost, e.Message = false, "the transport did not deliver the message"
	}
	return e
}

// Close implements [Frames].
func (f *sdkFrames) Close() {
	f.close.Do(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = f.conn.Close() // nobody is left to tell
		}()
		timer := time.NewTimer(sdkCloseTimeout)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
		f.stop()
	})
}
