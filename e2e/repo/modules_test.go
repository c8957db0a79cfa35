package repo_test

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rule says what a module may import of its siblings.
type rule struct {
	code  []string // by code and tests
	tests []string // by tests only
	any   bool     // every package
	open  bool     // every public package
}

// wire is for the modules that speak the contract: the star's points.
var wire = rule{
	code:  []string{"tool-sdk/contract", "tool-sdk/resultmap"},
	tests: []string{"tool-sdk/contract/contracttest"},
}

// mayImport is the whole module graph: a star with tool-sdk in the middle, and
// two modules that nobody publishes or imports.
var mayImport = map[string]rule{
	"tool-sdk":        {},
	"workflow-client": wire,
	"proxy-worker":    wire,
	"connector":       wire,
	"examples":        {open: true},
	"e2e":             {any: true},
}

func TestModuleGraph(t *testing.T) {
	t.Parallel()

	public := map[string]bool{}
	for _, p := range packages(t) {
		public[p.ImportPath] = p.isPublic()
	}
	var violations []string
	for _, p := range packages(t) {
		rule, known := mayImport[p.module()]
		if !known {
			violations = append(violations, fmt.Sprintf("%s: module %s is not in the table", p.ImportPath, p.module()))
			continue
		}
		check := func(imports []string, allowed ...string) {
			for _, imp := range imports {
				imported, ours := strings.CutPrefix(imp, prefix)
				own := strings.HasPrefix(imported, p.module()+"/")
				if ours && !own && !rule.any && (!rule.open || !public[imp]) && !slices.Contains(allowed, imported) {
					violations = append(violations, fmt.Sprintf("%s imports %s", p.ImportPath, imp))
				}
			}
		}
		check(p.Imports, rule.code...)
		check(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(rule.code, rule.tests)...)
	}
	none(t, violations)
}

func TestContractImportsOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()

	i := slices.IndexFunc(packages(t), func(p goPackage) bool { return p.ImportPath == prefix+"tool-sdk/contract" })
	require.GreaterOrEqual(t, i, 0, "there is no contract")
	for _, imp := range packages(t)[i].Imports {
		first, _, _ := strings.Cut(imp, "/")
		require.NotContains(t, first, ".", imp)
	}
}

// TestModuleFiles keeps every module installable by `go install PATH@VERSION`,
// which refuses replacements, and on the Go version of the workspace.
func TestModuleFiles(t *testing.T) {
	t.Parallel()

	type file struct {
		Go, Toolchain string
		Use           []struct{ DiskPath string }
		Module        struct{ Path string }
		Replace       []any
		Exclude       []any
	}
	edit := func(verb, name string) (f file) {
		out, err := output("go", verb, "edit", "-json", name)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &f))
		return f
	}

	work := edit("work", "go.work")
	require.Empty(t, work.Toolchain)
	var used []string
	for _, use := range work.Use {
		used = append(used, path.Join(use.DiskPath, "go.mod"))
	}
	modules := files(t, func(file string) bool { return path.Base(file) == "go.mod" })
	require.ElementsMatch(t, modules, used, "go.work does not name every module")

	for _, name := range modules {
		mod := edit("mod", name)
		require.Equal(t, prefix+path.Dir(name), mod.Module.Path)
		require.Equal(t, work.Go, mod.Go, "%s: the go line is not that of go.work", name)
		require.Empty(t, mod.Toolchain, "%s: toolchain", name)
		require.Empty(t, mod.Replace, "%s: replace", name)
		require.Empty(t, mod.Exclude, "%s: exclude", name)
	}

	// CI tests with the newest patch release of that very Go, and images are made with it.
	minor := regexp.MustCompile(`^\d+\.\d+`).FindString(work.Go)
	require.Regexp(t, `(?m)^ARG GO=golang:`+regexp.QuoteMeta(minor)+`$`, read(t, "Dockerfile"))
	for _, workflow := range files(t, func(file string) bool { return strings.HasPrefix(file, ".github/workflows/") }) {
		setups := regexp.MustCompile(`go-version: (\S+)`).FindAllStringSubmatch(read(t, workflow), -1)
		require.NotEmpty(t, setups, workflow)
		for _, setup := range setups {
			require.Equal(t, minor+".x", setup[1], workflow)
		}
	}
}

// TestModuleReadmes wants the first sentence of each to tell a reader whether the
// module is for them: who imports it, or who runs it.
func TestModuleReadmes(t *testing.T) {
	t.Parallel()

	says := regexp.MustCompile(`(?i)\b(import|run)(s|ed)?\b`)
	var violations []string
	for _, mod := range files(t, func(file string) bool { return path.Base(file) == "go.mod" }) {
		readme := path.Join(path.Dir(mod), "README.md")
		if exists := slices.Contains(files(t, func(string) bool { return true }), readme); !exists {
			violations = append(violations, readme+" is missing")
		} else if sentence := firstSentence(read(t, readme)); !says.MatchString(sentence) {
			violations = append(violations, fmt.Sprintf("%s: %q does not say who imports or runs it", readme, sentence))
		}
	}
	none(t, violations)
}

// firstSentence is that of the first paragraph that is no heading.
func firstSentence(markdown string) string {
	for paragraph := range strings.SplitSeq(markdown, "\n\n") {
		if paragraph = strings.TrimSpace(paragraph); paragraph != "" && !strings.HasPrefix(paragraph, "#") {
			sentence, _, _ := strings.Cut(strings.ReplaceAll(paragraph, "\n", " "), ". ")
			return sentence
		}
	}
	return ""
}
