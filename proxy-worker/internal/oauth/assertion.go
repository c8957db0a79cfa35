package oauth

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // ES256, RS256, PS256
	_ "crypto/sha512" // ES384, ES512
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523, section 2.2
	// assertionLife is for one request, and for clocks that differ.
	assertionLife = 5 * time.Minute
	minRSABits    = 2048 // RFC 7518, section 3.3
)

var (
	errNoSignature = errors.New("oauth: the key made no signature of its kind")
	errNoKey       = errors.New("must be a private key in PEM: PKCS #8, PKCS #1 or SEC 1, not encrypted")
)

// signer says by a signature who the client is (RFC 7523, section 3).
type signer struct {
	key   crypto.Signer
	keyID string
	algs  []string // the JWS algorithms of the key, the usual one first
}

// newSigner returns an error for a key of another kind, in words that follow its
// name.
func newSigner(key crypto.Signer, keyID string) (*signer, error) {
	s := &signer{key: key, keyID: keyID}
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() >= minRSABits {
			s.algs = []string{"RS256", "PS256"}
		}
	case *ecdsa.PublicKey:
		if alg := curves[public.Curve.Params().Name]; alg != "" {
			s.algs = []string{alg}
		}
	case ed25519.PublicKey:
		s.algs = []string{"EdDSA", "Ed25519"}
	}
	if s.algs == nil {
		return nil, fmt.Errorf("must be of RSA with at least %d bits, of ECDSA on P-256, P-384 or P-521, or of Ed25519", minRSABits)
	}
	return s, nil
}

// curves maps the curve of a key to its algorithm (RFC 7518, section 3.4).
var curves = map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}

// ParsePrivateKey reads the first private key in PEM. Its error is in words that follow the
// key's name, and holds nothing of it.
func ParsePrivateKey(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	// OpenSSL writes the curve before the key, others a certificate.
	for block != nil && !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errNoKey
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = errNoKey
	}
	if err != nil {
		return nil, errNoKey
	}
	private, ok := key.(crypto.Signer)
	if !ok {
		return nil, errNoKey
	}
	if _, err := newSigner(private, ""); err != nil {
		return nil, err
	}
	return private, nil
}

// pick returns the algorithm for an endpoint that states some, or none at all;
// "" where it takes none of the key's.
func (s *signer) pick(stated []string) string {
	if len(stated) == 0 {
		return s.algs[0]
	}
	for _, alg := range s.algs {
		if slices.Contains(stated, alg) {
			return alg
		}
	}
	return ""
}

// assertion returns a JWT for one token request.
func (s *signer) assertion(alg, client, audience string, now time.Time) (string, error) {
	header, err := json.Marshal(struct {
		Algorithm string `json:"alg"`
		Type      string `json:"typ"`
		KeyID     string `json:"kid,omitempty"`
	}{cmp.Or(alg, s.algs[0]), "JWT", s.keyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}{client, client, audience, rand.Text(), now.Unix(), now.Add(assertionLife).Unix()})
	if err != nil {
		return "", err
	}
	input := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := s.sign(cmp.Or(alg, s.algs[0]), []byte(input))
	if err != nil {
		return "", err
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// sign makes the signature of a JWS (RFC 7518, section 3; RFC 8037, section 3.1).
func (s *signer) sign(alg string, input []byte) ([]byte, error) {
	hash := crypto.SHA256
	switch alg {
	case "EdDSA", "Ed25519":
		return s.key.Sign(rand.Reader, input, crypto.Hash(0))
	case "ES384":
		hash = crypto.SHA384
	case "ES512":
		hash = crypto.SHA512
	}
	h := hash.New()
	h.Write(input)
	digest := h.Sum(nil)
	if alg == "PS256" {
		return s.key.Sign(rand.Reader, digest, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash})
	}
	signature, err := s.key.Sign(rand.Reader, digest, hash)
	public, ok := s.key.Public().(*ecdsa.PublicKey)
	if err != nil || !ok {
		return signature, err
	}
	// A signer writes ASN.1, a JWS the two numbers at full length.
	var pair struct{ R, S *big.Int }
	size := (public.Curve.Params().BitSize + 7) / 8
	if _, err := asn1.Unmarshal(signature, &pair); err != nil || max(pair.R.BitLen(), pair.S.BitLen()) > 8*size {
		return nil, errNoSignature
	}
	raw := make([]byte, 2*size)
	pair.R.FillBytes(raw[:size])
	pair.S.FillBytes(raw[size:])
	return raw, nil
}
