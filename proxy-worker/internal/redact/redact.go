// Package redact takes secrets out of text that others wrote, such as what a
// child process prints or a server answers.
package redact

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "***"

// minLength is the shortest secret that is replaced: shorter ones are in every
// text by chance.
const minLength = 4

// New returns a function that puts [Mark] in the place of every secret. A secret
// of several lines is also found line by line. The function may be called by many
// at once.
func New(secrets ...string) func(string) string {
	var found []string
	for _, s := range secrets {
		found = append(found, s)
		for line := range strings.Lines(s) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return len(s) < minLength })
	if len(found) == 0 {
		return func(s string) string { return s }
	}
	// The longest first: one may be part of another.
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(found))
	for _, s := range slices.Compact(found) {
		pairs = append(pairs, s, Mark)
	}
	return strings.NewReplacer(pairs...).Replace
}

// Header returns the secrets of a header's value: the whole, and what follows a
// scheme such as Bearer.
func Header(value string) []string {
	secrets := []string{value}
	if scheme, credentials, ok := strings.Cut(value, " "); ok && scheme != "" {
		secrets = append(secrets, strings.TrimSpace(credentials))
	}
	return secrets
}

// URL returns the secrets of a URL: its user info and the values of its query,
// both as they are written and as they are meant. A URL that cannot be read is
// secret as a whole.
func URL(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return []string{raw}
	}
	var secrets []string
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, u.User.String(), u.User.Username(), password)
		if _, escaped, ok := strings.Cut(u.User.String(), ":"); ok {
			secrets = append(secrets, escaped)
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok { // a token alone
			value = key
		}
		meant, err := url.QueryUnescape(value)
		if err == nil {
			secrets = append(secrets, meant)
		}
		secrets = append(secrets, value)
	}
	return secrets
}
