package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// events writes an event stream, in one of the spellings that the standard allows.
type events struct {
	mu       sync.Mutex
	w        http.ResponseWriter
	spelling string
	single   bool // byte by byte
}

func (e *events) write(text string) {
	if !e.single {
		_, _ = io.WriteString(e.w, text)
		_ = http.NewResponseController(e.w).Flush()
		return
	}
	for i := range len(text) {
		_, _ = io.WriteString(e.w, text[i:i+1])
		_ = http.NewResponseController(e.w).Flush()
	}
}

func (e *events) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.spelling {
	case "noise":
		e.write("\ufeff: a comment\n\nretry: 10\n\nevent: unknown\ndata: {\"jsonrpc\":\n\n" +
			"id: 7\ndata\n\nno-such-field: 1\n:\nevent: ping\ndata: now\n\n")
	default:
		e.write(": open\n\n")
	}
}

// event writes a message.
func (e *events) event(message json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := string(message)
	switch e.spelling {
	case "crlf":
		e.write("event: message\r\ndata: " + text + "\r\n\r\n")
	case "cr":
		e.write("event: message\rdata: " + text + "\r\r")
	case "lines": // one message on as many lines as JSON lets it have
		e.write("id: 1\nevent: message\ndata: " + strings.Replace(text, ",", ",\ndata: ", 3) + "\n\n")
	case "bare": // no space, no event
		e.write("data:" + text + "\n\n")
	default:
		e.write("event: message\ndata: " + text + "\n\n")
	}
}
