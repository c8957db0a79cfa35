package mcpworkflowtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/workflow"
)

// Tool is a tool of a fake service.
type Tool struct {
	Name        string
	Description string
	// InputSchema defaults to {"type":"object"}.
	InputSchema json.RawMessage
	// OutputSchema is nil where the tool declares none.
	OutputSchema json.RawMessage
	// Annotations is nil where the tool has none.
	Annotations json.RawMessage
	// Encoding defaults to that of values.
	Encoding contract.Encoding
	// Timeout is the schedule-to-close timeout that the tool states; zero is none.
	Timeout time.Duration
	// Run answers a call, unless a script does. It gets the arguments; with the
	// encoding "mcp" the whole input, see [contract.DecodeCall]. It returns what
	// [Return] takes, or an error: a [*contract.Failure] as it is, any other as
	// that of a tool that failed. Calls that run side by side call it from several
	// goroutines at once. Nil returns nothing.
	Run func(input json.RawMessage) (any, error)
}

// Service is a fake tool service. Its methods are safe for concurrent use.
type Service struct {
	name  string
	tools []Tool

	mu         sync.Mutex
	methods    map[string]func(params json.RawMessage) (any, error)
	registered bool // methods stay as they are
	scripts    map[string][]Step
	made       map[string]int // calls of each operation, in the Workflow's order
}

// NewService returns a fake of the service with the name. It panics if two tools
// have one name, or a tool has one that the contract does not allow: a test has
// no use for either.
func NewService(name string, tools ...Tool) *Service {
	s := &Service{
		name: name, tools: tools, scripts: map[string][]Step{}, made: map[string]int{},
		methods: map[string]func(json.RawMessage) (any, error){},
	}
	m, err := contract.DecodeManifest(s.manifest())
	if err != nil || len(m.Warnings) > 0 {
		panic(fmt.Sprintf("mcpworkflowtest: service %q: %v %q", name, err, m.Warnings))
	}
	return s
}

// Handle answers a method such as resources/read; it returns the service. A
// service has only those that are handled. It panics after [Register]: the test
// environment takes no more operations then.
func (s *Service) Handle(method string, answer func(params json.RawMessage) (any, error)) *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registered {
		panic(fmt.Sprintf("mcpworkflowtest: service %q: Handle(%q) after Register", s.name, method))
	}
	s.methods[contract.MethodOperation(method)] = answer
	return s
}

// Script says how the next calls of a tool end, one step each, in the place of
// [Tool.Run]; it returns the service. Steps add up, and start with the call
// that is not made yet. Calls count in the order in which the Workflow made them.
func (s *Service) Script(tool string, steps ...Step) *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.scripts[tool]) < s.made[tool] {
		s.scripts[tool] = append(s.scripts[tool], Step{runs: true}) // a call that no script was for
	}
	s.scripts[tool] = append(s.scripts[tool], steps...)
	return s
}

// Step is how one call ends.
type Step struct {
	value any
	err   error
	hangs bool
	runs  bool // as if there were no script
}

// Return ends a call with a value: a json.RawMessage as it is, a
// [contract.Result] as the result of a tool with the encoding "mcp", anything
// else as encoding/json writes it.
func Return(value any) Step { return Step{value: value} }

// Fail ends a call with a failure of any code.
//
//	Fail(&contract.Failure{Code: contract.CodeOutcomeUnknown, Message: "The connection broke."})
//	Fail(resultmap.ToolError(contract.TextResult("There is no such key.", true)))
func Fail(f *contract.Failure) Step { return Step{err: f} }

// Hang takes a call and never ends it: the call times out, or is cancelled.
func Hang() Step { return Step{hangs: true} }

// next is the call's step of the script.
func (s *Service) next(tool string, number int) (Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if steps := s.scripts[tool]; number < len(steps) {
		return steps[number], !steps[number].runs
	}
	return Step{}, false
}

// number counts the calls of an operation.
func (s *Service) number(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[operation]++
	return s.made[operation] - 1
}

func (s *Service) manifest() json.RawMessage {
	m := contract.Manifest{Version: contract.Version}
	for _, t := range s.tools {
		m.Tools = append(m.Tools, contract.Tool{Raw: t.json()})
	}
	return m.JSON()
}

