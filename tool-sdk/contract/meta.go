package contract

// Keys in `_meta` objects. They are wire protocol.
const (
	// MetaContract, in a manifest: the contract version, an integer.
	MetaContract = "io.temporal/contract"
	// MetaCapabilities, in a manifest: the MCP server capabilities that the
	// service has beyond tools.
	MetaCapabilities = "io.temporal/capabilities"
	// MetaServerInfo, in a manifest: the MCP Implementation of the service.
	MetaServerInfo = "io.temporal/serverInfo"
	// MetaInstructions, in a manifest: instructions for the model.
	MetaInstructions = "io.temporal/instructions"
	// MetaWarnings, in a served tool list: an array of strings that say which
	// services and tools are missing, and why.
	MetaWarnings = "io.temporal/warnings"

	// MetaScheduleToClose, in a tool: the schedule-to-close timeout that
	// callers set on the operation, in milliseconds.
	MetaScheduleToClose = "io.temporal/scheduleToCloseTimeoutMs"
	// MetaEncoding, in a tool: the [Encoding] of its calls.
	MetaEncoding = "io.temporal/encoding"
	// MetaKind, in a tool: the [Kind] of what runs behind it.
	MetaKind = "io.temporal/kind"
	// MetaUpstreamName, in a tool of a proxy: its name on the upstream, where
	// that differs.
	MetaUpstreamName = "io.temporal/upstreamName"

	// MetaIdempotencyKey, in a call: the caller's name for this one call.
	MetaIdempotencyKey = "io.temporal/idempotencyKey"
	// MetaOperationID, in a result: the ID of the operation behind the call.
	MetaOperationID = "io.temporal/operationId"
	// MetaOutcome, in a result: [OutcomeUnknown] where a call may have taken
	// effect without an answer.
	MetaOutcome = "io.temporal/outcome"
	// MetaFailure, in an error result that this project made:
	// {"type": string, "retryable": bool}.
	MetaFailure = "io.temporal/failure"
)

// OutcomeUnknown is the value of [MetaOutcome].
const OutcomeUnknown = "unknown"

// Encoding says how a tool's arguments and result travel.
type Encoding string

const (
	// EncodingValue: the input is the arguments object, the output any JSON
	// value. It is what a typed Nexus operation speaks, and the default.
	EncodingValue Encoding = "value"
	// EncodingMCP: the input is [CallParams], the output a CallToolResult or
	// an input-required result, whole.
	EncodingMCP Encoding = "mcp"
)

// Kind says what runs behind a tool. It is a hint for callers and people.
type Kind string

// The kinds of tools.
const (
	KindSync     Kind = "sync"
	KindWorkflow Kind = "workflow"
	KindActivity Kind = "activity"
	KindUpdate   Kind = "update"
)
