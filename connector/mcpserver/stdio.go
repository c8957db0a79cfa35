package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxFrameBytes is the largest message over stdio, its newline included.
const MaxFrameBytes = 16 << 20

// ServeStdio serves one client over a pair of pipes, newline-delimited, until
// the client closes its side or ctx ends. Requests under way then get up to
// grace to be answered, the last of it as still running; their operations go on
// in any case. What is on its way out by then goes out for as long as the client reads
// one message a second. It returns nil after an orderly end. Where in has not
// ended by then, one goroutine stays that reads it, until the caller closes it; where
// the client does not read, one that writes to out.
//
// The end of the client is that of the server, as of [Server.Drain]: it serves
// nobody afterwards, over HTTP neither. To go on, make another.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, grace time.Duration) error {
	conn := newStdioConn(in, out)
	session, err := s.mcp.Connect(context.WithoutCancel(ctx), stdioTransport{conn}, nil)
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = session.Wait()
	}()
	select {
	case <-ctx.Done():
	case <-conn.inputEnded:
	case <-over: // the client does not read any more
	}
	s.Drain(grace)
	conn.drain()
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case <-conn.idle:
	case <-over:
	case <-last.C:
	}
	s.drain() // what is left was not cancelled by the client
	_ = conn.Close()
	stuck := time.NewTimer(lastWrite)
	defer stuck.Stop()
	for {
		select {
		case <-over:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		case <-conn.wrote:
			stuck.Reset(lastWrite)
		case <-stuck.C:
			if len(conn.write) > 0 {
				return errors.New("mcpserver: the client does not read its answers")
			}
			return errors.New("mcpserver: a request does not end")
		}
	}
}

// lastWrite is how long the next message may take to be out once the session is closed:
// a write to a pipe that nobody reads does not end by itself.
const lastWrite = time.Second

type stdioTransport struct{ conn *stdioConn }

func (t stdioTransport) Connect(context.Context) (mcp.Connection, error) { return t.conn, nil }

// stdioConn differs from the SDK's connection in four ways: a bad line is
// answered and skipped, not the end of the session; the end of input lets the
// requests under way be answered first; each request keeps its raw params; and
// IDs come back as they came.
type stdioConn struct {
	messages   chan jsonrpc.Message
	inputEnded chan struct{} // closed when there is no more input
	closing    chan struct{} // closed: Read returns io.EOF
	closeOnce  sync.Once

	write chan struct{} // has the token of who writes
	out   io.Writer
	wrote chan struct{} // has a token once a message is out

	mu       sync.Mutex
	pending  map[jsonrpc.ID]*pendingRequest // without an answer
	writing  int                            // answers on their way out
	draining bool
	idle     chan struct{} // closed when draining and nothing is pending or on its way out
	greeted  bool          // the client has started to speak MCP
	revision string        // that initialize agreed on; empty without one
}

// pendingRequest is a request without an answer.
type pendingRequest struct {
	method    string
	cancelled bool   // wants no answer
	batch     *batch // nil for one that came alone
}

func newStdioConn(in io.Reader, out io.Writer) *stdioConn {
	c := &stdioConn{
		messages:   make(chan jsonrpc.Message),
		inputEnded: make(chan struct{}),
		closing:    make(chan struct{}),
		out:        out,
		write:      make(chan struct{}, 1),
		wrote:      make(chan struct{}, 1),
		pending:    map[jsonrpc.ID]*pendingRequest{},
		idle:       make(chan struct{}),
	}
	go c.scan(in)
	return c
}

// scan reads messages until the input ends. It is a goroutine of its own because
// a read of a pipe cannot be interrupted. A request counts as pending before the
// end of input shows, so that none is forgotten.
func (c *stdioConn) scan(in io.Reader) {
	defer close(c.inputEnded)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		switch {
		case errors.Is(err, errFrameTooLong):
			c.refuse(nil, nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("The message is over %d bytes.", MaxFrameBytes))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			c.deliver(line)
		}
		if err != nil {
			return
		}
	}
}

// deliver hands the messages of one line to Read.
func (c *stdioConn) deliver(line []byte) {
	switch {
	case !isJSON(line):
		c.refuse(nil, nil, jsonrpc.CodeParseError, "The line is no JSON-RPC message: it is not one JSON value in UTF-8.")
	case contract.TypeName(line) == "an array":
		c.deliverBatch(line)
	default:
		c.deliverOne(line, nil)
	}
}

// deliverOne hands one message to Read, or answers it with what is wrong with it.
func (c *stdioConn) deliverOne(raw json.RawMessage, b *batch) {
	o, _ := contract.ParseObject(raw)
	id := idOf(o)
	if problem := checkID(id); problem != "" {
		c.refuse(b, id, jsonrpc.CodeInvalidRequest, problem)
		return
	}
	msg, err := decodeMessage(raw, o, id)
	if err != nil {
		c.refuse(b, id, jsonrpc.CodeParseError, fmt.Sprintf("The line is no JSON-RPC message: %v", err))
		return
	}
	if req, ok := msg.(*jsonrpc.Request); ok {
		if req.IsCall() {
			req.Extra = &mcp.RequestExtra{Header: http.Header{stdioParams: {string(req.Params)}}}
			req.Params = representable(req.Params)
		} else if req.Method == "notifications/cancelled" {
			req.Params = encodeMember(req.Params, "requestId")
		}
		switch taken, duplicate := c.accept(req, b); {
		case duplicate:
			c.refuse(b, id, jsonrpc.CodeInvalidRequest, duplicateID(id))
			return
		case !taken:
			return
		}
	}
	select {
	case c.messages <- msg:
	case <-c.closing:
	}
}

