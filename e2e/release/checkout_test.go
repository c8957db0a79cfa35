package release_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the directory of the checkout.
var root = filepath.Join("..", "..")

// copyCheckout makes a repository of the checkout's files as they are, committed
// or not. It has one commit and no tag, but what a release before this one has
// left, and an entry in the change log.
func copyCheckout(dir string) error {
	list, err := run(root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) { // deleted, and not committed yet
			continue
		} else if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			return err
		}
		data = prepare(path.Base(name), data)
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"config", "user.name", "Ada"},
		{"config", "user.email", "ada@example.com"},
		{"add", "--force", "."},
		{"commit", "--quiet", "--message", "the checkout"},
	} {
		if _, err := run(dir, nil, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

var sibling = regexp.MustCompile(`(` + repository + `/[a-z-]+) v\d\S*`)

// prepare is what a copy has for the file of that name.
func prepare(file string, data []byte) []byte {
	switch file {
	case "CHANGELOG.md":
		return bytes.Replace(data, []byte(unreleased+"\n"), []byte(unreleased+"\n\n### Fixed\n\n- "+entry+"\n"), 1)
	case "go.mod", "go.work":
		return sibling.ReplaceAll(data, []byte("$1 v0.0.1"))
	case "go.sum":
		return fmt.Appendf(data, "%[1]s/tool-sdk v0.0.1 h1:%[2]s\n%[1]s/tool-sdk v0.0.1/go.mod h1:%[2]s\n", repository, strings.Repeat("A", 43)+"=")
	default:
		return data
	}
}

// What the copy's change log has under the heading of the next release.
const (
	unreleased = "## [Unreleased]"
	entry      = "An entry of the rehearsal."
)

// nextVersion is one that was never released.
func nextVersion() (string, error) {
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	last := regexp.MustCompile(`(?m)^## \[(\d+)\.(\d+)\.\d+\]`).FindSubmatch(changes)
	if last == nil {
		return "v0.1.0", nil
	}
	minor, err := strconv.Atoi(string(last[2]))
	return fmt.Sprintf("v%s.%d.0", last[1], minor+1), err
}

// run runs a command and returns its standard output. Variables of env win over
// those of the tests. In copies git has no configuration but theirs, such as keys
// to sign with; in the checkout it may need what says that it is safe.
func run(dir string, env []string, name string, args ...string) (string, error) {
	cmd := command(dir, env, name, args...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s in %s: %w\n%s%s", strings.Join(cmd.Args, " "), dir, err, out, errOut.String())
	}
	return string(out), err
}

func command(dir string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if dir != root {
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// must is run where only success makes sense.
func must(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := run(dir, env, name, args...)
	require.NoError(t, err)
	return out
}

// outcome is what became of a script.
type outcome struct {
	code           int
	stdout, errOut string
}

// releaseScript runs scripts/release.sh of a copy, with a directory for temporary
// files that must be empty afterwards.
func releaseScript(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	temporary := t.TempDir()
	cmd := command(dir, []string{"TMPDIR=" + temporary}, "scripts/release.sh", args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	requireEmpty(t, temporary)
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// state is all of a repository that a release changes.
func state(t *testing.T, dir string) string {
	t.Helper()
	var s strings.Builder
	for _, args := range [][]string{
		{"rev-parse", "--symbolic-full-name", "HEAD"},
		{"rev-parse", "HEAD"},
		{"for-each-ref"},
		{"status", "--porcelain"},
		{"stash", "list"},
		{"worktree", "list"},
	} {
		s.WriteString(must(t, dir, nil, "git", args...))
	}
	return s.String()
}