func (t Tool) json() json.RawMessage {
	var o, meta contract.Object
	o.Set("name", contract.Quote(t.Name))
	o.Set("description", contract.Quote(t.Description))
	o.Set("inputSchema", json.RawMessage(`{"type":"object"}`))
	for _, part := range []struct {
		key   string
		value json.RawMessage
	}{{"inputSchema", t.InputSchema}, {"outputSchema", t.OutputSchema}, {"annotations", t.Annotations}} {
		if part.value != nil {
			o.Set(part.key, part.value)
		}
	}
	if t.Encoding != "" {
		meta.Set(contract.MetaEncoding, contract.Quote(string(t.Encoding)))
	}
	if t.Timeout > 0 {
		meta.Set(contract.MetaScheduleToClose, strconv.AppendInt(nil, t.Timeout.Milliseconds(), 10))
	}
	if meta.Len() > 0 {
		o.Set("_meta", meta.JSON())
	}
	return o.JSON()
}

// nexus returns the service as the test environment takes it. The environment
// panics over an operation that is not there, so the methods that the service
// lacks are, and say so.
func (s *Service) nexus() *nexus.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = true
	service := nexus.NewService(s.name)
	service.MustRegister(&operation{service: s, name: contract.OperationListTools, run: func(json.RawMessage) (any, error) {
		return s.manifest(), nil
	}})
	for _, t := range s.tools {
		service.MustRegister(&operation{service: s, name: t.Name, run: t.Run})
	}
	for _, method := range []string{
		"resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "completion/complete",
	} {
		if name := contract.MethodOperation(method); s.methods[name] == nil {
			service.MustRegister(&operation{service: s, name: name, run: func(json.RawMessage) (any, error) {
				return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "operation %q not found", name)
			}})
		}
	}
	for name, answer := range s.methods {
		service.MustRegister(&operation{service: s, name: name, run: answer})
	}
	return service
}

// operation is one operation of a fake.
type operation struct {
	nexus.UnimplementedOperation[converter.RawValue, converter.RawValue]
	service *Service
	name    string
	run     func(json.RawMessage) (any, error)
}

func (o *operation) Name() string { return o.name }

func (o *operation) Start(ctx context.Context, in converter.RawValue, options nexus.StartOperationOptions) (nexus.HandlerStartOperationResult[converter.RawValue], error) {
	input, err := resultmap.JSON(in)
	if err != nil {
		return nil, resultmap.OperationError(resultmap.FromError(err))
	}
	number, _ := strconv.Atoi(options.Header.Get(numberHeader))
	step, scripted := o.service.next(o.name, number)
	switch {
	case scripted && step.hangs:
		return hanging.Start(ctx, in, options)
	case !scripted && o.run != nil:
		step.value, step.err = o.run(input)
	}
	if handler, ok := step.err.(*nexus.HandlerError); ok { //nolint:errorlint // as the operation made it
		return nil, handler
	}
	if step.err != nil {
		return nil, resultmap.OperationError(resultmap.FromError(step.err))
	}
	output, err := encode(step.value)
	if err != nil {
		return nil, resultmap.OperationError(resultmap.FromError(err))
	}
	return &nexus.HandlerStartOperationResultSync[converter.RawValue]{Value: resultmap.RawValue(output)}, nil
}

func (o *operation) Cancel(ctx context.Context, token string, options nexus.CancelOperationOptions) error {
	return hanging.Cancel(ctx, token, options)
}

// hang is the Workflow behind a call that never ends, as seen from the call: the
// test environment waits for it, so it does end once nobody can see that.
func hang(ctx workflow.Context, d time.Duration) (converter.RawValue, error) {
	if err := workflow.Sleep(ctx, d); err != nil {
		return converter.RawValue{}, err
	}
	return converter.RawValue{}, temporal.NewNonRetryableApplicationError("The call was to hang for ever.", string(contract.CodeFailed), nil)
}

const hangName = "mcpworkflowtest-hang"

// forEver is how long a call without a timeout hangs.
const forEver = 100 * 365 * 24 * time.Hour

var hanging = temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[converter.RawValue, converter.RawValue]{
	Name: hangName,
	Handler: func(ctx context.Context, _ converter.RawValue, o nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[converter.RawValue], error) {
		d := forEver
		if timeout, err := time.ParseDuration(o.Header.Get(nexus.HeaderOperationTimeout)); err == nil {
			d = timeout + time.Second
		}
		return temporalnexus.ExecuteUntypedWorkflow[converter.RawValue](ctx, o, client.StartWorkflowOptions{ID: hangName + o.RequestID}, hangName, d)
	},
})

func encode(value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return v, nil
	case contract.Result:
		return v.JSON(), nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
