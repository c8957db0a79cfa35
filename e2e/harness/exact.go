package harness

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

// Exact returns JSON in a form that is the same for two documents if and only if
// they have the same tokens: number literals as they are written, the code units
// of strings however they are escaped, members in their order and with their
// duplicates. White space goes.
func Exact(raw string) (string, error) {
	if !json.Valid([]byte(raw)) {
		return "", fmt.Errorf("no JSON: %.100q", raw)
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end := i + 1
			for raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			b.WriteByte('"')
			writeUnits(&b, raw[i+1:end])
			b.WriteByte('"')
			i = end + 1
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), nil
}

// writeUnits writes each UTF-16 code unit of a string's inside; printable ASCII
// as it is.
func writeUnits(b *strings.Builder, s string) {
	unit := func(u uint16) {
		if u >= ' ' && u < 0x7f && u != '"' && u != '\\' {
			b.WriteByte(byte(u))
			return
		}
		fmt.Fprintf(b, `\u%04x`, u)
	}
	for s != "" {
		if s[0] != '\\' {
			r := []rune(s)[0]
			s = s[len(string(r)):]
			for _, u := range utf16.Encode([]rune{r}) {
				unit(u)
			}
			continue
		}
		if s[1] == 'u' {
			u, _ := strconv.ParseUint(s[2:6], 16, 16)
			unit(uint16(u))
			s = s[6:]
			continue
		}
		unit(map[byte]uint16{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[s[1]] | plain(s[1]))
		s = s[2:]
	}
}

func plain(c byte) uint16 {
	if strings.IndexByte(`"\/`, c) >= 0 {
		return uint16(c)
	}
	return 0
}

// RequireExact wants both documents to have the same tokens.
func RequireExact(tb testing.TB, want, got string) {
	tb.Helper()
	w, err := Exact(want)
	require.NoError(tb, err)
	g, err := Exact(got)
	require.NoError(tb, err)
	require.Equal(tb, w, g)
}
