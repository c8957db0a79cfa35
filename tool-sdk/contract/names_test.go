package contract_test

import (
	"strings"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
)

// TestWireNames guards every name that travels: a change is a new contract.
func TestWireNames(t *testing.T) {
	t.Parallel()

	names := []string{
		"OperationListTools", contract.OperationListTools,
		"ToolGetOperationResult", contract.ToolGetOperationResult,
		"ToolCancelOperation", contract.ToolCancelOperation,
		"ToolListOperations", contract.ToolListOperations,
		"OperationDescribeCall", contract.OperationDescribeCall,
		"OperationRespondCall", contract.OperationRespondCall,
		"resources/read", contract.MethodOperation("resources/read"),
		"resources/templates/list", contract.MethodOperation("resources/templates/list"),
		"completion/complete", contract.MethodOperation("completion/complete"),
		"HeaderTraceparent", contract.HeaderTraceparent,
		"HeaderTracestate", contract.HeaderTracestate,
		"HeaderBaggage", contract.HeaderBaggage,
		"HeaderIdempotencyKey", contract.HeaderIdempotencyKey,
		"HeaderCaller", contract.HeaderCaller,
		"MetaContract", contract.MetaContract,
		"MetaCapabilities", contract.MetaCapabilities,
		"MetaServerInfo", contract.MetaServerInfo,
		"MetaInstructions", contract.MetaInstructions,
		"MetaWarnings", contract.MetaWarnings,
		"MetaScheduleToClose", contract.MetaScheduleToClose,
		"MetaEncoding", contract.MetaEncoding,
		"MetaKind", contract.MetaKind,
		"MetaUpstreamName", contract.MetaUpstreamName,
		"MetaIdempotencyKey", contract.MetaIdempotencyKey,
		"MetaOperationID", contract.MetaOperationID,
		"MetaOutcome", contract.MetaOutcome,
		"MetaFailure", contract.MetaFailure,
		"OutcomeUnknown", contract.OutcomeUnknown,
		"EncodingValue", string(contract.EncodingValue),
		"EncodingMCP", string(contract.EncodingMCP),
		"KindSync", string(contract.KindSync),
		"KindWorkflow", string(contract.KindWorkflow),
		"KindActivity", string(contract.KindActivity),
		"KindUpdate", string(contract.KindUpdate),
	}
	for i := 1; i < len(names); i += 2 {
		names[i] = string(contract.Quote(names[i]))
	}
	golden(t, "names.json", object(names...))
}

func TestCheckToolName(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"a", "9", "_", "-", "lookup_Key-2", strings.Repeat("x", 64)} {
		require.NoError(t, contract.CheckToolName(name), name)
	}
	for name, want := range map[string]string{
		"":                      "the name is empty",
		strings.Repeat("x", 65): "the name has 65 bytes, at most 64 are allowed",
		"list_tools":            `the name "list_tools" is reserved`,
		"get_operation_result":  `the name "get_operation_result" is reserved`,
		"cancel_operation":      `the name "cancel_operation" is reserved`,
		"list_operations":       `the name "list_operations" is reserved`,
		"a/b":                   `the name "a/b" has '/'; only letters, digits, _ and - of ASCII are allowed`,
		"a b":                   `the name "a b" has ' '; only letters, digits, _ and - of ASCII are allowed`,
		"mcp:tools.list":        `the name "mcp:tools.list" has ':'; only letters, digits, _ and - of ASCII are allowed`,
		"größe":                 `the name "größe" has 'ö'; only letters, digits, _ and - of ASCII are allowed`,
		"a\xff":                 `the name "a\xff" has '�'; only letters, digits, _ and - of ASCII are allowed`,
		"..":                    `the name ".." has '.'; only letters, digits, _ and - of ASCII are allowed`,
		"a\n":                   `the name "a\n" has '\n'; only letters, digits, _ and - of ASCII are allowed`,
	} {
		require.EqualError(t, contract.CheckToolName(name), want)
	}
}

func TestCheckPrefix(t *testing.T) {
	t.Parallel()

	require.NoError(t, contract.CheckPrefix(""))
	require.NoError(t, contract.CheckPrefix("weather_"))
	require.ErrorContains(t, contract.CheckPrefix("a."), `the prefix "a." has '.'`)
	require.ErrorContains(t, contract.CheckPrefix(strings.Repeat("p", 64)), "leaves no room")
}

func TestCheckEndpointName(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"ab", "a9", "my-Tools-2", strings.Repeat("x", 200)} {
		require.NoError(t, contract.CheckEndpointName(name), name)
	}
	for _, name := range []string{"", "h", "9a", "-a", "a-", "a_b", "a.b", "ä1", "ab\n", strings.Repeat("x", 201)} {
		require.EqualError(t, contract.CheckEndpointName(name), "an endpoint's name has 2 to 200 letters, digits and -, a letter first and no - last", name)
	}
}

func TestPrefixed(t *testing.T) {
	t.Parallel()

	for prefix, want := range map[string]string{"": "get", "weather": "weather_get", "weather_": "weather_get", "weather-": "weather-get", "-": "-get", "w-1": "w-1_get"} {
		require.Equal(t, want, contract.Prefixed(prefix, "get"), prefix)
	}
}
