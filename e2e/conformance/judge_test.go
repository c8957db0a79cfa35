package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJudge: what is wrong with a run never goes unnoticed.
func TestJudge(t *testing.T) {
	t.Parallel()

	good, skipped := check{ID: "good", Status: "SUCCESS"}, check{ID: "good", Status: "SKIPPED"}
	bad := check{ID: "bad", Description: "does", Status: "FAILURE", ErrorMessage: "does not"}
	warning := check{ID: "warned", Description: "should", Status: "WARNING"}
	whole, part := entry{scenario: "s"}, entry{scenario: "s", check: "bad"}
	for name, c := range map[string]struct {
		checks   []check
		baseline []entry
		faults   []string
	}{
		"passes":                   {[]check{good, skipped}, nil, nil},
		"did not run":              {nil, nil, []string{"the scenario did not run to its end"}},
		"did not run, as expected": {nil, []entry{whole}, nil},
		"fails":                    {[]check{good, bad, warning}, nil, []string{"bad: does: does not", "warned: should: WARNING"}},
		"fails, as expected":       {[]check{good, bad, warning}, []entry{whole}, nil},
		"one check, as expected":   {[]check{good, bad}, []entry{part}, nil},
		"another than expected":    {[]check{warning}, []entry{part}, []string{"warned: should: WARNING"}},
		"passes unexpectedly":      {[]check{good}, []entry{whole}, []string{"s passes: take it out of the baseline"}},
		"a check passes unexpectedly": {
			[]check{{ID: "bad", Status: "SUCCESS"}}, []entry{part}, []string{"s:bad passes: take it out of the baseline"},
		},
		"another scenario's": {[]check{bad}, []entry{{scenario: "other"}}, []string{"bad: does: does not"}},
	} {
		require.Equal(t, c.faults, judge("s", c.checks, c.baseline), name)
	}

	list, err := parseBaseline([]byte("server:\n  # It cannot\n  # do that.\n  - a\n  - b:c\n  # Nor that.\n  - d\nclient:\n  - e\n"), server)
	require.NoError(t, err)
	require.Equal(t, []entry{{"a", "", "It cannot do that."}, {"b", "c", "It cannot do that."}, {"d", "", "Nor that."}}, list)
}
