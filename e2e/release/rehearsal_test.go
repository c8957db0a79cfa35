package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const repository = "github.com/durable-mcp/durable-mcp"

// published are the modules that a release has a tag for.
var published = []string{"tool-sdk", "workflow-client", "proxy-worker", "connector"}

// commands are what people install, by the name of the binary.
var commands = map[string]string{
	"durable-mcp-connector": repository + "/connector/cmd/durable-mcp-connector",
	"durable-mcp-proxy":     repository + "/proxy-worker/cmd/durable-mcp-proxy",
}

// scratch is where the rehearsal is. All tests need it, so it is no test's own.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "durable-mcp-release-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// rehearsal is a release of this checkout in a copy.
type rehearsal struct {
	version string
	repo    string // the copy, which has the release
	parent  string // the commit before it
	said    string // by the script
	env     []string
}

var rehearse = sync.OnceValues(func() (*rehearsal, error) {
	version, err := nextVersion()
	if err != nil {
		return nil, err
	}
	r := &rehearsal{version: version, repo: filepath.Join(scratch, "repo")}
	if err := copyCheckout(r.repo); err != nil {
		return nil, err
	}
	if r.parent, err = run(r.repo, nil, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if r.said, err = run(r.repo, nil, "scripts/release.sh", version); err != nil {
		return nil, err
	}
	r.env, err = r.stranger()
	return r, err
})

// released is the rehearsal, which the first test that asks makes.
func released(t *testing.T) *rehearsal {
	t.Helper()
	r, err := rehearse()
	require.NoError(t, err)
	return r
}

// stranger is the environment of somebody who has nothing of us. The go command
// gets our modules from the tags: git finds the copy at the repository's address.
// Other modules may come from this machine's cache, as from any proxy. There is
// no workspace, and nothing of ours gets into the cache that this machine keeps.
func (r *rehearsal) stranger() ([]string, error) {
	out, err := run(root, nil, "go", "env", "GOMODCACHE", "GOPROXY", "GONOSUMDB")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	cache, proxy, unchecked := lines[0], lines[1], lines[2]
	return []string{
		"GOWORK=off",
		"GOFLAGS=-modcacherw -trimpath",
		"CGO_ENABLED=0",
		"GOMODCACHE=" + filepath.Join(scratch, "cache"),
		"GOPROXY=file://" + cache + "/cache/download," + proxy,
		"GONOPROXY=" + repository,
		"GONOSUMDB=" + repository + "," + unchecked,
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + r.repo + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://" + repository,
	}, nil
}

// clone is the release as git clone --branch VERSION has it.
func (r *rehearsal) clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	must(t, "", nil, "git", "clone", "--quiet", "--branch", r.version, "file://"+r.repo, dir)
	return dir
}
