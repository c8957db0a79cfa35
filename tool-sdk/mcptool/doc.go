// Package mcptool turns Nexus operations into tools of the Model Context
// Protocol. An author has operations of the Temporal Go SDK, adds one
// declaration for each, and registers the service with a Worker:
//
//	tools := mcptool.NewService("my-tools")
//	mcptool.Add(tools, lookup, mcptool.Tool{
//		Description: "Look up a key.",
//		Annotations: mcptool.Annotations{ReadOnlyHint: true},
//	})
//	mcptool.Add(tools, report, mcptool.Tool{
//		Description:            "Write the report of a month.",
//		ScheduleToCloseTimeout: 30 * time.Minute,
//	})
//	err := tools.Register(w)
//
// Every kind of operation works: synchronous ones, workflow runs, activities,
// and handlers that send a signal or an update. The operations keep working for
// Nexus callers that know nothing of MCP.
//
// # Arguments
//
// The schemas come from the Go types. A `jsonschema` struct tag describes a
// field, an `mcp` tag constrains it:
//
//	type LookupInput struct {
//		Key   string `json:"key" jsonschema:"what to look up" mcp:"minLength=1"`
//		Limit int    `json:"limit,omitempty" mcp:"minimum=1,maximum=100,default=10"`
//	}
//
// The keywords are minimum, maximum, exclusiveMinimum, exclusiveMaximum,
// multipleOf, minLength, maxLength, pattern, format, title, enum (values
// between |), minItems, maxItems, uniqueItems and default. A comma or a | inside
// of a value has a backslash before it. On a list the keywords for elements go
// to the elements. A field with a default is optional. Members that a struct does
// not have are refused. [Tool.InputSchema] takes raw JSON in the place of all
// this; `format` is for the reader and not checked, and a $ref to elsewhere is
// refused at registration, never fetched.
//
// Arguments are validated before the author's code runs. What is wrong goes back
// to the model as a tool error that names each path and rule. Then the schema's
// defaults fill in what is missing: in the object and in objects inside of it.
// Numbers arrive exact: an integer field holds what was sent, an `any` field has
// a [encoding/json.Number], a [encoding/json.RawMessage] field the bytes.
//
// # Outcomes
//
// A value that the author returns is the result. [Result] says more than a value:
// content blocks, structured content, `_meta`. An error ends the call at once,
// with its message; so does a panic. (The Go SDK alone would run the handler
// again for hours while the client waits.) [ToolError] is an answer for the
// model. [Retry] asks for another attempt. [nexus.HandlerError] and
// [nexus.OperationError] mean what they say. Where starting a Workflow or an
// activity fails because Temporal does not answer, the start is repeated.
//
// A Nexus handler has about eight seconds. A sync tool that does not answer
// within them ends with a failure that says so; longer work belongs in a
// Workflow or in an activity. A call that was delivered late, so that less time is
// left, is delivered again.
//
// A tool that returns a [Result] can ask its caller for input before it goes on:
// see [InputRequired].
//
// # Running once
//
// Temporal delivers a sync operation again when its Worker dies, so its code can
// run twice: [Service.Register] warns about a sync tool that is neither read-only
// nor idempotent. [NewActivityOperation] is the form that runs at most once. For
// workflow runs, [WorkflowID] makes a start that is delivered again attach to the
// first.
//
// # Around the code
//
// A tool's operation is registered behind one that takes and returns raw JSON, so
// interceptors of the Worker see [converter.RawValue] in the places of typed
// input and output. [Service.Register] takes the TestWorkflowEnvironment of the Go
// SDK too: a tool's unit test needs no server.
//
// Two settings of the Temporal server are not on by default: activities need
// activity.enableCallbacks=true, operations that send an update need
// history.enableUpdateCallbacks=true. Without the latter they never end.
package mcptool
