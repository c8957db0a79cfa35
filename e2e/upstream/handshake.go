package upstream

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// identity is what the server calls itself.
const identity = `{"name":"upstream","title":"The tests' own","version":"1.2.3","x-unknown":1.0}`

const instructions = "Be exact. <b>&"

func (s *server) has(capability string) bool { return !slices.Contains(s.Without, capability) }

func (s *server) capabilities() string {
	var list []string
	for _, c := range []string{
		`"tools":{"listChanged":true}`, `"resources":{"listChanged":true}`, `"prompts":{"listChanged":true}`, `"completions":{}`,
	} {
		name, _, _ := strings.Cut(strings.Trim(c, `"`), `"`)
		if s.has(name) {
			list = append(list, c)
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (s *server) legacy() []string {
	return slices.DeleteFunc(slices.Clone(s.Protocols), func(v string) bool { return v >= modern })
}

func (s *server) modern() bool { return slices.Contains(s.Protocols, modern) }

// admit says whether a request that is no handshake may be served.
func (s *server) admit(m *message) error {
	if m.modern() {
		if m.meta["io.modelcontextprotocol/clientCapabilities"] == nil {
			s.violation(m, "no clientCapabilities")
			return fail(-32602, "no clientCapabilities")
		}
		return s.supported(m)
	}
	switch {
	case len(s.legacy()) == 0 || m.session == nil:
		s.violation(m, "a request of no session")
		return fail(-32602, "Missing _meta")
	case !m.session.ready:
		s.violation(m, "a request before notifications/initialized")
	}
	return nil
}

func (s *server) supported(m *message) error {
	if v := m.version(); v != modern || !s.modern() {
		list, err := json.Marshal(s.Protocols)
		if err != nil {
			panic(err)
		}
		return &rpcError{Code: -32022, Message: "Unsupported protocol version",
			Data: fmt.Appendf(nil, `{"supported":%s,"requested":%q}`, list, v)}
	}
	return nil
}

// discover is the newest revision's; a server that does not know that one does not
// know the method.
func (s *server) discover(m *message) (json.RawMessage, error) {
	if !s.modern() {
		return nil, fail(-32601, "Method not found: server/discover")
	}
	if err := s.supported(m); err != nil {
		return nil, err
	}
	list, err := json.Marshal(s.Protocols)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(instructions)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"resultType":"complete","supportedVersions":%s,"capabilities":%s,"instructions":%s,"ttlMs":0,"cacheScope":"private",`+
		`"_meta":{"io.modelcontextprotocol/serverInfo":%s}}`, list, s.capabilities(), text, identity), nil
}

// initialize begins the session of the older revisions.
func (s *server) initialize(m *message) (json.RawMessage, error) {
	known := s.legacy()
	if len(known) == 0 {
		return nil, fail(-32601, "Method not found: initialize")
	}
	var p struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      struct{ Name, Version string }
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return nil, fail(-32602, "%v", err)
	}
	if p.Capabilities == nil || p.ClientInfo.Name == "" || p.ClientInfo.Version == "" {
		s.violation(m, "initialize lacks capabilities or clientInfo")
	}
	version := known[0]
	if slices.Contains(known, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	if f, ok := s.fault(FaultVersion, m.Method, ""); ok {
		version = f.Text
	}
	s.mu.Lock()
	if m.session.version != "" {
		s.violation(m, "initialize twice")
	}
	m.session.version = version
	s.mu.Unlock()
	text, err := json.Marshal(instructions)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s,"instructions":%s}`,
		version, s.capabilities(), identity, text), nil
}

func newSession() *session {
	return &session{id: "session-" + rand.Text(), running: map[string]*running{}}
}
