package mcpworkflowtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register puts fakes into a test environment, together with
// [mcpworkflow.Interceptor], which the options may have as well, and returns the
// log of their calls. The options are those of the Worker under test: Register
// sets them, so they are not set on the environment again.
func Register(env *testsuite.TestWorkflowEnvironment, options worker.Options, services ...*Service) *Log {
	l := &Log{services: map[string]*Service{}}
	// The first interceptor is the last on the way out: it sees what the others set.
	options.Interceptors = append([]interceptor.WorkerInterceptor{&recorder{log: l}, mcpworkflow.Interceptor()}, options.Interceptors...)
	env.SetWorkerOptions(options)
	env.RegisterWorkflowWithOptions(hang, workflow.RegisterOptions{Name: hangName})
	for _, s := range services {
		l.services[s.name] = s
		env.RegisterNexusService(s.nexus())
	}
	return l
}

// Log has the calls that a Workflow made of fakes, in its order. It is safe for
// concurrent use.
type Log struct {
	services map[string]*Service

	mu    sync.Mutex
	calls []Call
}

// Call is one call of a tool, or of a method.
type Call struct {
	Service string
	// Name is that of the tool as the service has it, or of the operation that
	// stands for the method.
	Name string
	// Input is what the service got: the arguments, with the encoding "mcp" the
	// whole input.
	Input json.RawMessage
	// Header are the Nexus headers; keys are lower-case.
	Header map[string]string
	// Timeout is the schedule-to-close timeout; zero is none.
	Timeout time.Duration
	Summary string
}

// Calls returns the calls until now. Lists of tools are not among them.
func (l *Log) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// Names returns the names of the tools that were called, and of the methods.
func (l *Log) Names() []string {
	names := []string{}
	for _, c := range l.Calls() {
		names = append(names, c.Name)
	}
	return names
}

// numberHeader has the call's place among those of its operation: operations of
// one Workflow task reach their handlers in any order.
const numberHeader = "mcpworkflowtest-number"

type recorder struct {
	interceptor.WorkerInterceptorBase
	log *Log
}

func (r *recorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &inbound{log: r.log}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	log *Log
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &outbound{log: i.log}
	o.Next = next
	return i.Next.Init(o)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	log *Log
}

// ExecuteNexusOperation implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteNexusOperation(ctx workflow.Context, in interceptor.ExecuteNexusOperationInput) workflow.NexusOperationFuture {
	name, _ := in.Operation.(string)
	if s := o.log.services[in.Client.Service()]; s != nil && ctx.Err() == nil {
		if name != contract.OperationListTools {
			o.log.add(in, name)
		}
		in.NexusHeader.Set(numberHeader, strconv.Itoa(s.number(name)))
	}
	return o.Next.ExecuteNexusOperation(ctx, in)
}

// add notes a call. The order in which a map is copied shows nowhere.
//
//workflowcheck:ignore
func (l *Log) add(in interceptor.ExecuteNexusOperationInput, name string) {
	c := Call{
		Service: in.Client.Service(), Name: name, Header: map[string]string{},
		Timeout: in.Options.ScheduleToCloseTimeout, Summary: in.Options.Summary,
	}
	if raw, ok := in.Input.(converter.RawValue); ok {
		c.Input, _ = resultmap.JSON(raw)
	}
	maps.Copy(c.Header, in.NexusHeader)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}
