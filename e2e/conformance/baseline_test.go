package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// entry is a scenario, or one check of it, that does not pass.
type entry struct {
	scenario string
	check    string // empty for the whole scenario
	reason   string
}

func (e entry) String() string {
	if e.check == "" {
		return e.scenario
	}
	return e.scenario + ":" + e.check
}

func (r run) file() string { return filepath.Join("baseline", r.name+"-"+r.revision+".yml") }

// baseline reads what does not pass, in the suite's own format. The comment above
// an entry is the reason, for the entries below it too until the next comment.
func (r run) baseline(tb testing.TB) []entry {
	tb.Helper()
	data, err := os.ReadFile(r.file())
	require.NoError(tb, err)
	list, err := parseBaseline(data, r.side)
	require.NoError(tb, err)
	for _, e := range list {
		require.NotEmpty(tb, e.reason, "%s: no comment says why %s does not pass", r.file(), e)
	}
	return list
}

func parseBaseline(data []byte, side string) ([]entry, error) {
	sections := map[string]yaml.Node{}
	if err := yaml.Unmarshal(data, &sections); err != nil {
		return nil, err
	}
	var list []entry
	reason := ""
	for _, item := range sections[side].Content {
		if item.HeadComment != "" {
			reason = strings.ReplaceAll(strings.ReplaceAll(item.HeadComment, "# ", ""), "\n", " ")
		}
		scenario, check, _ := strings.Cut(item.Value, ":")
		list = append(list, entry{scenario, check, reason})
	}
	return list, nil
}
