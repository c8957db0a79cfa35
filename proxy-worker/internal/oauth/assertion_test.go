package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

func newKey(t *testing.T, kind string) (key crypto.Signer) {
	t.Helper()
	var err error
	switch kind {
	case "RSA 1024":
		key, err = rsa.GenerateKey(rand.Reader, 1024)
	case "RSA":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "Ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		curve := map[string]elliptic.Curve{
			"P-224": elliptic.P224(), "P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521(),
		}[kind]
		key, err = ecdsa.GenerateKey(curve, rand.Reader)
	}
	require.NoError(t, err)
	return key
}

type otherKey struct{}

func (otherKey) Public() crypto.PublicKey { return "public" }
func (otherKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("unused")
}

// away is a key in a service that does not answer.
type away struct{ crypto.Signer }

func (away) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New(secret)
}

// jwt is an assertion as a server reads it.
type jwt struct {
	Alg, Typ, Kid, Iss, Sub, Aud, Jti string
	Iat, Exp                          int64
}

// read verifies the assertion of a request.
func read(form url.Values, public crypto.PublicKey) (j jwt, ok bool) {
	parts := strings.Split(form.Get("client_assertion"), ".")
	if len(parts) != 3 || form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		return j, false
	}
	for _, part := range parts[:2] {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(raw, &j) != nil {
			return j, false
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	return j, err == nil && verify(j.Alg, public, []byte(parts[0]+"."+parts[1]), signature)
}

func verify(alg string, public crypto.PublicKey, input, signature []byte) bool {
	digest := func(h crypto.Hash) []byte { w := h.New(); w.Write(input); return w.Sum(nil) }
	pair := func(h crypto.Hash, size int) bool {
		key, ok := public.(*ecdsa.PublicKey)
		return ok && len(signature) == 2*size && ecdsa.Verify(key, digest(h),
			new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	}
	switch alg {
	case "RS256":
		return rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), crypto.SHA256, digest(crypto.SHA256), signature) == nil
	case "PS256":
		return rsa.VerifyPSS(public.(*rsa.PublicKey), crypto.SHA256, digest(crypto.SHA256), signature,
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
	case "ES256":
		return pair(crypto.SHA256, 32)
	case "ES384":
		return pair(crypto.SHA384, 48)
	case "ES512":
		return pair(crypto.SHA512, 66)
	case "EdDSA", "Ed25519":
		return ed25519.Verify(public.(ed25519.PublicKey), input, signature)
	}
	return false
}

func TestPrivateKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  string
		algs []string
		want string
	}{
		"RSA":             {key: "RSA", want: "RS256"},
		"RSA, PSS stated": {key: "RSA", algs: []string{"ES256", "PS256"}, want: "PS256"},
		"P-256":           {key: "P-256", algs: []string{"RS256", "ES256"}, want: "ES256"},
		"P-384":           {key: "P-384", want: "ES384"},
		"P-521":           {key: "P-521", want: "ES512"},
		"Ed25519":         {key: "Ed25519", want: "EdDSA"},
		"Ed25519, stated": {key: "Ed25519", algs: []string{"Ed25519"}, want: "Ed25519"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := newKey(t, c.key)
			s := newServer(t)
			s.algs, s.takes, s.states = c.algs, []string{"private_key_jwt"}, []string{"client_secret_basic", "private_key_jwt"}
			s.signed = func(form url.Values) bool { _, ok := read(form, key.Public()); return ok }
			h := newHandler(t, oauth.Options{PrivateKey: key, KeyID: "key-1"})
			require.NoError(t, refused(t, h, s.URL+"/mcp", ""))
			require.NoError(t, refused(t, h, s.URL+"/mcp", "token-1"))
			require.Equal(t, 2, s.count())
			seen := map[string]bool{}
			for n := range 2 {
				form := s.request(n)
				j, _ := read(form, key.Public())
				require.WithinDuration(t, time.Now(), time.Unix(j.Iat, 0), patience)
				require.WithinRange(t, time.Unix(j.Exp, 0), time.Now(), time.Now().Add(10*time.Minute))
				require.False(t, seen[j.Jti], "an assertion is for one request")
				seen[j.Jti] = true
				j.Jti, j.Iat, j.Exp = "", 0, 0
				require.Equal(t, jwt{Alg: c.want, Typ: "JWT", Kid: "key-1", Iss: id, Sub: id, Aud: s.URL}, j)
				require.Equal(t, id, form.Get("client_id"))
				require.Empty(t, form.Get("client_secret"))
			}
		})
	}
}

