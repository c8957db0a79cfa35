package repo_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// empty names say nothing of what a package is for.
var emptyNames = []string{"util", "utils", "common", "types", "helpers", "models", "misc", "shared"}

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) {
	t.Parallel()

	var violations []string
	for _, p := range packages(t) {
		if p.Name == "" || p.Name == "main" {
			continue
		}
		if p.Name != path.Base(p.ImportPath) {
			violations = append(violations, fmt.Sprintf("%s: package %s is in a directory of another name", p.ImportPath, p.Name))
		}
		if slices.Contains(emptyNames, p.Name) {
			violations = append(violations, fmt.Sprintf("%s: %s is a name for anything", p.ImportPath, p.Name))
		}
	}
	none(t, violations)
}

func TestPublicPackagesAreDocumented(t *testing.T) {
	t.Parallel()

	var violations []string
	public := 0
	for _, p := range packages(t) {
		if !p.isPublic() || len(p.GoFiles) == 0 {
			continue
		}
		public++
		fset := token.NewFileSet()
		if file := path.Join(p.Dir, "doc.go"); !slices.Contains(p.GoFiles, file) {
			violations = append(violations, p.ImportPath+" has no doc.go")
		} else if comment := parse(t, fset, file).Doc.Text(); !strings.HasPrefix(comment, "Package "+p.Name+" ") {
			violations = append(violations, file+" has no package comment")
		}
		var tests []*ast.File
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			tests = append(tests, parse(t, fset, file))
		}
		if len(doc.Examples(tests...)) == 0 {
			violations = append(violations, p.ImportPath+" has no Example")
		}
	}
	if public == 0 {
		violations = append(violations, "there is no public package: the test proves nothing")
	}
	none(t, violations)
}

// TestMainsAreThin keeps programs testable: main.go starts what lives elsewhere.
func TestMainsAreThin(t *testing.T) {
	t.Parallel()

	const limit = 40
	var violations []string
	for _, p := range packages(t) {
		if p.Name != "main" || len(p.GoFiles) == 0 {
			continue
		}
		file := path.Join(p.Dir, "main.go")
		if !slices.Contains(p.GoFiles, file) {
			violations = append(violations, p.ImportPath+" has no main.go")
		} else if n := strings.Count(read(t, file), "\n"); n >= limit {
			violations = append(violations, fmt.Sprintf("%s has %d lines, and may have fewer than %d", file, n, limit))
		}
	}
	none(t, violations)
}
