package operation

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
)

// Transport is the MCP transport that a call came by. It is part of the
// operation ID.
type Transport string

// The transports. Over stdio one client keeps one session; over HTTP every
// request stands alone.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
)

func (t Transport) prefix() string {
	if t == HTTP {
		return "mcp-http-stateless-"
	}
	return "mcp-stdio-stateful-"
}

// Caller is who calls. The zero Caller is an anonymous one over stdio.
type Caller struct {
	Transport Transport
	// Name identifies the caller: a user and host over stdio, the
	// authenticated principal over HTTP; empty for an anonymous caller. Only
	// hashes of it leave the process.
	Name string
}

// Owner returns the 8 hex digits that mark the caller's operation IDs, or ""
// for an anonymous caller.
func (c Caller) Owner() string {
	if c.Name == "" {
		return ""
	}
	return c.hash()[:8]
}

// Header returns the value of the mcp-caller header, or "" where none is sent.
func (c Caller) Header() string {
	if c.Name == "" {
		return ""
	}
	return c.hash()[:16]
}

func (c Caller) hash() string {
	sum := sha256.Sum256([]byte(c.Name))
	return hex.EncodeToString(sum[:])
}

// newID returns an ID for a call: unguessable without a key, derived from the
// caller, the service, the tool, the key and the round with one.
func (c Caller) newID(service, tool, key, round string) string {
	var bits [16]byte
	if key == "" {
		_, _ = rand.Read(bits[:]) // never fails, see crypto/rand
	} else {
		h := sha256.New()
		parts := []string{c.Name, service, tool, key}
		if round != "" {
			parts = append(parts, round)
		}
		for _, part := range parts {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(part)))
			h.Write(n[:])
			h.Write([]byte(part))
		}
		copy(bits[:], h.Sum(nil))
	}
	return c.prefix() + hex.EncodeToString(bits[:])
}

func (c Caller) prefix() string {
	if owner := c.Owner(); owner != "" {
		return c.Transport.prefix() + owner + "-"
	}
	return c.Transport.prefix()
}

var idPattern = regexp.MustCompile(`^mcp-(?:stdio|http)-(?:stateful|stateless)-(?:([0-9a-f]{8})-)?[0-9a-f]{32}$`)

// Owns reports whether id is the ID of a call by this caller, whichever
// transport that call came by.
func (c Caller) Owns(id string) bool {
	m := idPattern.FindStringSubmatch(id)
	return m != nil && m[1] == c.Owner()
}
