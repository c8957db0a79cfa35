package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Version is the contract version that this package speaks. A manifest states
// the version of its service in [MetaContract].
const Version = 1

// Names of operations and tools that a service's own tools may not take.
// They are wire protocol.
const (
	// OperationListTools is the sync operation that returns the manifest.
	OperationListTools = "list_tools"
	// ToolGetOperationResult is the connector's tool that reads a result by ID.
	ToolGetOperationResult = "get_operation_result"
	// ToolCancelOperation is the connector's tool that cancels a call by ID.
	ToolCancelOperation = "cancel_operation"
	// ToolListOperations is the connector's tool that lists a caller's calls.
	ToolListOperations = "list_operations"
)

// methodPrefix starts the operation names that stand for MCP methods. A tool
// name has no colon, so the two can never collide.
const methodPrefix = "mcp:"

// Operations of the contract beside the MCP methods.
const (
	// OperationDescribeCall tells the progress and the open input requests of a call.
	OperationDescribeCall = methodPrefix + "calls.describe"
	// OperationRespondCall answers input requests of a call.
	OperationRespondCall = methodPrefix + "calls.respond"
)

// Nexus header keys that a caller sets. No other header travels: headers are
// visible in Temporal history.
const (
	// HeaderTraceparent is the W3C trace context parent.
	HeaderTraceparent = "traceparent"
	// HeaderTracestate is the W3C trace context state.
	HeaderTracestate = "tracestate"
	// HeaderBaggage is the W3C baggage.
	HeaderBaggage = "baggage"
	// HeaderIdempotencyKey is the caller's key of a call.
	HeaderIdempotencyKey = "mcp-idempotency-key"
	// HeaderCaller is a 16 hex digit hash of who calls. It separates sessions
	// and authorises nothing.
	HeaderCaller = "mcp-caller"
)

// MaxHeaderBytes bounds the keys and values of a call's headers together, as
// the Temporal server does.
const MaxHeaderBytes = 8 << 10

// MaxToolNameLength is the longest tool name, in bytes.
const MaxToolNameLength = 64

// MinScheduleToClose is the shortest schedule-to-close timeout that the
// Temporal server can keep: below it, operations time out before they reach
// their handler.
const MinScheduleToClose = 3 * time.Second

var reserved = []string{OperationListTools, ToolGetOperationResult, ToolCancelOperation, ToolListOperations}

// MethodOperation returns the operation name that stands for an MCP method:
// "resources/read" is "mcp:resources.read". The Temporal server refuses a
// slash in an operation name.
func MethodOperation(method string) string {
	return methodPrefix + strings.ReplaceAll(method, "/", ".")
}

// IsReserved reports whether a service's tool may not take the name.
func IsReserved(name string) bool { return slices.Contains(reserved, name) }

// CheckToolName returns an error that says what is wrong with a tool name:
// it must match ^[a-zA-Z0-9_-]{1,64}$ and not be reserved.
func CheckToolName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name is empty")
	case len(name) > MaxToolNameLength:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), MaxToolNameLength)
	case IsReserved(name):
		return fmt.Errorf("the name %q is reserved", name)
	}
	for _, r := range name {
		if !isNameRune(r) {
			return fmt.Errorf("the name %q has %q; only letters, digits, _ and - of ASCII are allowed", name, r)
		}
	}
	return nil
}

// CheckPrefix returns an error that says what is wrong with a name prefix.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	if len(prefix) >= MaxToolNameLength {
		return fmt.Errorf("the prefix has %d bytes, which leaves no room for a name within %d", len(prefix), MaxToolNameLength)
	}
	for _, r := range prefix {
		if !isNameRune(r) {
			return fmt.Errorf("the prefix %q has %q; only letters, digits, _ and - of ASCII are allowed", prefix, r)
		}
	}
	return nil
}

var endpointName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*[a-zA-Z0-9]$`)

// maxEndpointNameLength is the Temporal server's default limit.
const maxEndpointNameLength = 200

// CheckEndpointName returns an error that says what a Nexus endpoint may be named,
// for a name that the Temporal server refuses.
func CheckEndpointName(name string) error {
	if len(name) <= maxEndpointNameLength && endpointName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("an endpoint's name has 2 to %d letters, digits and -, a letter first and no - last", maxEndpointNameLength)
}

// Prefixed returns the name by which callers know a tool of a service that is
// configured with the prefix: the two are joined by "_" unless the prefix is empty
// or ends with "_" or "-".
func Prefixed(prefix, tool string) string {
	if prefix == "" || prefix[len(prefix)-1] == '_' || prefix[len(prefix)-1] == '-' {
		return prefix + tool
	}
	return prefix + "_" + tool
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