// Where the issuer is not known the assertion is for the token endpoint.
func TestPrivateKeyTokenURL(t *testing.T) {
	t.Parallel()
	key := newKey(t, "P-256")
	s := newServer(t)
	s.takes = []string{"private_key_jwt"}
	s.signed = func(form url.Values) bool {
		j, ok := read(form, key.Public())
		return ok && j.Aud == s.URL+"/token" && j.Kid == ""
	}
	got, err := token(t, newHandler(t, oauth.Options{TokenURL: s.URL + "/token", PrivateKey: key}))
	require.NoError(t, err)
	require.Equal(t, "token-1", got)
}

func TestPrivateKeyRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare   func(s *server)
		away      bool
		message   string
		retryable bool
	}{
		"method":    {prepare: func(s *server) { s.states = []string{"client_secret_basic"} }, message: "private_key_jwt"},
		"algorithm": {prepare: func(s *server) { s.algs = []string{"RS256", "HS256"} }, message: "kind of private key"},
		"no answer": {away: true, message: "could not sign", retryable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			key := newKey(t, "P-256")
			if c.away {
				key = away{key}
			}
			err := refused(t, newHandler(t, oauth.Options{PrivateKey: key}), s.URL+"/mcp", "")
			require.ErrorContains(t, err, c.message)
			var e *oauth.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.retryable, e.Retryable)
			require.Zero(t, s.count())
		})
	}
}

func TestParsePrivateKey(t *testing.T) {
	t.Parallel()
	text := func(kind string, der []byte, err error) string {
		require.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	pkcs8 := func(key crypto.Signer) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return text("PRIVATE KEY", der, err)
	}
	// As OpenSSL has it: openssl ecparam -name secp384r1 -genkey
	parameters := text("EC PARAMETERS", []byte{6, 5, 0x2b, 0x81, 4, 0, 0x22}, nil)
	private, curve := newKey(t, "RSA").(*rsa.PrivateKey), newKey(t, "P-384").(*ecdsa.PrivateKey)
	sec1, err := x509.MarshalECPrivateKey(curve)
	for name, good := range map[string]string{
		"PKCS #8, RSA":     pkcs8(private),
		"PKCS #8, ECDSA":   pkcs8(curve),
		"PKCS #8, Ed25519": pkcs8(newKey(t, "Ed25519")),
		"PKCS #1":          text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(private), nil),
		"SEC 1":            "Some words before it.\n" + strings.TrimSpace(text("EC PRIVATE KEY", sec1, err)),
		"curve first":      parameters + text("EC PRIVATE KEY", sec1, err),
		"certificate":      text("CERTIFICATE", []byte(secret), nil) + pkcs8(private),
	} {
		key, err := oauth.ParsePrivateKey([]byte(good))
		require.NoError(t, err, name)
		_, err = oauth.New(oauth.Options{ClientID: id, PrivateKey: key})
		require.NoError(t, err, name)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	for name, bad := range map[string]string{
		"nothing":    "",
		"no PEM":     secret,
		"public key": text("PUBLIC KEY", public, err),
		"curve only": parameters,
		"garbage":    text("PRIVATE KEY", []byte(secret), nil),
		"encrypted":  text("ENCRYPTED PRIVATE KEY", []byte(secret), nil),
		"curve":      pkcs8(newKey(t, "P-224")),
		"short":      pkcs8(newKey(t, "RSA 1024")),
	} {
		_, err := oauth.ParsePrivateKey([]byte(bad))
		require.ErrorContains(t, err, "must be", name)
		require.NotContains(t, err.Error(), secret)
	}
}
