package upstream

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// TokenLife is how long an access token is good for.
const TokenLife = 3 * time.Second

// authorize adds an authorization server of the client-credentials grant.
func (s *server) authorize(mux *http.ServeMux) {
	metadata := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "protected-resource") {
			fmt.Fprintf(w, `{"resource":"http://%s/mcp","authorization_servers":["http://%s"]}`, r.Host, r.Host)
			return
		}
		fmt.Fprintf(w, `{"issuer":"http://%[1]s","token_endpoint":"http://%[1]s/token","authorization_endpoint":"http://%[1]s/authorize","response_types_supported":["code"],`+
			`"code_challenge_methods_supported":["S256"],"grant_types_supported":["client_credentials"],"token_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post"]}`, r.Host)
	}
	for _, path := range []string{"oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"} {
		mux.HandleFunc("GET /.well-known/"+path, metadata)
	}
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if f, ok := s.fault(FaultStatus, "token", ""); ok {
			respond(w, f)
			return
		}
		_, secret, basic := r.BasicAuth()
		if !basic {
			secret = r.FormValue("client_secret")
		}
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("grant_type") != "client_credentials" || subtle.ConstantTimeCompare([]byte(secret), []byte(s.Secret)) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not %s"}`, secret)
			return
		}
		token := "token-" + rand.Text()
		s.mu.Lock()
		s.tokens[token] = time.Now().Add(TokenLife)
		s.mu.Unlock()
		s.journal.add(Entry{Event: EventToken, Text: token})
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, token, int(TokenLife.Seconds()))
	})
}

// guard lets requests with a token in, where one is wanted.
func (s *server) guard(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.Secret != "" {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			s.mu.Lock()
			good := time.Now().Before(s.tokens[token])
			s.mu.Unlock()
			if !good {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource"`, r.Host))
				http.Error(w, "unauthorized: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
				return
			}
		}
		next(w, r)
	}
}
