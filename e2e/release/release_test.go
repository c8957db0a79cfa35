package release_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReleaseCommit: one commit is the release, with one version everywhere.
func TestReleaseCommit(t *testing.T) {
	t.Parallel()
	r := released(t)
	git := func(args ...string) string { return strings.TrimSpace(must(t, r.repo, nil, "git", args...)) }

	require.Equal(t, "main", git("symbolic-ref", "--short", "HEAD"))
	require.Empty(t, git("status", "--porcelain"))
	require.Equal(t, "1", git("rev-list", "--count", strings.TrimSpace(r.parent)+"..HEAD"))
	require.Equal(t, "repo: release "+r.version, git("log", "-1", "--format=%s"))
	require.Equal(t, "Ada <ada@example.com>", git("log", "-1", "--format=%an <%ae>"))

	head := git("rev-parse", "HEAD")
	require.ElementsMatch(t, r.tags(), strings.Fields(git("tag", "--list")))
	for _, tag := range r.tags() {
		require.Equal(t, "tag", git("cat-file", "-t", tag), "%s has no message", tag)
		require.Equal(t, head, git("rev-parse", tag+"^{commit}"), tag)
	}

	changes := read(t, r.repo, "CHANGELOG.md")
	require.Regexp(t, `(?m)^## \[Unreleased\]\n\n## \[`+regexp.QuoteMeta(r.version[1:])+`\] - \d{4}-\d\d-\d\d\n\n### Fixed\n\n- `+entry, changes)
}

func (r *rehearsal) tags() []string {
	tags := []string{r.version}
	for _, module := range published {
		tags = append(tags, module+"/"+r.version)
	}
	return tags
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(data)
}

// TestReleaseModules: every module requires the others at the version of the
// release, and has the sums that they will have.
func TestReleaseModules(t *testing.T) {
	t.Parallel()
	r := released(t)

	type version struct{ Path, Version string }
	var work struct {
		Use     []struct{ DiskPath string }
		Replace []struct{ Old version }
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, r.repo, nil, "go", "work", "edit", "-json")), &work))
	var replaced, want []version
	for _, replace := range work.Replace {
		replaced = append(replaced, replace.Old)
	}
	for _, module := range published {
		want = append(want, version{repository + "/" + module, r.version})
	}
	require.ElementsMatch(t, want, replaced)

	siblings := 0
	for _, use := range work.Use {
		var mod struct {
			Require          []version
			Replace, Exclude []any
		}
		require.NoError(t, json.Unmarshal([]byte(must(t, filepath.Join(r.repo, use.DiskPath), nil, "go", "mod", "edit", "-json")), &mod))
		require.Empty(t, mod.Replace, use.DiskPath)
		require.Empty(t, mod.Exclude, use.DiskPath)
		var sums []string
		for line := range strings.Lines(read(t, r.repo, use.DiskPath, "go.sum")) {
			if strings.HasPrefix(line, repository+"/") {
				sums = append(sums, strings.Join(strings.Fields(line)[:2], " "))
			}
		}
		var want []string
		for _, v := range mod.Require {
			if strings.HasPrefix(v.Path, repository+"/") {
				siblings++
				require.Equal(t, r.version, v.Version, "%s requires %s", use.DiskPath, v.Path)
				want = append(want, v.Path+" "+v.Version, v.Path+" "+v.Version+"/go.mod")
			}
		}
		require.ElementsMatch(t, want, sums, "%s/go.sum", use.DiskPath)
	}
	require.NotZero(t, siblings)

	// What CI does next with the commit, in the workspace.
	must(t, r.repo, nil, "scripts/tidy.sh", "--check")
	must(t, r.repo, nil, "go", "list", "-deps", "work")
}

// TestReleaseIsPushedByItsWords types what the script says into a shell, with a
// remote that counts the tags of each push.
func TestReleaseIsPushedByItsWords(t *testing.T) {
	t.Parallel()
	r := released(t)
	dir := t.TempDir()
	here, remote := filepath.Join(dir, "here"), filepath.Join(dir, "remote")
	must(t, "", nil, "git", "init", "--quiet", "--bare", remote)
	must(t, "", nil, "cp", "-R", r.repo, here)
	must(t, here, nil, "git", "remote", "add", "origin", remote)

	var pushed []string
	for _, line := range regexp.MustCompile(`(?m)^\tgit push .*$`).FindAllString(r.said, -1) {
		words := strings.Fields(line)
		require.Equal(t, []string{"git", "push", "origin"}, words[:3])
		require.LessOrEqual(t, len(words[3:]), 3, "no workflow starts for more tags at once")
		must(t, here, nil, words[0], words[1:]...)
		pushed = append(pushed, words[3:]...)
	}
	require.Equal(t, "main", pushed[0])
	require.Equal(t, r.version, pushed[len(pushed)-1])
	require.ElementsMatch(t, r.tags(), pushed[1:])
	require.ElementsMatch(t, r.tags(), strings.Fields(must(t, remote, nil, "git", "tag", "--list")))
	require.Contains(t, r.said, "\n\tgit push origin "+r.version+"\n")

	// Neither the same release nor one before it can be made again.
	before := state(t, here)
	o := releaseScript(t, here, r.version)
	require.Equal(t, 2, o.code)
	require.Contains(t, o.errOut, r.version+" does not come after "+r.version)
	require.Equal(t, before, state(t, here))
}

// TestEveryModuleIsKnown: whoever adds a module says whether it is published.
func TestEveryModuleIsKnown(t *testing.T) {
	t.Parallel()

	var all []string
	for dir := range strings.Lines(must(t, root, nil, "go", "list", "-m", "-f", "{{.Path}}")) {
		all = append(all, strings.TrimPrefix(strings.TrimSpace(dir), repository+"/"))
	}
	require.ElementsMatch(t, slices.Concat(published, []string{"e2e", "examples"}), all,
		"a module more: scripts/release.sh and these tests need to know whether it is published")
}
