package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${VAR}, ${env:VAR}, ${VAR:-default} and $$ in one pass: what
// comes out of a variable is not looked at again. Missing lists variables
// without a value, and varies says whether any variable is in it; err is about how s
// is written.
func expand(s string, lookup func(string) (string, bool)) (value string, varies bool, missing []string, err error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			return b.String(), varies, missing, nil
		}
		b.WriteString(s[:i])
		switch s = s[i:]; s[1] {
		case '$':
			b.WriteByte('$')
			s = s[2:]
		case '{':
			end := strings.IndexByte(s, '}')
			if end < 0 {
				return "", false, nil, errors.New("a ${ without its }; write $${ for the characters themselves")
			}
			v, name, err := variable(s[2:end], lookup)
			if err != nil {
				return "", false, nil, err
			}
			varies = true
			if name != "" {
				missing = append(missing, name)
			}
			b.WriteString(v)
			s = s[end+1:]
		default:
			b.WriteByte('$')
			s = s[1:]
		}
	}
}

// variable returns what stands for the inside of ${…}, or the name that has no
// value. As in a shell, :- also replaces an empty value.
func variable(inside string, lookup func(string) (string, bool)) (value, missing string, err error) {
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	name = strings.TrimPrefix(name, "env:")
	if !variableName.MatchString(name) {
		// The name is not shown: it may be part of a secret.
		return "", "", errors.New("a ${…} that is none of ${VAR}, ${env:VAR} and ${VAR:-default}; write $${ for the characters themselves")
	}
	if strings.Contains(strings.ReplaceAll(fallback, "$$", ""), "${") {
		return "", "", fmt.Errorf("${%s:-…}: a default cannot hold a variable", name)
	}
	v, ok := lookup(name)
	switch {
	case hasFallback && (!ok || v == ""):
		return strings.ReplaceAll(fallback, "$$", "$"), "", nil
	case !ok:
		return "", name, nil
	}
	return v, "", nil
}
