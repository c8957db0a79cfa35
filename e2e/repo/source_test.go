package repo_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func isGo(file string) bool   { return path.Ext(file) == ".go" }
func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }

func TestFilesStaySmall(t *testing.T) {
	t.Parallel()

	const limit = 600
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	var violations []string
	for _, file := range files(t, func(file string) bool { return isGo(file) && !isTest(file) }) {
		source := read(t, file)
		if n := strings.Count(source, "\n"); n > limit && !generated.MatchString(source) {
			violations = append(violations, fmt.Sprintf("%s has %d lines, and may have %d", file, n, limit))
		}
	}
	none(t, violations)
}

// TestTestsDoNotSleep: a test that sleeps is slow when the time is too long and
// flaky when it is too short. Inside a synctest bubble time is not real, and
// sleeping there is fine.
func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()

	var violations []string
	fset := token.NewFileSet()
	for _, file := range files(t, func(file string) bool {
		return isTest(file) || isGo(file) && strings.HasPrefix(file, "e2e/")
	}) {
		ast.Inspect(parse(t, fset, file), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !isSelector(n.Fun, "synctest", "Test")
			case *ast.SelectorExpr:
				if isSelector(n, "time", "Sleep") {
					violations = append(violations, fset.Position(n.Pos()).String()+" sleeps")
				}
			}
			return true
		})
	}
	none(t, violations)
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// TestWireNamesLiveInTheContract: whoever spells a wire name out has a copy that
// the contract's golden files do not guard. The black-box tests do so on purpose.
func TestWireNamesLiveInTheContract(t *testing.T) {
	t.Parallel()

	names := regexp.MustCompile(`io\.temporal/|\blist_tools\b|\bmcp-(idempotency-key|caller)\b`)
	var violations []string
	fset := token.NewFileSet()
	for _, file := range files(t, func(file string) bool {
		return isGo(file) && !isTest(file) && !strings.HasPrefix(file, "tool-sdk/contract/") && !strings.HasPrefix(file, "e2e/")
	}) {
		ast.Inspect(parse(t, fset, file), func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && names.MatchString(text) {
				violations = append(violations, fmt.Sprintf("%s spells out a wire name: %s", fset.Position(lit.Pos()), lit.Value))
			}
			return true
		})
	}
	none(t, violations)
}
