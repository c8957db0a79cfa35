package repo_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func isMarkdown(file string) bool { return path.Ext(file) == ".md" }

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(<?([^)\s>]+)|(?m)^\[[^\]]+\]: *(\S+)`)
	title  = regexp.MustCompile(`(?m)^#+ +(.*?) *#*$`)
	noSlug = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	recipe = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*)[^:=\n]*:(?:[^=]|$)`)
	wanted = regexp.MustCompile(`\./justw ([a-z][a-z0-9-]*)`)
)

// TestLinksLeadSomewhere follows every relative link of every document, to the
// heading where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()

	var violations []string
	for _, file := range files(t, isMarkdown) {
		text := inline.ReplaceAllString(fence.ReplaceAllString(read(t, file), ""), "``")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(match[1] + match[2])
			if err != nil || target.IsAbs() {
				continue
			}
			to := file
			if target.Path != "" {
				to = path.Join(path.Dir(file), target.Path)
			}
			if info, err := os.Stat(filepath.Join(root(), to)); err != nil {
				violations = append(violations, fmt.Sprintf("%s: there is no %s", file, to))
			} else if target.Fragment != "" && !info.IsDir() && isMarkdown(to) && !headings(read(t, to))[target.Fragment] {
				violations = append(violations, fmt.Sprintf("%s: %s has no heading #%s", file, to, target.Fragment))
			}
		}
	}
	none(t, violations)
}

// headings are the anchors of a document's headings, as they are shown on the web:
// of two equal ones the second ends in -1.
func headings(markdown string) map[string]bool {
	anchors := map[string]bool{}
	seen := map[string]int{}
	for _, match := range title.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		anchor := strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		anchors[anchor] = true
	}
	return anchors
}

// TestDocumentsNameRealRecipes: a command that a document tells people to type exists.
func TestDocumentsNameRealRecipes(t *testing.T) {
	t.Parallel()

	recipes := map[string]bool{}
	for _, match := range recipe.FindAllStringSubmatch(read(t, "justfile"), -1) {
		recipes[match[1]] = true
	}
	var violations []string
	for _, file := range files(t, func(file string) bool {
		return isMarkdown(file) || file == ".ci/run" || path.Ext(file) == ".yml" || path.Ext(file) == ".sh"
	}) {
		for _, match := range wanted.FindAllStringSubmatch(read(t, file), -1) {
			if !recipes[match[1]] {
				violations = append(violations, fmt.Sprintf("%s: the justfile has no recipe %s", file, match[1]))
			}
		}
	}
	none(t, violations)
}

// TestScriptsParse asks each script's own shell, and wants what has a #! line to be executable.
func TestScriptsParse(t *testing.T) {
	t.Parallel()

	var violations []string
	for _, file := range files(t, func(file string) bool {
		return path.Ext(file) == ".sh" || strings.HasPrefix(read(t, file), "#!")
	}) {
		first, _, _ := strings.Cut(read(t, file), "\n")
		shell := "sh"
		if strings.HasSuffix(first, "bash") {
			shell = "bash"
		}
		full := filepath.Join(root(), file)
		if out, err := exec.Command(shell, "-n", full).CombinedOutput(); err != nil {
			violations = append(violations, fmt.Sprintf("%s: %v: %s", file, err, out))
		}
		info, err := os.Stat(full)
		if err != nil || (info.Mode()&0o100 != 0) != strings.HasPrefix(first, "#!") {
			violations = append(violations, file+": a script that is run has a #! line and is executable; one that is sourced is neither")
		}
	}
	none(t, violations)
}
