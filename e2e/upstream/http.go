package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func (s *server) serveHTTP() error {
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", s.guard(s.post))
	mux.HandleFunc("GET /mcp", s.guard(s.get))
	mux.HandleFunc("DELETE /mcp", s.guard(s.remove))
	mux.HandleFunc("GET /sse", s.guard(s.sse))
	mux.HandleFunc("POST /messages", s.guard(s.messages))
	s.authorize(mux)
	server := &http.Server{Handler: mux}
	fmt.Fprintf(os.Stdout, "url=http://%s/mcp\n", l.Addr())
	if !s.stubborn {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		go func() { <-ctx.Done(); _ = server.Close() }()
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// reply is the response to a request: JSON, or an event stream once a message goes
// ahead of the answer.
type reply struct {
	w       http.ResponseWriter
	events  *events // nil: not begun
	spelled string
}

func (r *reply) begin(header http.Header) *events {
	if r.events == nil {
		r.w.Header().Set("Content-Type", "text/event-stream")
		for k := range header {
			r.w.Header().Set(k, header.Get(k))
		}
		r.w.WriteHeader(http.StatusOK)
		r.events = &events{w: r.w, spelling: r.spelled}
		r.events.open()
	}
	return r.events
}

// post takes one message.
func (s *server) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := parse(body)
	if err != nil {
		s.violation(&message{}, "a body that is no message: %.200q", body)
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	m.headers = r.Header
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	m.end = func() {
		m.cut.Store(true)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
		cancel(errCut)
	}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		s.mu.Lock()
		m.session = s.sessions[id]
		s.mu.Unlock()
	}
	s.record(m)
	if !s.headersOK(w, m) || !s.before(ctx, m) && s.wait(r) {
		return
	}
	if f, ok := s.fault(FaultStatus, m.Method, m.tool); ok {
		if f.Status == http.StatusNotFound && m.session != nil {
			s.mu.Lock()
			delete(s.sessions, m.session.id)
			s.mu.Unlock()
		}
		respond(w, f)
		return
	}
	if _, ok := s.fault(FaultCutBefore, m.Method, m.tool); ok {
		m.end()
		return
	}
	switch {
	case m.ID == nil:
		s.notified(m)
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "":
		s.journal.add(Entry{Event: EventAnswered, Params: m.raw})
		w.WriteHeader(http.StatusAccepted)
	default:
		s.request(ctx, w, m)
	}
}

var errCut = errors.New("the connection was cut")

// wait holds a request open until its client goes. It reports true.
func (s *server) wait(r *http.Request) bool {
	<-r.Context().Done()
	return true
}

func respond(w http.ResponseWriter, f Fault) {
	w.Header().Set("Content-Type", "text/plain")
	for k, v := range f.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Text)
}

