package release_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// says is what a command answers to --version.
func says(t *testing.T, binary string) string {
	t.Helper()
	return must(t, "", nil, binary, "--version")
}

// TestGoInstall is the line of the README, typed by somebody who has nothing.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	r := released(t)
	bin, home := t.TempDir(), t.TempDir()
	for name, path := range commands {
		must(t, home, append(r.env, "GOBIN="+bin), "go", "install", path+"@"+r.version)
		require.Equal(t, name+" version "+r.version+"\n", says(t, filepath.Join(bin, name)))
	}
	requireEmpty(t, home)
}

// TestVersionOfAClone: a build from a clone has no version, but a commit, if the
// go command was let look for it.
func TestVersionOfAClone(t *testing.T) {
	t.Parallel()
	r := released(t)
	dir, bin := r.clone(t), t.TempDir()
	commit := must(t, dir, nil, "git", "rev-parse", "HEAD")[:7]

	build := func(flags string) (words []string) {
		for name, path := range commands {
			module, _, _ := strings.Cut(strings.TrimPrefix(path, repository+"/"), "/")
			must(t, filepath.Join(dir, module), append(r.env, "GOFLAGS=-modcacherw -trimpath "+flags), "go", "build", "-o", bin, path)
			word, ok := strings.CutPrefix(strings.TrimSpace(says(t, filepath.Join(bin, name))), name+" version ")
			require.True(t, ok)
			words = append(words, word)
		}
		require.Equal(t, words[0], words[1])
		return words
	}
	require.Equal(t, "(devel) "+commit, build("-buildvcs=true")[0])
	require.Equal(t, "(devel)", build("-buildvcs=false")[0])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o600))
	require.Equal(t, "(devel) "+commit+" dirty", build("-buildvcs=true")[0])

	// The Dockerfile's flags, as Docker reads them.
	flags := regexp.MustCompile(`(?s)GOFLAGS="(.*?)"`).FindStringSubmatch(read(t, dir, "Dockerfile"))
	require.NotNil(t, flags)
	require.Equal(t, "v1.2.3", build("-buildvcs=false " + strings.NewReplacer("\\\n", "", "$VERSION", "v1.2.3").Replace(flags[1]))[0])
}

// TestArchives: the files of a release have the commands that go install makes,
// and the words of the change log.
func TestArchives(t *testing.T) {
	t.Parallel()
	r := released(t)
	dir, out := r.clone(t), t.TempDir()
	must(t, dir, r.env, "scripts/archives.sh", r.version, out, runtime.GOOS+"/"+runtime.GOARCH)

	name := "durable-mcp-" + r.version + "-" + runtime.GOOS + "-" + runtime.GOARCH
	archive := read(t, out, name+".tar.gz")
	sum := sha256.Sum256([]byte(archive))
	require.Equal(t, hex.EncodeToString(sum[:])+"  "+name+".tar.gz\n", read(t, out, "checksums.txt"))
	notes := read(t, out, "notes.md")
	require.Contains(t, notes, "- "+entry+"\n")
	require.NotContains(t, notes, "\n## ")

	bin := t.TempDir()
	unpacked := unpack(t, archive, bin)
	require.ElementsMatch(t, []string{name + "/LICENSE", name + "/durable-mcp-connector", name + "/durable-mcp-proxy"}, unpacked)
	for command := range commands {
		require.Equal(t, command+" version "+r.version+"\n", says(t, filepath.Join(bin, command)))
	}

	_, err := run(dir, r.env, "scripts/archives.sh", "v0.0.1", t.TempDir())
	require.ErrorContains(t, err, "CHANGELOG.md says nothing of v0.0.1")
	_, err = run(dir, r.env, "scripts/archives.sh", r.version)
	require.ErrorContains(t, err, "exit status 2")
}

// unpack puts the files of an archive into one directory, and returns their
// names in the archive.
func unpack(t *testing.T, archive, dir string) (names []string) {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(archive))
	require.NoError(t, err)
	for files := tar.NewReader(plain); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		if file.Typeflag == tar.TypeDir {
			continue
		}
		names = append(names, file.Name)
		data, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file.Name)), data, file.FileInfo().Mode().Perm()))
	}
}
