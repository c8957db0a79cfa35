package config

import (
	"crypto"
	"path/filepath"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/streamable"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
)

func (o object) stdio(s *Server, home func() (string, error)) {
	for _, key := range []string{"headers", "auth"} {
		if o.has(key) {
			o.fault(key, "only a server with a url has it")
		}
	}
	s.Command = o.inHome(o.filled("command"), home)
	s.Stdio.Args = values(o.texts("args"))
	s.Stdio.Dir = o.inHome(o.filled("cwd"), home)
	keys, env := o.textMap("env")
	for _, key := range keys {
		t := env[key]
		if !isVariable(key) {
			o.faults.add(t.path, t.node, "no variable can have this name")
			continue
		}
		if s.Stdio.Env == nil {
			s.Stdio.Env = map[string]string{}
		}
		s.Stdio.Env[key] = t.value
	}
	inherit := o.texts("inherit_env")
	for _, t := range inherit {
		if !isVariable(t.value) {
			o.reject(t, "no variable can have this name")
		}
	}
	s.Stdio.InheritEnv = values(inherit)
}

func isVariable(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }

// inHome puts the home directory in place of a leading ~.
func (o object) inHome(t text, home func() (string, error)) string {
	rest, ok := strings.CutPrefix(t.value, "~")
	if !t.present || !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return t.value
	}
	dir, err := home()
	if err != nil {
		o.unresolved.add(t.path, t.node, "~: the home directory is not known")
		return ""
	}
	return filepath.Join(dir, rest)
}

func (o object) http(s *Server) {
	for _, key := range []string{"args", "env", "cwd", "inherit_env"} {
		if o.has(key) {
			o.warn(key, "it has no meaning for a server with a url")
		}
	}
	s.URL, s.HTTP.SSE = o.address("url").value, s.Transport == SSE
	keys, headers := o.textMap("headers")
	first := map[string]string{}
	for _, key := range keys {
		t, name := headers[key], strings.ToLower(key)
		switch {
		case !streamable.ValidName(key):
			o.faults.add(t.path, t.node, "no header can have this name")
		case streamable.Owned(key):
			o.faults.add(t.path, t.node, "the header is the transport's own; take it out")
		case first[name] != "":
			o.faults.add(t.path, t.node, "the same header as %q", first[name])
		case !streamable.ValidValue(t.value):
			o.reject(t, "the value has a line break or another control character")
		default:
			if s.HTTP.Headers == nil {
				s.HTTP.Headers = map[string]string{}
			}
			s.HTTP.Headers[key] = t.value
		}
		first[name] = key
	}
	o.auth(s, first)
}

func (o object) warn(key, what string) {
	*o.warnings = append(*o.warnings, join(o.path, key)+": "+what)
}

func (o object) auth(s *Server, headers map[string]string) {
	auth, ok := o.sub("auth", "client_id", "client_secret", "private_key", "key_id", "scopes", "token_url")
	if !ok {
		return
	}
	switch {
	case s.Transport == SSE:
		o.fault("auth", "only Streamable HTTP has it, not the transport sse")
	case headers["authorization"] != "":
		o.fault("auth", "it sets the header %q, which is also under headers; want one of them", headers["authorization"])
	}
	s.HTTP.Auth = &mcpproxy.ClientCredentials{}
	credentials := s.HTTP.Auth
	credentials.ClientID = auth.filled("client_id").value
	credentials.ClientSecret = auth.filled("client_secret").value
	credentials.PrivateKey = auth.privateKey("private_key")
	credentials.KeyID = auth.filled("key_id").value
	if !auth.has("client_id") {
		auth.faults.add(auth.path, auth.node, "client_id is missing")
	}
	switch secret, key := auth.has("client_secret"), auth.has("private_key"); {
	case secret && key:
		auth.faults.add(auth.path, auth.node, "it has both client_secret and private_key; want one of them")
	case !secret && !key:
		auth.faults.add(auth.path, auth.node, "client_secret or private_key is missing")
	case !key && auth.has("key_id"):
		auth.warn("key_id", "it has no meaning without private_key")
	}
	credentials.Scopes = values(auth.texts("scopes"))
	if auth.has("token_url") {
		t := auth.address("token_url")
		if credentials.TokenURL = t.value; t.present {
			if err := oauth.CheckTokenURL(t.value); err != nil {
				auth.reject(t, "it %v", err)
			}
		}
	}
}

// privateKey reads a key in PEM; nil where there is none, or a fault.
func (o object) privateKey(key string) crypto.Signer {
	t := o.filled(key)
	if !t.present {
		return nil
	}
	signer, err := oauth.ParsePrivateKey([]byte(t.value))
	if err != nil {
		o.reject(t, "it %v", err)
		return nil
	}
	return signer
}
