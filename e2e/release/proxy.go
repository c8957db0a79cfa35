package release

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Add puts the module in the directory dir of the Git repository repo, as HEAD
// has it, into the directory proxy at the given version. With file://proxy in
// GOPROXY the go command finds it there.
//
// The files are those of https://go.dev/ref/mod#goproxy-protocol. The zip has the
// bytes that the go command makes of a tag on HEAD, so that the sums are those
// of the release.
func Add(proxy, repo, dir, version string) error {
	goMod, err := git(repo, "show", "HEAD:"+dir+"/go.mod")
	if err != nil {
		return err
	}
	made, err := git(repo, "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(string(made), &seconds); err != nil {
		return fmt.Errorf("release: the time of HEAD: %w", err)
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Unix(seconds, 0).UTC()})
	if err != nil {
		return err
	}

	mod := module.Version{Path: modfile.ModulePath(goMod), Version: version}
	if err := module.Check(mod.Path, mod.Version); err != nil {
		return err
	}
	path, err := module.EscapePath(mod.Path)
	if err != nil {
		return err
	}
	base := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": goMod} {
		if err := os.WriteFile(filepath.Join(base, name), data, 0o644); err != nil {
			return err
		}
	}
	return writeZip(filepath.Join(base, version+".zip"), mod, repo, dir)
}

func writeZip(name string, mod module.Version, repo, dir string) (err error) {
	repo, err = filepath.Abs(repo)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return zip.CreateFromVCS(f, mod, repo, "HEAD", dir)
}

// git runs git in a repository and returns what it prints.
func git(repo string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = repo
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("release: git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out, nil
}
