package oauth_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/oauth"
)

func TestScopesInsufficient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header []string
		want   bool
	}{
		"none":                 {},
		"Bearer":               {header: []string{`Bearer error="insufficient_scope", scope="x"`}, want: true},
		"spelled differently":  {header: []string{`bEARER Error = insufficient_scope,scope=x`}, want: true},
		"escaped":              {header: []string{`Bearer realm="a \", b", error="insufficient\_scope"`}, want: true},
		"without commas":       {header: []string{`Bearer realm="x" error="insufficient_scope"`}, want: true},
		"empty value":          {header: []string{`Bearer error="insufficient_scope", scope="x", error_description=""`}, want: true},
		"beside an empty one":  {header: []string{`Basic realm=""`, `Bearer error="insufficient_scope"`}, want: true},
		"after an empty one":   {header: []string{`Basic realm="", Bearer error="insufficient_scope"`}, want: true},
		"beside a broken one":  {header: []string{`Basic realm="`, `"`, `=`, `Bearer error="insufficient_scope"`, `Basic "`}, want: true},
		"after a token68":      {header: []string{`Negotiate YII+/==, Bearer error="insufficient_scope"`}, want: true},
		"second Bearer":        {header: []string{`Bearer realm="x", Bearer error="insufficient_scope"`}, want: true},
		"beside a long one":    {header: []string{strings.Repeat(",", 1<<20), `Bearer error="insufficient_scope"`}, want: true},
		"too long":             {header: []string{`Bearer error="insufficient_scope", scope="` + strings.Repeat("x", 8<<10) + `"`}},
		"another error":        {header: []string{`Bearer error="invalid_token"`}},
		"in another value":     {header: []string{`Bearer realm="Bearer error=insufficient_scope"`}},
		"of another scheme":    {header: []string{`Bearer realm="x", DPoP error="insufficient_scope"`}},
		"without its end":      {header: []string{`Bearer error="insufficient_scope`}},
		"without a scheme":     {header: []string{`error="insufficient_scope"`}},
		"only commas and such": {header: []string{`,, ,=,"",`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Www-Authenticate": c.header}}
			require.Equal(t, c.want, oauth.ScopesInsufficient(resp))
			resp.StatusCode = http.StatusUnauthorized
			require.False(t, oauth.ScopesInsufficient(resp))
		})
	}
}