// decodeMessage is jsonrpc.DecodeMessage, which takes 64 KiB of memory for each
// request, however small. What is no proper request goes that way all the same: a
// response, and what is wrong.
func decodeMessage(raw json.RawMessage, o contract.Object, id json.RawMessage) (jsonrpc.Message, error) {
	var method string
	if string(o.Get("jsonrpc")) != `"2.0"` || id == nil || json.Unmarshal(o.Get("method"), &method) != nil {
		return jsonrpc.DecodeMessage(encodeMember(raw, "id"))
	}
	var value any // a string or a float64
	if err := json.Unmarshal(encodeID(id), &value); err != nil {
		return nil, err
	}
	sdkID, err := jsonrpc.MakeID(value)
	if err != nil {
		return nil, err
	}
	return &jsonrpc.Request{ID: sdkID, Method: method, Params: o.Get("params")}, nil
}

var errFrameTooLong = errors.New("mcpserver: the frame is too long")

// readLine reads up to a newline; a line over the limit is skipped whole.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxFrameBytes; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && err == nil {
			return nil, errFrameTooLong
		}
		return line, err
	}
}

// Read implements [mcp.Connection].
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-c.messages:
		return msg, nil
	case <-c.closing:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accept notes a request that wants an answer. It reports whether the request
// goes on to the SDK: no new one does while draining, nor one whose ID another
// has.
func (c *stdioConn) accept(req *jsonrpc.Request, b *batch) (taken, duplicate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.Method != "initialize" && req.Method != "ping" {
		c.greeted = true
	}
	if req.Method == "notifications/cancelled" {
		if id, ok := cancelledID(req.Params); ok && c.pending[id] != nil {
			c.pending[id].cancelled = true
		}
	}
	if !req.IsCall() {
		return true, false
	}
	if c.pending[req.ID] != nil {
		return false, true
	}
	if c.draining {
		return false, false
	}
	c.pending[req.ID] = &pendingRequest{method: req.Method, batch: b}
	if b != nil {
		b.open++
	}
	return true, false
}

func cancelledID(params json.RawMessage) (id jsonrpc.ID, ok bool) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return id, false
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	return id, err == nil
}

// Write implements [mcp.Connection].
func (c *stdioConn) Write(_ context.Context, msg jsonrpc.Message) error {
	if req, ok := msg.(*jsonrpc.Request); ok && strings.HasSuffix(req.Method, "/list_changed") && !c.hasGreeted() {
		return nil // before its first word a client knows no list that could change
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		data, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return err
		}
		return c.writeLine(data)
	}
	req := c.answering(resp)
	defer c.answered()
	defer c.release(req.batch)
	if req.cancelled {
		return nil // a cancelled request gets no answer (MCP, cancellation)
	}
	data, err := encode(resp)
	if err != nil {
		return err
	}
	return c.reply(req.batch, data)
}

// encode is jsonrpc.EncodeMessage without a second pass over a result, which is
// compact JSON already and may be large.
func encode(resp *jsonrpc.Response) ([]byte, error) {
	if resp.Error != nil {
		return jsonrpc.EncodeMessage(resp)
	}
	id, err := json.Marshal(resp.ID.Raw())
	if err != nil {
		return nil, err
	}
	var o contract.Object
	o.Set("jsonrpc", contract.Quote("2.0"))
	o.Set("id", id)
	o.Set("result", resp.Result)
	return o.JSON(), nil
}

// answering returns the request that is answered now. From here on the client may
// use the ID again.
func (c *stdioConn) answering(resp *jsonrpc.Response) pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	var req pendingRequest // zero for one that nobody knows
	if p := c.pending[resp.ID]; p != nil {
		req = *p
	}
	delete(c.pending, resp.ID)
	c.writing++
	if req.method == "initialize" && resp.Error == nil {
		var agreed struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(resp.Result, &agreed) // the SDK made it
		c.revision = agreed.ProtocolVersion
	}
	return req
}

func (c *stdioConn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	c.checkIdle()
}

func (c *stdioConn) hasGreeted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.greeted
}

func (c *stdioConn) writeLine(data []byte) error {
	c.write <- struct{}{}
	defer func() { <-c.write }()
	_, err := c.out.Write(append(restore(data), '\n'))
	select {
	case c.wrote <- struct{}{}:
	default:
	}
	return err
}

// checkIdle needs c.mu.
func (c *stdioConn) checkIdle() {
	if !c.draining || len(c.pending) > 0 || c.writing > 0 {
		return
	}
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}

// refuse answers a message that does not reach the SDK. The ID is nil where nobody
// knows it.
func (c *stdioConn) refuse(b *batch, id json.RawMessage, code int64, message string) {
	_ = c.reply(b, rejection(id, code, message)) // who cannot be written to is gone
}

// drain takes no new request from here on.
func (c *stdioConn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	c.checkIdle()
}

// Close implements [mcp.Connection].
func (c *stdioConn) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	return nil
}

// SessionID implements [mcp.Connection]: stdio has none.
func (c *stdioConn) SessionID() string { return "" }
