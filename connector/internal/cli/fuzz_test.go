package cli

// An internal test: the program's flags lead to parseService together with all
// else that a start needs.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzService: what --service takes can be written down again.
func FuzzService(f *testing.F) {
	for _, seed := range []string{"tools", "tools=endpoint,prefix=p", "=e", "t=", "t,prefix", "t,prefix=a=b,prefix=c", "t,x=1", ",", "t=a=b", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s, err := parseService(value)
		if err != nil {
			require.Contains(t, err.Error(), "want NAME[=ENDPOINT][,prefix=P]")
			return
		}
		require.NotEmpty(t, s.Name)
		require.NotContains(t, s.Name+s.Endpoint+s.Prefix, ",")
		written := s.Name
		if s.Endpoint != "" {
			written += "=" + s.Endpoint
		}
		if s.Prefix != "" {
			written += ",prefix=" + s.Prefix
		}
		again, err := parseService(written)
		require.NoError(t, err)
		require.Equal(t, s, again)
		_, err = parseServices(strings.Fields(value))
		if err != nil {
			require.Contains(t, err.Error(), "--service")
		}
	})
}
