package mcptool

import (
	"encoding/json"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
)

// Tool declares an operation as a tool. The tool has the operation's name. All
// fields but Description are optional.
type Tool struct {
	// Title is the name for people. Defaults to none.
	Title string
	// Description tells the model what the tool does. Required.
	Description string
	// Annotations are hints for clients. The zero value says what MCP assumes:
	// not read-only, destructive, not idempotent, of an open world.
	Annotations Annotations
	// Icons are for people's eyes. Defaults to none.
	Icons []Icon
	// ScheduleToCloseTimeout bounds a call from start to end, retries
	// included. Callers set it on the operation. The Temporal server cannot
	// keep less than [contract.MinScheduleToClose]. Defaults to no bound.
	ScheduleToCloseTimeout time.Duration
	// InputSchema is a JSON Schema for the arguments, of type object. Defaults
	// to one from the operation's input type.
	InputSchema json.RawMessage
	// OutputSchema is a JSON Schema for the result; null is none. Defaults to
	// one from the operation's output type, and to none where that says
	// nothing: any, [json.RawMessage], [nexus.NoValue], [Result].
	OutputSchema json.RawMessage
	// Meta is more for the tool's `_meta`. Keys that the contract owns are
	// refused. Defaults to none.
	Meta map[string]any
	// Kind says what runs behind the tool. Defaults to what the operation's
	// type shows; operations of temporalnexus.NewTemporalOperation show
	// nothing, so there it is worth saying.
	Kind contract.Kind
}

// Annotations are the ToolAnnotations of MCP. They are hints: clients must not
// trust them.
type Annotations struct {
	// Title is an older place for [Tool.Title].
	Title string `json:"title,omitempty"`
	// ReadOnlyHint: the tool changes nothing. Defaults to false.
	ReadOnlyHint bool `json:"readOnlyHint,omitempty"`
	// DestructiveHint: the tool may destroy something. Nil stands for true.
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	// IdempotentHint: a second call with the same arguments changes nothing
	// more. Defaults to false.
	IdempotentHint bool `json:"idempotentHint,omitempty"`
	// OpenWorldHint: the tool reaches what is outside of its own domain. Nil
	// stands for true.
	OpenWorldHint *bool `json:"openWorldHint,omitempty"`
}

// repeatable reports whether running the tool twice does no harm.
func (a Annotations) repeatable() bool { return a.ReadOnlyHint || a.IdempotentHint }

// Icon is an icon of MCP.
type Icon struct {
	// Source is an https: or data: URI.
	Source string `json:"src"`
	// MIMEType defaults to what the source says.
	MIMEType string `json:"mimeType,omitempty"`
	// Sizes are like "48x48" or "any".
	Sizes []string `json:"sizes,omitempty"`
	// Theme is "light" or "dark". Defaults to both.
	Theme string `json:"theme,omitempty"`
}

// Implementation names a service to people and clients.
type Implementation struct {
	// Name defaults to the service's name.
	Name string `json:"name"`
	// Title is the name for people.
	Title string `json:"title,omitempty"`
	// Version defaults to "0".
	Version string `json:"version"`
	// WebsiteURL is where people read more.
	WebsiteURL string `json:"websiteUrl,omitempty"`
	// Icons are for people's eyes.
	Icons []Icon `json:"icons,omitempty"`
}
