package mcpworkflow_test

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// TestReplayOfThePreviousRelease: what a Workflow of the release before did must
// replay, also where testdata no longer has it. Before the first release, and in
// a module without its repository, there is nothing that could break.
func TestReplayOfThePreviousRelease(t *testing.T) {
	t.Parallel()
	dir := releasedHistories(t, ".")
	if dir == "" {
		t.Log("there is no earlier release here")
		return
	}
	replayAll(t, dir)
}

// TestReleasedHistories has a release of its own.
func TestReleasedHistories(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		_, err := git(t, repo, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		require.NoError(t, err)
	}
	run("init", "-q")
	require.Empty(t, releasedHistories(t, repo))
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "testdata"), 0o700))
	history, err := os.ReadFile("testdata/missing.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(repo, "testdata", "missing.json"), history, 0o600))
	run("add", ".")
	run("commit", "-q", "-m", "a release")
	run("tag", "workflow-client/v0.1.0")
	run("rm", "-q", "testdata/missing.json")
	run("commit", "-q", "-m", "without its history")
	dir := releasedHistories(t, repo)
	got, err := os.ReadFile(filepath.Join(dir, "missing.json"))
	require.NoError(t, err)
	require.Equal(t, string(history), string(got))
	replayAll(t, dir)
}

func replayAll(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: interceptors(true)})
	require.NoError(t, err)
	for name, w := range recordedWorkflows {
		replayer.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	for _, file := range files {
		require.NoError(t, replayer.ReplayWorkflowHistoryFromJSONFile(quiet(), file), file)
	}
}

// releasedHistories copies the histories of the newest release that HEAD comes
// from to a directory. It returns an empty string where there is none.
func releasedHistories(t *testing.T, repo string) string {
	t.Helper()
	tag, err := git(t, repo, "describe", "--tags", "--abbrev=0", "--match", "workflow-client/v*")
	if err != nil {
		return ""
	}
	names, err := git(t, repo, "ls-tree", "--name-only", tag, "testdata/")
	require.NoError(t, err)
	dir := t.TempDir()
	for name := range strings.FieldsSeq(names) {
		data, err := git(t, repo, "show", tag+":./"+name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, path.Base(name)), []byte(data+"\n"), 0o600))
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Logf("git %s: %s", args[0], e.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
