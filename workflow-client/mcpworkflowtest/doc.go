// Package mcpworkflowtest has tool services in memory, for unit tests of Workflows
// that use package mcpworkflow in the Temporal SDK's test environment: no server,
// no Worker, and time that skips.
//
//	inventory := mcpworkflowtest.NewService("inventory", mcpworkflowtest.Tool{Name: "count", Run: count})
//	inventory.Script("count", mcpworkflowtest.Fail(failure), mcpworkflowtest.Hang())
//	log := mcpworkflowtest.Register(env, worker.Options{}, inventory)
//	env.ExecuteWorkflow(MyWorkflow)
//	// … env.GetWorkflowResult, log.Names(), log.Calls() …
//
// A fake answers as a real service does: Workflow code sees the same results, and
// the same errors, as with a server. Calls are logged, and meet their script, in
// the order in which the Workflow made them.
package mcpworkflowtest
