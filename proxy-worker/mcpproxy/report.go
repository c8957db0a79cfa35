package mcpproxy

// Report says what a proxy serves.
type Report struct {
	// Service is the Nexus service, the name of the proxy.
	Service string
	// ServerName, ServerVersion and ProtocolVersion are what the upstream says of
	// itself; empty where it says nothing.
	ServerName, ServerVersion, ProtocolVersion string
	// Session is how sessions are really used: [SessionShared] or
	// [SessionPerCaller]; SessionReason says why.
	Session       SessionMode
	SessionReason string
	// Tools are those that are served, in the upstream's order.
	Tools []ToolReport
	// Filtered are the upstream names that the filters leave out.
	Filtered []string
	// Resources, Prompts and Completions report what the upstream has beside
	// tools.
	Resources, Prompts, Completions bool
	// Warnings name what is left out, renamed or odd.
	Warnings []string
}

// ToolReport says how one tool is served.
type ToolReport struct {
	// Name is that of the operation; UpstreamName is that of the upstream.
	Name, UpstreamName string
	Policy             ResolvedPolicy
	// Repeatable reports whether a call that may have reached the upstream is
	// sent again; Why is one of the Why constants.
	Repeatable bool
	Why        string
}
