package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxBodyBytes is the largest request body over HTTP.
const MaxBodyBytes = 4 << 20

// bodyTimeout is how long a client has to send its body.
const bodyTimeout = 30 * time.Second

// Handler returns the HTTP side: MCP at /mcp and /, /healthz for the process and
// /readyz for [Server.Ready]. Put authentication in front of it with
// auth.RequireBearerToken: the verified user is who calls.
//
// Serve it by an [http.Server] with a ReadHeaderTimeout and without a
// WriteTimeout, which would cut long calls.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mcpHandler := s.guard(s.mcpHandler())
	mux.Handle("/mcp", mcpHandler)
	mux.Handle("/{$}", mcpHandler)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// guard refuses requests for hosts and from origins that are not allowed: a
// page in a browser must not reach a server on this machine under another name
// (DNS rebinding; MCP transports, security warning).
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.allowedHost(r.Host) {
			http.Error(w, fmt.Sprintf("Forbidden: the host %q is not allowed", r.Host), http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !s.allowedOrigin(origin) {
				http.Error(w, fmt.Sprintf("Forbidden: the origin %q is not allowed", origin), http.StatusForbidden)
				return
			}
			h := w.Header()
			h.Add("Vary", "Origin")
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
				// Mcp-Param-* headers follow the tools' schemas, so what is asked for is allowed.
				h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
				h.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) allowedHost(host string) bool {
	name := hostname(host)
	return IsLoopback(name) || slices.ContainsFunc(s.options.AllowHosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, name)
	})
}

func (s *Server) allowedOrigin(origin string) bool {
	if slices.ContainsFunc(s.options.AllowOrigins, func(allowed string) bool { return strings.EqualFold(allowed, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && IsLoopback(u.Hostname())
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// IsLoopback reports whether a host name or address, without a port, is one of
// this machine's loopback names.
func IsLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// mcpHandler is the SDK's handler behind what it lacks.
func (s *Server) mcpHandler() http.Handler {
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		// The only mode that speaks every revision; nothing is kept between
		// requests, so any replica can serve any of them.
		Stateless:                    true,
		PropagateRequestCancellation: true,
		DisableLocalhostProtection:   true, // guard does it
		MaxRequestBodyBytes:          MaxBodyBytes,
		Logger:                       s.sdkLogger(),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			sdk.ServeHTTP(w, r)
			return
		}
		// Headers have a time limit of their own; without one here a client that
		// never sends its body would hold the connection for ever.
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
		_ = conn.SetReadDeadline(time.Time{})
		if err != nil {
			refuseBody(w, err)
			return
		}
		if id, code, problem := checkBody(body); problem != "" {
			refuseMessage(w, id, code, problem)
			return
		}
		method, params := peek(body)
		safe, batch := forSDK(body)
		if err := checkTaskHeader(r, method, params); err != nil {
			refuseMessage(w, requestID(body), mcp.CodeHeaderMismatch, err.Error())
			return
		}
		if starts(method) && len(s.calls) == cap(s.calls) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "The connector is at its limit of calls under way. Nothing was started; try again later.", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("X-Accel-Buffering", "no")
		out := newStream(r.Context(), w, s.options.KeepAliveInterval)
		defer out.close()
		ctx := context.WithValue(r.Context(), streamKey{}, out)
		ctx = context.WithValue(ctx, paramsKey{}, append(batch, params))
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(safe))
		sdk.ServeHTTP(out, r)
	})
}

func refuseBody(w http.ResponseWriter, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("The request body is over %d bytes.", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "The request body did not arrive whole.", http.StatusBadRequest)
}

// peek returns the method and the raw params of a single request, or nothing
// where the SDK will refuse the body anyway.
func peek(body []byte) (method string, params json.RawMessage) {
	o, err := contract.ParseObject(body)
	if err != nil || json.Unmarshal(o.Get("method"), &method) != nil {
		return "", nil
	}
	return method, o.Get("params")
}

