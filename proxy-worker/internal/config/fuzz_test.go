package config_test

import (
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	"github.com/stretchr/testify/require"
)

const planted = "pl4nted-s3cret"

// Whatever stands around them, no message shows the values of headers, env, auth,
// the inside of a URL, or what a variable stands for.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		`"command":"c"`, `"url":"http://me:${TOKEN}@h/?k=${TOKEN}"`, `"url":"${TOKEN}"`, `"command":"${TOKEN}","session":"${TOKEN}"`,
		`"command":1,"tool_filters":{"allowed":["(${TOKEN}"]}`, `"headers":{"A":"\u0000"},"auth":{}`, `"policy":{"retry":{"maximum_attempts":"${TOKEN}"}}`,
		`"command":"c","service":"${TOKEN}"},"t":{"command":"c","service":"${TOKEN}"`, `"prefix":"${TOKEN}.","protocol_version":"${TOKEN}"`,
		`"command":"~/${TOKEN}","startup_timeout":"${TOKEN}","type":"${TOKEN}"`, `"mcpServers":{"x":1}`, `"command":"c","env":{"A":"${`, `]`, ``,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	lookup := func(name string) (string, bool) { return planted, name == "TOKEN" }
	f.Fuzz(func(t *testing.T, inside string, lenient bool) {
		document := `{"mcpServers":{"s":{` + inside + `,"headers":{"Authorization":"` + planted + `","B":["` + planted + `"]},"env":{"A":"` + planted +
			`"},"auth":{"client_id":"` + planted + `","client_secret":"` + planted + `"},"url":"ftp://` + planted + `@h/?` + planted + `"}}}`
		for _, d := range []string{document, inside, strings.Replace(document, ","+`"url"`, `,"u"`, 1)} {
			file, err := config.Load("-", strings.NewReader(d), config.Options{
				Lookup: lookup, Home: func() (string, error) { return "/home", nil }, ContinueOnError: lenient, PrefixWithServerName: lenient,
			})
			if strings.Contains(inside, planted) {
				continue
			}
			if err != nil {
				var wrong *config.Error
				require.ErrorAs(t, err, &wrong)
				require.NotEmpty(t, wrong.Faults)
				require.NotContains(t, err.Error(), planted)
				require.Nil(t, file)
				continue
			}
			for _, warning := range file.Warnings {
				require.NotContains(t, warning, planted)
			}
			for _, skipped := range file.Skipped {
				require.NotContains(t, skipped.Err.Error(), planted)
			}
			for _, s := range file.Servers {
				require.NotEmpty(t, s.Service)
				require.NotEmpty(t, s.Command+s.URL)
			}
		}
	})
}
