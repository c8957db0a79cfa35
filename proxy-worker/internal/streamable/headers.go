package streamable

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// The headers of the transport (basic/transports, "Streamable HTTP").
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerLastEvent = "Last-Event-Id"

	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// owned are the headers that nobody may configure. Of an idempotency key net/http
// would conclude that it may send a POST again by itself.
var owned = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type",
	"Expect", "Host", "Idempotency-Key", "Keep-Alive", "Last-Event-Id", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key",
}

// Owned reports whether a header of the name, in any letter case, is set by the
// transport or by HTTP itself.
func Owned(name string) bool {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	return slices.Contains(owned, canonical) || strings.HasPrefix(canonical, "Mcp-")
}

// checkHeaders returns the configured headers under their canonical names.
func checkHeaders(configured http.Header, oauth bool) (http.Header, error) {
	checked := make(http.Header, len(configured))
	for name, values := range configured {
		if !ValidName(name) {
			return nil, fmt.Errorf("streamable: header %q: not a header name", name)
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case Owned(name):
			return nil, fmt.Errorf("streamable: header %q cannot be configured: the transport sets it", name)
		case oauth && canonical == "Authorization":
			return nil, fmt.Errorf("streamable: header %q cannot be configured beside OAuth, which sets it", name)
		case checked[canonical] != nil:
			return nil, fmt.Errorf("streamable: header %q is there twice, in different letter case", name)
		}
		for _, value := range values {
			if !ValidValue(value) {
				return nil, fmt.Errorf("streamable: header %q: its value holds a control character", name)
			}
		}
		checked[canonical] = slices.Clone(values)
	}
	return checked, nil
}

// ValidName reports whether name is a token (RFC 9110, section 5.6.2).
func ValidName(name string) bool {
	for _, c := range []byte(name) {
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// ValidValue reports whether a header can have the value: no control
// character but tabs is in it.
func ValidValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// encodeValue makes any text a header value: as it is where it is plain ASCII
// without space around it, else in base64 (2026-07-28, basic/transports,
// "Value Encoding").
func encodeValue(value string) string {
	const prefix, suffix = "=?base64?", "?="
	plain := strings.Trim(value, " \t") == value &&
		(!strings.HasPrefix(value, prefix) || !strings.HasSuffix(value, suffix))
	for _, c := range []byte(value) {
		plain = plain && c >= ' ' && c <= '~'
	}
	if plain {
		return value
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(value)) + suffix
}
