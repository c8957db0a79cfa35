package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// prefix begins the import path of every module here.
const prefix = "github.com/durable-mcp/durable-mcp/"

// goPackage is what `go list` says of one package, its directory and files as
// paths from the root of the checkout.
type goPackage struct {
	ImportPath, Name, Dir              string
	Module                             struct{ Path string }
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Error                              *struct{ Err string }
}

// module is the directory of the module that the package belongs to.
func (p goPackage) module() string { return strings.TrimPrefix(p.Module.Path, prefix) }

// isPublic reports whether users may import the package.
func (p goPackage) isPublic() bool {
	return p.Name != "main" && !isInternal(p.ImportPath) && p.module() != "e2e" && p.module() != "examples"
}

func isInternal(importPath string) bool {
	return strings.Contains(importPath+"/", "/internal/")
}

var root = sync.OnceValue(func() string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return dir
})

// output runs a command at the root of the checkout.
func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = root()
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.Join(cmd.Args, " ") + ": " + string(exit.Stderr))
	}
	return out, err
}

var listPackages = sync.OnceValues(func() ([]goPackage, error) {
	out, err := output("go", "list", "-e", "-json", "work")
	if err != nil {
		return nil, err
	}
	var packages []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		if p.Dir, err = filepath.Rel(root(), p.Dir); err != nil {
			return nil, err
		}
		p.Dir = filepath.ToSlash(p.Dir)
		for _, files := range [][]string{p.GoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for i := range files {
				files[i] = path.Join(p.Dir, files[i])
			}
		}
		packages = append(packages, p)
	}
})

// packages are all packages of the workspace, those that do not compile included.
func packages(t *testing.T) []goPackage {
	t.Helper()
	list, err := listPackages()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

var listFiles = sync.OnceValues(func() ([]string, error) {
	out, err := output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	var files []string
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root(), file)); err == nil { // a deletion may not be committed yet
			files = append(files, file)
		}
	}
	return files, nil
})

// files are the paths of all files of the checkout that git tracks or would, and
// for which keep is true.
func files(t *testing.T, keep func(file string) bool) []string {
	t.Helper()
	list, err := listFiles()
	require.NoError(t, err)
	var kept []string
	for _, file := range list {
		if keep(file) {
			kept = append(kept, file)
		}
	}
	require.NotEmpty(t, kept, "no such file in the checkout: the test would prove nothing")
	return kept
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(), file))
	require.NoError(t, err)
	return string(data)
}

// parse parses a Go file of the checkout; positions in fset have its path from the root.
func parse(t *testing.T, fset *token.FileSet, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(fset, file, read(t, file), parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return parsed
}

// none fails the test with one line per violation.
func none(t *testing.T, violations []string) {
	t.Helper()
	require.Empty(t, strings.Join(violations, "\n"))
}
