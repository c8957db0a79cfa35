package mcpclient

import "slices"

// Names of the Model Context Protocol that a client writes and reads.
const (
	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodListen      = "subscriptions/listen"
	methodPing        = "ping"

	// MethodCancelled is the notification that nobody waits for a request any more.
	MethodCancelled = "notifications/cancelled"

	metaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo         = "io.modelcontextprotocol/clientInfo"
	metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServerInfo         = "io.modelcontextprotocol/serverInfo"
	metaLogLevel           = "io.modelcontextprotocol/logLevel"
	metaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	metaProgressToken      = "progressToken"
)

// JSON-RPC error codes that mean something to a client.
const (
	codeUnsupportedVersion = -32022
	codeInternalError      = -32603

	// CodeMethodNotFound says that the peer has no such method.
	CodeMethodNotFound = -32601
)

// newestLegacy is the revision that the older handshake offers.
const newestLegacy = "2025-11-25"

// The revisions that this client speaks, newest first. A modern one has no
// handshake and no session: each request says all that there is to know.
var (
	modernVersions = []string{"2026-07-28"}
	legacyVersions = []string{newestLegacy, "2025-06-18", "2025-03-26", "2024-11-05"}
)

// Versions lists the revisions that this client speaks, newest first.
func Versions() []string { return slices.Concat(modernVersions, legacyVersions) }

// Modern reports whether a revision has no handshake and no session.
func Modern(version string) bool { return version >= modernVersions[len(modernVersions)-1] }

// newestOf returns the newest of the offered versions that this client speaks.
func newestOf(offered []string) string {
	for _, v := range Versions() {
		if slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}

// listChanged maps the notification that a list changed to what changed.
var listChanged = map[string]string{
	"notifications/tools/list_changed":     "tools",
	"notifications/resources/list_changed": "resources",
	"notifications/prompts/list_changed":   "prompts",
}
