// Package mcpworkflow lists and calls the tools of MCP servers from Workflow
// code. Each call is one Workflow Nexus operation: Temporal records it before it
// goes out, and the Workflow gets its result however often its Worker dies.
//
//	tools := mcpworkflow.New(mcpworkflow.Options{Services: []mcpworkflow.Service{{Name: "my-tools"}}})
//	res, err := tools.Call(ctx, "lookup", map[string]any{"key": "a"})
//
// # How a call ends
//
// [Client.Call] returns a [contract.Result] for all that the caller of a tool may
// see, failures included: the tool's own error result, or one that says what went
// wrong, with isError set and the class in `_meta["io.temporal/failure"]`. These
// results are those of every other caller of the contract. Its error is one of
//
//   - a *temporal.CanceledError (temporal.IsCanceledError) where the Workflow, or
//     the scope of ctx, was cancelled; or with a *contract.Failure of the code
//     "canceled" around it, where the service cancelled the call by itself;
//   - a [*contract.Failure] of the code "McpProtocolError" for a JSON-RPC error of
//     an upstream: [contract.Failure.Protocol] has it;
//   - a [*contract.Failure] of the code "invalid" for what the Workflow's author
//     can mend: no such tool, arguments that are no object, a bad option;
//   - a [*contract.Failure] of the code "unavailable" or "timed_out" where the
//     services could not be listed.
//
// [CallAs] and [As] decode a result, and return every failure as an error:
// errors.As a [*contract.Failure], and branch on its code.
//
// # Time
//
// The timeout that a tool states in the manifest is the schedule-to-close timeout
// of its calls, and [WithTimeout] sets another. A tool that states none may take
// for ever once it has started, but no call waits longer than
// [Options.StartTimeout], 1 minute, for a Worker to take it. Each page of a list
// has [Options.DiscoveryTimeout], 30 seconds. None of these times counts the wait
// for [Options.MaxPending].
//
// # Determinism
//
// All that the package knows of a service comes from the recorded results of
// operations. A [Client] lists once, when it is first used, and keeps what it got
// for as long as it lives: a new version of a tool service changes nothing in a
// Workflow that runs, until [Client.Refresh]. A [Snapshot] travels through
// continue-as-new in the Workflow's input. The options of a client, and whether the
// Worker has the [Interceptor], are part of the Workflow's code: other ones need a
// new version of the Worker, or runs that have ended.
//
// # Limits
//
// Temporal fails the Workflow task, again and again, that makes a 31st Nexus
// operation pending. Calls beyond [Options.MaxPending] wait their turn, in the
// order in which they were made, over all clients of the Workflow run. Arguments
// over the payload limit end the call with a result that says so, never the
// Workflow task.
//
// # Headers
//
// The Go SDK sets Nexus headers by an interceptor only. With [Interceptor] in
// worker.Options.Interceptors each call says which Workflow makes it, may have an
// idempotency key and headers, and the Nexus operations that the Workflow starts
// by itself count against the limit above.
package mcpworkflow
