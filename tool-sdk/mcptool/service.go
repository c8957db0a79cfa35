package mcptool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
)

// Service is a Nexus service whose operations are tools. It is for one goroutine
// until it is registered; what is registered serves calls concurrently. It can be
// registered with more than one Worker.
type Service struct {
	name     string
	options  ServiceOptions
	entries  []entry
	faults   []error
	warnings []string
}

// ServiceOptions say more about a service. The zero value is fine.
type ServiceOptions struct {
	// ExposeAll makes tools of the operations of [Service.AddOperation] too. One
	// without a declaration gets a description from its name. Operations that
	// stand for MCP methods ("mcp:…") never become tools. Defaults to false.
	ExposeAll bool
	// Exclude are the operations that ExposeAll leaves out. Defaults to none.
	Exclude []string
	// Instructions tell the model how to use the service. Defaults to none.
	Instructions string
	// ServerInfo names the service. Defaults to none.
	ServerInfo Implementation
	// Capabilities are the MCP server capabilities beyond tools that the
	// service has operations for, as a JSON object. Defaults to none.
	Capabilities json.RawMessage
	// Logger gets the warnings of [Service.Register]. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

// entry is an operation of a service.
type entry struct {
	op   nexus.RegisterableOperation
	tool *Tool // nil for an operation that is no tool
}

// NewService returns a service without operations. The name is the Nexus service
// name. Options are at most one.
func NewService(name string, options ...ServiceOptions) *Service {
	s := &Service{name: name}
	if name == "" {
		s.faults = append(s.faults, errors.New("the name is empty"))
	}
	switch len(options) {
	case 0:
	case 1:
		s.options = options[0]
		s.options.Exclude = slices.Clone(s.options.Exclude)
	default:
		s.faults = append(s.faults, errors.New("options: given more than once"))
	}
	return s
}

// Add adds an operation that is a tool. What is wrong with it shows in
// [Service.Register].
func Add(s *Service, op nexus.RegisterableOperation, tool Tool) {
	s.entries = append(s.entries, entry{op, &tool})
}

// AddOperation adds operations that other Nexus callers use and that are no
// tools, unless [ServiceOptions.ExposeAll] says otherwise.
func (s *Service) AddOperation(ops ...nexus.RegisterableOperation) {
	for _, op := range ops {
		s.entries = append(s.entries, entry{op, nil})
	}
}

// Warnings returns what the last [Service.Register] had to say to people.
func (s *Service) Warnings() []string { return slices.Clone(s.warnings) }

// Register registers the service and the activities behind its tools with a
// Worker, before it starts. It reports every fault of every declaration at once,
// with its place, and registers nothing then. Warnings go to the logger and to
// [Service.Warnings].
func (s *Service) Register(w Registry) (err error) {
	b := &builder{service: s, faults: slices.Clone(s.faults), names: map[string]bool{}}
	operations := b.build()
	if len(b.faults) > 0 {
		for i, fault := range b.faults {
			b.faults[i] = fmt.Errorf("mcptool: %s: %w", cmp.Or(s.name, "service"), fault)
		}
		return errors.Join(b.faults...)
	}
	nexusService := nexus.NewService(s.name)
	if err := nexusService.Register(operations...); err != nil {
		return fmt.Errorf("mcptool: %s: %w", s.name, err)
	}
	defer func() {
		if v := recover(); v != nil { // the Worker's way to say that a name is taken
			err = fmt.Errorf("mcptool: %s: %v", s.name, v)
		}
	}()
	for _, a := range b.activities {
		w.RegisterActivityWithOptions(a.run, activity.RegisterOptions{Name: activityName(s.name, a.name)})
	}
	w.RegisterNexusService(nexusService)

	s.warnings = b.warnings
	for _, warning := range s.warnings {
		cmp.Or(s.options.Logger, slog.Default()).Warn("mcptool: "+s.name+": "+warning, "service", s.name)
	}
	return nil
}

// Registry is the part of a Worker that a service needs.
type Registry interface {
	worker.ActivityRegistry
	worker.NexusServiceRegistry
}

// describe makes words of an operation's name: "run_report" is "Run report.".
func describe(name string) string {
	words := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' }), " ")
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:] + "."
}

// isMethod tells the operations that stand for MCP methods.
func isMethod(name string) bool { return strings.HasPrefix(name, contract.MethodOperation("")) }
