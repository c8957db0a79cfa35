package containers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
)

// programsVariable names the directory of the programs, if they were built before.
const programsVariable = "DURABLE_MCP_E2E_PROGRAMS"

var programs struct {
	sync.Mutex

	dir string
}

var packages = regexp.MustCompile(`"(\./[^"]+)"`)

// buildPrograms builds what the Dockerfile builds, for Linux and as static binaries,
// and what takes the place of Go there.
func buildPrograms(t *testing.T) (dir string) {
	t.Helper()
	if dir := os.Getenv(programsVariable); dir != "" {
		return dir
	}
	programs.Lock()
	defer programs.Unlock()
	if programs.dir != "" {
		return programs.dir
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	dir, err = os.MkdirTemp("", "durable-mcp-e2e-") //nolint:usetesting // other tests need it too
	require.NoError(t, err)
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-buildvcs=false", "-o", dir + string(filepath.Separator), "./e2e/containers/standin"}
	for _, match := range packages.FindAllStringSubmatch(string(dockerfile), -1) {
		args = append(args, match[1])
	}
	cmd := exec.CommandContext(contextOf(t), "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	require.NoError(t, err, "%s", out)
	programs.dir = dir
	return dir
}

// removePrograms removes what buildPrograms has built.
func removePrograms() {
	programs.Lock()
	defer programs.Unlock()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
}

// build builds an image; of its options, target and arguments may be missing.
func (w *world) build(t *testing.T, name, dir, target string, args map[string]*string) (tag string) {
	t.Helper()
	var log strings.Builder
	tag, err := w.engine.BuildImage(contextOf(t), &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
		Context: dir, Repo: "durable-mcp-e2e/" + name, Tag: run, BuildArgs: args, BuildLogWriter: &log,
		BuildOptionsModifier: func(o *client.ImageBuildOptions) {
			o.Target, o.Labels = target, map[string]string{label: run}
		},
	}})
	require.NoError(t, err, "%s", log.String())
	return tag
}

// imageOf builds an image of some lines and the files that they copy.
func (w *world) imageOf(t *testing.T, name, dockerfile string, files map[string]string) (tag string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600))
	for to, from := range files {
		place(t, from, filepath.Join(dir, to))
	}
	return w.build(t, name, dir, "", nil)
}

// programImage is an image of one program and nothing else.
func (w *world) programImage(t *testing.T, name string) (tag string) {
	t.Helper()
	return w.imageOf(t, name, "FROM scratch\nUSER 65532:65532\nCOPY program /program\nENTRYPOINT [\"/program\", \"--listen\", \"0.0.0.0:8070\"]\n",
		map[string]string{"program": filepath.Join(buildPrograms(t), name)})
}

// goImage takes the place of Go's image.
func (w *world) goImage(t *testing.T) (tag string) {
	t.Helper()
	dir := buildPrograms(t)
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		files[path.Join("programs", e.Name())] = filepath.Join(dir, e.Name())
	}
	return w.imageOf(t, "go", "FROM scratch\nCOPY programs /programs\nCOPY programs/standin /usr/local/bin/go\n", files)
}

// temporalImage is the image that compose.yaml names, or one of the CLI where no
// registry answers.
func (w *world) temporalImage(t *testing.T, name string) (tag string) {
	t.Helper()
	ctx, engine := contextOf(t), w.engine.Client()
	_, err := engine.ImageInspect(ctx, name)
	if err == nil {
		return name
	}
	require.True(t, errdefs.IsNotFound(err), "%v", err)
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err = engine.DistributionInspect(asking, name, client.DistributionInspectOptions{}); err == nil {
		t.Logf("pulling %s", name)
		pull, err := engine.ImagePull(ctx, name, client.ImagePullOptions{})
		require.NoError(t, err)
		require.NoError(t, pull.Wait(ctx))
		t.Cleanup(func() {
			_, err := engine.ImageRemove(context.Background(), name, client.ImageRemoveOptions{PruneChildren: true})
			require.NoError(t, err)
		})
		return name
	}
	cli := os.Getenv("TEMPORAL_CLI")
	switch {
	case os.Getenv("TEMPORAL_IMAGE") != "":
		require.NoError(t, err, "TEMPORAL_IMAGE is %s", name)
	case cli == "":
		lack(t, "no registry has %s (%v), and TEMPORAL_CLI is not set; ./justw e2e finds or installs a Temporal CLI", name, err)
	case runtime.GOOS != "linux":
		lack(t, "no registry has %s (%v), and the Temporal CLI of this machine does not run in a container", name, err)
	}
	t.Logf("no registry has %s: %v; taking %s", name, err, cli)
	users := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(users, []byte("temporal:x:1000:1000::/home/temporal:/sbin/nologin\n"), 0o644))
	return w.imageOf(t, "temporal", "FROM scratch\nCOPY passwd /etc/passwd\nCOPY temporal /usr/local/bin/temporal\nUSER 1000:1000\nENTRYPOINT [\"temporal\"]\n",
		map[string]string{"passwd": users, "temporal": cli})
}

// place links a file, or copies it where the file system is another.
func place(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	if os.Link(from, to) == nil {
		return
	}
	in, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	require.NoError(t, err)
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, info.Mode())
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// removeImages removes the images of the run, and those that stages of the Dockerfile
// made on top of them: children before parents.
func removeImages(ctx context.Context, engine client.APIClient) error {
	var refused error
	for {
		list, err := engine.ImageList(ctx, client.ImageListOptions{All: true})
		if err != nil {
			return err
		}
		ours := map[string]bool{}
		for before := -1; before != len(ours); {
			before = len(ours)
			for _, i := range list.Items {
				if i.Labels[label] == run || ours[i.ParentID] {
					ours[i.ID] = true
				}
			}
		}
		leaves := slices.DeleteFunc(list.Items, func(i image.Summary) bool {
			return !ours[i.ID] || slices.ContainsFunc(list.Items, func(child image.Summary) bool { return child.ParentID == i.ID })
		})
		if len(leaves) == 0 {
			return nil
		}
		removed := false
		for _, i := range leaves {
			_, err := engine.ImageRemove(ctx, i.ID, client.ImageRemoveOptions{Force: true, PruneChildren: true})
			removed = removed || err == nil
			if err != nil && !errdefs.IsNotFound(err) {
				refused = errors.Join(refused, fmt.Errorf("%s: %w", cmp.Or(strings.Join(i.RepoTags, " "), i.ID), err))
			}
		}
		if !removed {
			return refused
		}
	}
}
