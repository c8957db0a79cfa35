package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
)

// TestRegisterHasNothingToWarnOf: an example has no declaration that a reader
// should not copy.
func TestRegisterHasNothingToWarnOf(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite
	tools := newService(time.Minute)
	require.NoError(t, tools.Register(suite.NewTestWorkflowEnvironment()))
	require.Empty(t, tools.Warnings())
}

func TestToolsOfEachKind(t *testing.T) {
	t.Parallel()
	c := serve(t, time.Minute)

	var ada, again luckyNumberOutput
	c.ok(t, "lucky_number", map[string]any{"name": "Ada"}, &ada)
	c.ok(t, "lucky_number", map[string]any{"name": "Ada"}, &again)
	require.Equal(t, luckyNumberOutput{Name: "Ada", Number: 21}, ada)
	require.Equal(t, ada, again)
	require.Contains(t, c.refused(t, "lucky_number", map[string]any{"name": ""}), "arguments.name: minLength")

	var ticket drawTicketOutput
	c.ok(t, "draw_ticket", map[string]any{"name": "Ada"}, &ticket)
	require.Equal(t, "Ada", ticket.Name)
	require.Less(t, ticket.Ticket, int64(1_000_000))

	var report brewReportOutput
	began := time.Now()
	c.ok(t, "brew_report", map[string]any{"topic": "tea", "seconds": 1}, &report)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, "tea", report.Topic)
	require.Contains(t, report.WorkflowID, "brew-report-")
	require.Contains(t, c.refused(t, "brew_report", map[string]any{"topic": "tea", "seconds": 3601}), "arguments.seconds: maximum")
}

// TestBrewReportTakesItsTime is about hours, which the test environment skips.
func TestBrewReportTakesItsTime(t *testing.T) {
	t.Parallel()

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet())
	env := suite.NewTestWorkflowEnvironment()
	began := env.Now()
	env.ExecuteWorkflow(BrewReport, brewReportInput{Topic: "tea", Seconds: 3600})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, time.Hour, env.Now().Sub(began))
	var report brewReportOutput
	require.NoError(t, env.GetWorkflowResult(&report))
	require.Equal(t, "After 3600 seconds the leaves say of tea: all will be well.", report.Report)
}
