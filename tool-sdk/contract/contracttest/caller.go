package contracttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Caller runs every case of the call and failure tables through a caller, each
// as a subtest, one after the other. Call calls one tool of the scripted service
// of [NewService] with exactly these bytes as arguments (nil: none at all) and
// returns what its caller sees, as bytes: a client that decodes and encodes on
// the way hides what the caller does.
//
// Results are compared number literal by number literal, with their key order,
// duplicates and unknown members; white space and the spelling of string escapes
// do not count, and neither does what a revision of the protocol adds: the order
// of the result's own members, a resultType, keys of the protocol and the
// operation ID in the result's `_meta`.
//
// One case waits 3 s for a timeout, which the caller takes from the tool's
// `_meta`.
func Caller(t *testing.T, call func(ctx context.Context, tool string, arguments json.RawMessage) Outcome) {
	t.Helper()

	for _, c := range cases() {
		t.Run(c.title(), func(t *testing.T) {
			for _, fault := range c.run(t.Context(), call) {
				t.Error(fault)
			}
		})
	}
}

func (c testCase) title() string {
	if c.label == "" {
		return c.name
	}
	return c.name + "/" + c.label
}

func (c testCase) run(ctx context.Context, call func(ctx context.Context, tool string, arguments json.RawMessage) Outcome) []string {
	var arguments json.RawMessage
	if c.arguments != "" {
		arguments = json.RawMessage(c.arguments)
	}
	got := call(ctx, c.name, arguments)
	if got.Err != nil {
		return []string{fmt.Sprintf("call of %q: %v", c.name, got.Err)}
	}
	return c.want.check(got)
}

func sorted(cases []testCase) []testCase {
	slices.SortFunc(cases, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return cases
}