// request answers a request.
func (s *server) request(ctx context.Context, w http.ResponseWriter, m *message) {
	out := &reply{w: w}
	if f, ok := s.fault(FaultSSE, m.Method, m.tool); ok {
		out.spelled = f.Text
	}
	m.send = func(msg json.RawMessage) {
		if !m.cut.Load() {
			out.begin(nil).event(msg)
		}
	}
	if m.Method == "initialize" {
		m.session = newSession()
		s.mu.Lock()
		s.sessions[m.session.id] = m.session
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", m.session.id)
	}
	if !m.modern() {
		// A disconnect of an older client is no cancellation.
		ctx = context.WithoutCancel(ctx)
	}
	ctx, done := s.track(ctx, m)
	defer done()
	result, err := s.dispatch(ctx, m)
	if m.tool != "" {
		s.journal.add(Entry{Event: EventAnswer, Tool: m.tool})
	}
	s.after(m)
	if m.cut.Load() {
		return
	}
	if f, ok := s.fault(FaultStatusAfter, m.Method, m.tool); ok {
		respond(w, f)
		return
	}
	if _, ok := s.fault(FaultCutAfter, m.Method, m.tool); ok {
		m.end()
		return
	}
	a := answer(m.ID, result, err)
	if f, ok := s.fault(FaultEndless, m.Method, m.tool); ok {
		s.endless(w, f)
		return
	}
	if _, ok := s.fault(FaultHalf, m.Method, m.tool); ok {
		e := out.begin(nil)
		e.write("data: " + string(a[:len(a)/2]))
		m.end()
		return
	}
	ahead, a := s.spoil(m, a)
	for _, msg := range ahead {
		m.send(msg)
	}
	as := ""
	if f, ok := s.fault(FaultAs, m.Method, m.tool); ok {
		as = f.Text
	}
	if out.events != nil || as == "sse" || out.spelled != "" {
		_, one := s.fault(FaultFragments, m.Method, m.tool)
		e := out.begin(nil)
		e.single = one
		e.event(a)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if f, ok := s.fault(FaultContentType, m.Method, m.tool); ok {
		w.Header().Set("Content-Type", f.Text)
	}
	w.WriteHeader(status(m, err))
	_, _ = w.Write(a)
}

// endless streams a body of so many bytes that is no end of JSON.
func (s *server) endless(w http.ResponseWriter, f Fault) {
	w.Header().Set("Content-Type", "application/json")
	chunk := []byte(strings.Repeat("x", 64<<10))
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`)
	for sent := 0; f.Count == 0 || sent < f.Count; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// status is that of an answer: the newest revision maps errors to it.
func status(m *message, err error) int {
	var e *rpcError
	if !m.modern() || !errors.As(err, &e) {
		return http.StatusOK
	}
	switch e.Code {
	case -32601:
		return http.StatusNotFound
	case -32602, -32020, -32021, -32022:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// headersOK holds a request against what the protocol wants of its headers, and
// answers it if that is not met.
func (s *server) headersOK(w http.ResponseWriter, m *message) bool {
	h := m.headers
	wrong := func(format string, args ...any) bool {
		s.violation(m, format, args...)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(answer(orNull(m.ID), nil, fail(-32020, format, args...)))
		return false
	}
	accept := h.Get("Accept")
	if !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		return wrong("Accept is %q", accept)
	}
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind != "application/json" {
		return wrong("Content-Type is %q", h.Get("Content-Type"))
	}
	if m.modern() {
		return s.modernHeadersOK(m, wrong)
	}
	if (m.ID == nil || m.Method == "") && s.modern() && h.Get("MCP-Protocol-Version") == modern {
		return true // a notification or an answer has no _meta
	}
	switch id := h.Get("Mcp-Session-Id"); {
	case m.Method == "initialize" && id != "":
		return wrong("initialize with a session")
	case m.Method == "initialize" || m.Method == "server/discover":
		return true
	case id == "" && h.Get("Mcp-Method") != "" && !s.modern():
		// A client of the newest revision asks an old server.
		http.Error(w, "Bad Request: no session", http.StatusBadRequest)
		return false
	case id == "":
		return wrong("no session")
	case m.session == nil:
		http.Error(w, "Session not found", http.StatusNotFound)
		return false
	}
	if v := h.Get("MCP-Protocol-Version"); m.session.version >= "2025-06-18" && v != m.session.version {
		return wrong("MCP-Protocol-Version is %q in a session of %q", v, m.session.version)
	}
	return true
}

func (s *server) modernHeadersOK(m *message, wrong func(string, ...any) bool) bool {
	h := m.headers
	if !s.modern() {
		return true // the method decides
	}
	if v := h.Get("MCP-Protocol-Version"); v != m.version() {
		return wrong("MCP-Protocol-Version is %q, not %q", v, m.version())
	}
	if h.Get("Mcp-Session-Id") != "" {
		return wrong("a session")
	}
	if m.ID == nil {
		return true
	}
	if v := h.Get("Mcp-Method"); v != m.Method {
		return wrong("Mcp-Method is %q, not %q", v, m.Method)
	}
	var p struct {
		Name, URI string
		Arguments struct {
			Region *string `json:"region"`
		}
	}
	_ = json.Unmarshal(m.Params, &p)
	want := map[string]string{"tools/call": p.Name, "prompts/get": p.Name, "resources/read": p.URI}[m.Method]
	if v := decodeHeader(h.Get("Mcp-Name")); v != want {
		return wrong("Mcp-Name is %q, not %q", v, want)
	}
	if m.tool == "mirror" && p.Arguments.Region != nil && decodeHeader(h.Get("Mcp-Param-Region")) != *p.Arguments.Region {
		return wrong("Mcp-Param-Region is %q, not %q", h.Get("Mcp-Param-Region"), *p.Arguments.Region)
	}
	return true
}

// decodeHeader undoes the spelling of values that no header can hold.
func decodeHeader(v string) string {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if inner, closed := strings.CutSuffix(inner, "?="); ok && closed {
		if data, err := base64.StdEncoding.DecodeString(inner); err == nil {
			return string(data)
		}
	}
	return v
}

func orNull(id json.RawMessage) json.RawMessage {
	if id == nil {
		return json.RawMessage("null")
	}
	return id
}

// get is the older revisions' stream of what the server says by itself.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	s.journal.add(Entry{Event: EventRequest, Method: "GET", Headers: r.Header, Session: r.Header.Get("Mcp-Session-Id")})
	if f, ok := s.fault(FaultStatus, "GET", ""); ok {
		respond(w, f)
		return
	}
	s.mu.Lock()
	session := s.sessions[r.Header.Get("Mcp-Session-Id")]
	s.mu.Unlock()
	switch {
	case len(s.legacy()) == 0:
		http.Error(w, "no such method", http.StatusMethodNotAllowed)
		return
	case session == nil:
		http.Error(w, "Session not found", http.StatusNotFound)
		return
	}
	out := &reply{w: w}
	e := out.begin(nil)
	defer s.join(&listener{send: e.event})()
	<-r.Context().Done()
}

// remove ends a session.
func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	s.journal.add(Entry{Event: EventDelete, Session: id, Headers: r.Header})
	if f, ok := s.fault(FaultStatus, "DELETE", ""); ok {
		respond(w, f)
		return
	}
	if _, ok := s.fault(FaultSilent, "DELETE", ""); ok {
		s.wait(r)
		return
	}
	s.mu.Lock()
	_, known := s.sessions[id]
	delete(s.sessions, id)
	s.mu.Unlock()
	if !known {
		http.Error(w, "Session not found", http.StatusNotFound)
	}
}
