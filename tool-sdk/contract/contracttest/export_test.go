package contracttest

import (
	"context"
	"encoding/json"
)

// The suites report to a *testing.T, which cannot be told apart from the test's
// own: the tests read the faults.

// ServiceFaults are what [Service] reports.
func ServiceFaults(ctx context.Context, call func(ctx context.Context, operation string, input json.RawMessage) (json.RawMessage, error)) []string {
	var faults []string
	for _, c := range serviceChecks {
		faults = append(faults, c.check(ctx, call)...)
	}
	return faults
}

// CallerFaults are what [Caller] reports for the cases of one tool.
func CallerFaults(ctx context.Context, tool string, call func(ctx context.Context, tool string, arguments json.RawMessage) Outcome) []string {
	var faults []string
	for _, c := range cases() {
		if c.name == tool {
			faults = append(faults, c.run(ctx, call)...)
		}
	}
	return faults
}
