package containers_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// root is the checkout.
var root = func() string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return dir
}()

// compose is compose.yaml: as much of the format as it uses, and whatever else it
// has fails the test.
type compose struct {
	Name       string
	Services   map[string]service
	Extensions map[string]any `yaml:",inline"`
}

type service struct {
	Image       string
	Build       *struct{ Context, Target string }
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck *struct {
		Test              []string
		Interval, Timeout time.Duration
		Retries           int
	}
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`

	StopGracePeriod time.Duration `yaml:"stop_grace_period"`
}

var variable = regexp.MustCompile(`\$\$|\$\{(\w+):-([^}]*)\}`)

// readCompose reads compose.yaml with the values of variables.
func readCompose(t *testing.T, values map[string]string) compose {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "compose.yaml"))
	require.NoError(t, err)
	for _, other := range variable.Split(string(text), -1) {
		require.NotContains(t, other, "$", "the tests know variables with a default alone")
	}
	text = variable.ReplaceAllFunc(text, func(match []byte) []byte {
		if string(match) == "$$" {
			return []byte("$")
		}
		parts := variable.FindSubmatch(match)
		if value := values[string(parts[1])]; value != "" {
			return []byte(value)
		}
		return parts[2]
	})
	var c compose
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	require.NoError(t, dec.Decode(&c))
	for name := range c.Extensions {
		require.True(t, strings.HasPrefix(name, "x-"), name)
	}
	return c
}

// order are the names of the services, each behind those that it depends on.
func (c compose) order(t *testing.T) []string {
	t.Helper()
	var order []string
	var add func(name string)
	add = func(name string) {
		require.Contains(t, c.Services, name)
		for _, needed := range slices.Sorted(maps.Keys(c.Services[name].DependsOn)) {
			if !slices.Contains(order, needed) {
				add(needed)
			}
		}
		order = append(order, name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if !slices.Contains(order, name) {
			add(name)
		}
	}
	return order
}
