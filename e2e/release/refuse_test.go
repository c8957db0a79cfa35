package release_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// pristine is a copy of the checkout that stays as it is.
var pristine = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "pristine")
	return dir, copyCheckout(dir)
})

// clean is a copy of the checkout for a test to change.
func clean(t *testing.T) string {
	t.Helper()
	original, err := pristine()
	require.NoError(t, err)
	dir := t.TempDir()
	must(t, "", nil, "git", "clone", "--quiet", "--config", "user.name=Ada", "--config", "user.email=ada@example.com", original, dir)
	return dir
}

// commit changes a file of a copy.
func commit(t *testing.T, dir, file, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(data), 0o600))
	must(t, dir, nil, "git", "add", file)
	must(t, dir, nil, "git", "commit", "--quiet", "--message", file)
}

// TestRefusals: what does not fit is said before anything is done.
func TestRefusals(t *testing.T) {
	t.Parallel()

	git := func(args ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); must(t, dir, nil, "git", args...) }
	}
	file := func(name, data string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); commit(t, dir, name, data) }
	}
	for name, c := range map[string]struct {
		args    []string
		prepare func(*testing.T, string)
		says    string
	}{
		"no version":      {nil, nil, "usage: scripts/release.sh vX.Y.Z"},
		"two versions":    {[]string{"v0.1.0", "v0.2.0"}, nil, "usage: scripts/release.sh vX.Y.Z"},
		"without v":       {[]string{"0.1.0"}, nil, "0.1.0 is not a version like v0.1.0"},
		"too short":       {[]string{"v1"}, nil, "v1 is not a version like v0.1.0"},
		"a leading zero":  {[]string{"v0.01.0"}, nil, "v0.01.0 is not a version like v0.1.0"},
		"a pre-release":   {[]string{"v0.1.0-rc.1"}, nil, "v0.1.0-rc.1 is not a version like v0.1.0"},
		"another path":    {[]string{"v2.0.0"}, nil, "v2.0.0 needs other module paths, which end in /v2"},
		"the same again":  {[]string{"v0.9.0"}, git("tag", "v0.9.0"), "v0.9.0 does not come after v0.9.0"},
		"an older one":    {[]string{"v0.9.1"}, git("tag", "v0.10.0"), "v0.9.1 does not come after v0.10.0"},
		"a module's tag":  {[]string{"v0.9.0"}, git("tag", "connector/v0.9.0"), "there is a tag connector/v0.9.0"},
		"another branch":  {[]string{"v0.9.0"}, git("switch", "--quiet", "--create", "topic"), "releases are made of main"},
		"no branch":       {[]string{"v0.9.0"}, git("switch", "--quiet", "--detach"), "releases are made of main"},
		"a deleted file":  {[]string{"v0.9.0"}, git("rm", "--quiet", "LICENSE"), "there are changes that are not committed"},
		"no entry":        {[]string{"v0.9.0"}, file("CHANGELOG.md", unreleased+"\n\n## [0.8.0]\n\n- x\n"), "CHANGELOG.md has no entry under [Unreleased]"},
		"an entry of old": {[]string{"v0.9.0"}, file("CHANGELOG.md", unreleased+"\n\n- x\n\n## [0.9.0]\n"), "CHANGELOG.md has a section 0.9.0 already"},
		"an untracked one": {[]string{"v0.9.0"}, func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o600))
		}, "there are changes that are not committed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clean(t)
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			before := state(t, dir)
			o := releaseScript(t, dir, c.args...)
			require.Equal(t, 2, o.code, o.errOut)
			require.Contains(t, o.errOut, "release.sh: "+c.says)
			require.Equal(t, 1, strings.Count(o.errOut, "\n"), o.errOut)
			require.Empty(t, o.stdout)
			require.Equal(t, before, state(t, dir))
		})
	}
}

// TestAReleaseThatDoesNotBuild leaves nothing behind, and says what is wrong.
func TestAReleaseThatDoesNotBuild(t *testing.T) {
	t.Parallel()

	dir := clean(t)
	commit(t, dir, "tool-sdk/contract/broken.go", "package contract\n\nvar broken int = \"not a number\"\n")
	before := state(t, dir)
	o := releaseScript(t, dir, "v0.9.0")
	require.Equal(t, 1, o.code, o.errOut)
	require.Contains(t, o.errOut, "broken.go:3")
	require.Contains(t, o.errOut, "release.sh: no release; this checkout is as it was")
	require.Empty(t, o.stdout)
	require.Equal(t, before, state(t, dir))
}

// TestAReleaseThatIsInterrupted leaves nothing behind either.
func TestAReleaseThatIsInterrupted(t *testing.T) {
	t.Parallel()

	dir, temporary := clean(t), t.TempDir()
	before := state(t, dir)
	cmd := command(dir, []string{"TMPDIR=" + temporary}, "scripts/release.sh", "v0.9.0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errOut, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(errOut); lines.Scan(); {
		if strings.Contains(lines.Text(), "tool-sdk alone") {
			break
		}
	}
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM))
	_, err = io.Copy(io.Discard, errOut)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 143, cmd.ProcessState.ExitCode())
	requireEmpty(t, temporary)
	require.Equal(t, before, state(t, dir))
}