// checkTaskHeader holds the Mcp-Name header of a task request against its body,
// which the SDK does for its own methods only (tasks extension, HTTP headers).
func checkTaskHeader(r *http.Request, method string, params json.RawMessage) error {
	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel":
	default:
		return nil
	}
	if !isModern(r.Header.Get("MCP-Protocol-Version")) {
		return nil
	}
	var p taskParams
	err := json.Unmarshal(params, &p) // if it is wrong the SDK refuses it
	if name := r.Header.Get("Mcp-Name"); err == nil && name != p.TaskID {
		return fmt.Errorf("the Mcp-Name header %q does not match params.taskId %q", name, p.TaskID)
	}
	return nil
}

// checkBody finds what the SDK would take and not pass on as it is: it reads the
// first of several values, and answers two requests under one ID.
func checkBody(body []byte) (id json.RawMessage, code int64, problem string) {
	if !isJSON(body) {
		return nil, jsonrpc.CodeParseError, "The body is not one JSON value in UTF-8."
	}
	seen := map[string]bool{}
	for _, message := range messages(body) {
		id = requestID(message)
		if problem := checkID(id); problem != "" {
			return id, jsonrpc.CodeInvalidRequest, problem
		}
		if id != nil && seen[string(id)] {
			return id, jsonrpc.CodeInvalidRequest, duplicateID(id)
		}
		seen[string(id)] = true
	}
	return nil, 0, ""
}

// messages returns the messages of a body: one, or those of a batch.
func messages(body json.RawMessage) []json.RawMessage {
	if batch, err := contract.ParseArray(body); err == nil {
		return batch
	}
	return []json.RawMessage{body}
}

// forSDK returns the body as the SDK can read it, and the params of a batch as they
// came.
func forSDK(body json.RawMessage) (safe json.RawMessage, batch []json.RawMessage) {
	safe = representable(body)
	elements, err := contract.ParseArray(safe)
	if err != nil {
		return encodeMember(safe, "id"), nil
	}
	batch = make([]json.RawMessage, len(elements))
	for i, message := range messages(body) {
		_, batch[i] = peek(message)
		elements[i] = encodeMember(markParams(elements[i], i), "id")
	}
	return contract.Array(elements...), batch
}

// markParams returns a message of a batch whose params say which they are: the SDK
// tells a handler nothing else of where in the body its request stood.
func markParams(message json.RawMessage, position int) json.RawMessage {
	o, err := contract.ParseObject(message)
	if err != nil {
		return message
	}
	params, err := contract.ParseObject(o.Get("params"))
	if err != nil {
		return message
	}
	meta, err := contract.ParseObject(params.Get("_meta"))
	if err != nil && !contract.IsNull(params.Get("_meta")) {
		return message // the SDK says what is wrong
	}
	meta.Set(positionMark, contract.Quote(strconv.Itoa(position)))
	params.Delete("_meta")
	params.Set("_meta", meta.JSON())
	o.Delete("params")
	o.Set("params", params.JSON())
	return o.JSON()
}

// positionMark is random: nobody else's `_meta` has it.
var positionMark = "position-" + rand.Text()

func refuseMessage(w http.ResponseWriter, id json.RawMessage, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(rejection(id, code, message))
}

// paramsKey is where HTTP puts the raw params: those of a batch by position, then
// those of a body that is one request.
type paramsKey struct{}

// rawParams returns the params of the request as they came, or nil where the
// transport keeps no bytes.
func rawParams(ctx context.Context, req clientRequest) json.RawMessage {
	if raw, ok := ctx.Value(paramsKey{}).([]json.RawMessage); ok {
		position := len(raw) - 1
		if params := req.GetParams(); position > 0 && !reflect.ValueOf(params).IsNil() { // some may be left out
			mark, _ := params.GetMeta()[positionMark].(string)
			if at, err := strconv.Atoi(mark); err == nil {
				position = at
			}
		}
		return raw[position]
	}
	if extra := req.GetExtra(); extra != nil {
		if raw := extra.Header[stdioParams]; len(raw) == 1 {
			return json.RawMessage(raw[0])
		}
	}
	return nil
}

// stdioParams is where the stdio transport puts the raw params: the SDK carries
// a header with each request, and no real one has this name.
const stdioParams = " params"

func isHTTP(extra *mcp.RequestExtra) bool {
	return extra != nil && extra.Header != nil && extra.Header[stdioParams] == nil
}
