package temporaltest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Handler runs an operation and returns its output. Its context ends when the
// operation is cancelled; an error after that closes it as canceled.
type Handler func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)

// Frontend is a Temporal frontend. It is safe for concurrent use.
type Frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer

	server  *grpc.Server
	address string
	running sync.WaitGroup // handlers

	mu         sync.Mutex
	handlers   map[[2]string]Handler
	operations []*operation // in the order of their starts
	down       error
	lastPoll   *time.Time
	blind      bool
	calls      map[string]int
}

// Start serves a frontend on a loopback port until Close.
func Start() *Frontend {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // nothing to wait for
	if err != nil {
		panic("temporaltest: " + err.Error())
	}
	f := &Frontend{address: listener.Addr().String(), handlers: map[[2]string]Handler{}, calls: map[string]int{}}
	f.server = grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
	workflowservice.RegisterWorkflowServiceServer(f.server, f)
	operatorservice.RegisterOperatorServiceServer(f.server, f)
	healthy := health.NewServer()
	healthy.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(f.server, healthy)
	go func() { _ = f.server.Serve(listener) }()
	return f
}

// Address is where the frontend listens.
func (f *Frontend) Address() string { return f.address }

// Close stops the frontend and cancels what runs.
func (f *Frontend) Close() {
	f.server.Stop()
	f.mu.Lock()
	for _, op := range f.operations {
		op.cancel()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// Handle makes a worker appear that runs an operation of a service. An operation
// that nobody handles stays open until its timeout.
func (f *Frontend) Handle(service, operation string, h Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[[2]string{service, operation}] = h
}

// Serve makes a worker appear whose service has the manifest and the tools.
func (f *Frontend) Serve(service, manifest string, tools map[string]Handler) {
	f.Handle(service, contract.OperationListTools, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(manifest), nil
	})
	for name, h := range tools {
		f.Handle(service, name, h)
	}
}

// SetDown makes every request fail with err; nil ends that.
func (f *Frontend) SetDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// SetLastPoll makes the frontend tell of every endpoint that a worker polled it last
// at t, or never where t is zero. Before that it does not tell.
func (f *Frontend) SetLastPoll(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastPoll = &t
}

// StopVisibility makes lists empty from here on.
func (f *Frontend) StopVisibility() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blind = true
}

// Calls returns how often a method of the frontend was called, by its short name.
func (f *Frontend) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Operations returns the starts of the operations of a service so far.
func (f *Frontend) Operations(service string) []*workflowservice.StartNexusOperationExecutionRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	var starts []*workflowservice.StartNexusOperationExecutionRequest
	for _, op := range f.operations {
		if op.start.GetService() == service && op.start.GetOperation() != contract.OperationListTools {
			starts = append(starts, op.start)
		}
	}
	return starts
}

func (f *Frontend) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	f.calls[info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]]++
	down := f.down
	f.mu.Unlock()
	if down != nil {
		return nil, serviceerror.ToStatus(down).Err()
	}
	reply, err := next(ctx, req)
	if err != nil {
		return nil, serviceerror.ToStatus(err).Err()
	}
	return reply, nil
}

// GetSystemInfo is what a client asks first.
func (*Frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "in-memory"}, nil
}

// DescribeNamespace says that every namespace is there, keeps what is closed for a
// day, and has standalone operations.
func (*Frontend) DescribeNamespace(_ context.Context, req *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{
			Name: req.GetNamespace(), Capabilities: &namespacepb.NamespaceInfo_Capabilities{StandaloneNexusOperation: true},
		},
		Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(24 * time.Hour)},
	}, nil
}

// ListNexusEndpoints has every endpoint that is asked for.
func (f *Frontend) ListNexusEndpoints(_ context.Context, req *operatorservice.ListNexusEndpointsRequest) (*operatorservice.ListNexusEndpointsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lastPoll == nil {
		return nil, serviceerror.NewPermissionDenied("not told", "")
	}
	worker := &nexuspb.EndpointTarget_Worker_{Worker: &nexuspb.EndpointTarget_Worker{Namespace: "default", TaskQueue: req.GetName()}}
	return &operatorservice.ListNexusEndpointsResponse{Endpoints: []*nexuspb.Endpoint{{
		Spec: &nexuspb.EndpointSpec{Name: req.GetName(), Target: &nexuspb.EndpointTarget{Variant: worker}},
	}}}, nil
}

// DescribeTaskQueue tells of the last poll.
func (f *Frontend) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &workflowservice.DescribeTaskQueueResponse{}
	if f.lastPoll != nil && !f.lastPoll.IsZero() {
		reply.Pollers = []*taskqueuepb.PollerInfo{{LastAccessTime: stamp(*f.lastPoll)}}
	}
	return reply, nil
}

// StartNexusOperationExecution runs the operation's handler.
func (f *Frontend) StartNexusOperationExecution(_ context.Context, req *workflowservice.StartNexusOperationExecutionRequest) (*workflowservice.StartNexusOperationExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.find(req.GetOperationId()); err == nil {
		return nil, serviceerror.NewNexusOperationExecutionAlreadyStarted("already started", "", "run")
	}
	ctx, cancel := context.WithCancel(context.Background())
	op := &operation{
		start: req, scheduled: time.Now(), closed: make(chan struct{}), cancel: cancel,
		status: enumspb.NEXUS_OPERATION_EXECUTION_STATUS_RUNNING,
	}
	f.operations = append(f.operations, op)
	if d := req.GetScheduleToCloseTimeout().AsDuration(); d > 0 {
		timer := time.AfterFunc(d, func() { f.close(op, nil, errTimedOut) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	handler := f.handlers[[2]string{req.GetService(), req.GetOperation()}]
	f.running.Go(func() {
		if handler == nil {
			<-ctx.Done()
			f.close(op, nil, ctx.Err())
			return
		}
		output, err := handler(ctx, req.GetInput().GetData())
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		f.close(op, output, err)
	})
	return &workflowservice.StartNexusOperationExecutionResponse{RunId: "run", Started: true}, nil
}

var errTimedOut = errors.New("temporaltest: timed out")

// find needs f.mu.
func (f *Frontend) find(id string) (*operation, error) {
	i := slices.IndexFunc(f.operations, func(op *operation) bool { return op.start.GetOperationId() == id })
	if i < 0 {
		return nil, serviceerror.NewNotFound("no such operation")
	}
	return f.operations[i], nil
}

func (f *Frontend) close(op *operation, output json.RawMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op.close(output, err)
}

// PollNexusOperationExecution waits for the operation to close.
func (f *Frontend) PollNexusOperationExecution(ctx context.Context, req *workflowservice.PollNexusOperationExecutionRequest) (*workflowservice.PollNexusOperationExecutionResponse, error) {
	f.mu.Lock()
	op, err := f.find(req.GetOperationId())
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-op.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reply := &workflowservice.PollNexusOperationExecutionResponse{RunId: "run", WaitStage: enumspb.NEXUS_OPERATION_WAIT_STAGE_CLOSED}
	if op.failure != nil {
		reply.Outcome = &workflowservice.PollNexusOperationExecutionResponse_Failure{Failure: op.failure}
	} else {
		reply.Outcome = &workflowservice.PollNexusOperationExecutionResponse_Result{Result: &commonpb.Payload{
			Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: op.output,
		}}
	}
	return reply, nil
}

// DescribeNexusOperationExecution tells what is known of an operation.
func (f *Frontend) DescribeNexusOperationExecution(_ context.Context, req *workflowservice.DescribeNexusOperationExecutionRequest) (*workflowservice.DescribeNexusOperationExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op, err := f.find(req.GetOperationId())
	if err != nil {
		return nil, err
	}
	return &workflowservice.DescribeNexusOperationExecutionResponse{RunId: "run", Info: op.info()}, nil
}

// RequestCancelNexusOperationExecution ends the handler's context.
func (f *Frontend) RequestCancelNexusOperationExecution(_ context.Context, req *workflowservice.RequestCancelNexusOperationExecutionRequest) (*workflowservice.RequestCancelNexusOperationExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op, err := f.find(req.GetOperationId())
	if err != nil {
		return nil, err
	}
	op.reason = req.GetReason()
	op.cancel()
	return &workflowservice.RequestCancelNexusOperationExecutionResponse{}, nil
}

// ListNexusOperationExecutions returns every tool call, newest first. Of the query
// only the prefixes count, of the IDs and of the operations that are not wanted.
func (f *Frontend) ListNexusOperationExecutions(_ context.Context, req *workflowservice.ListNexusOperationExecutionsRequest) (*workflowservice.ListNexusOperationExecutionsResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := &workflowservice.ListNexusOperationExecutionsResponse{}
	for _, op := range slices.Backward(f.operations) {
		if !f.blind && wanted(req.GetQuery(), op.start) {
			reply.Operations = append(reply.Operations, op.listInfo())
		}
	}
	return reply, nil
}

func wanted(query string, start *workflowservice.StartNexusOperationExecutionRequest) bool {
	hasPrefix := func(attribute, value string) bool {
		parts := strings.Split(query, attribute+` STARTS_WITH "`)
		return slices.ContainsFunc(parts[1:], func(part string) bool {
			prefix, _, _ := strings.Cut(part, `"`)
			return strings.HasPrefix(value, prefix)
		})
	}
	return hasPrefix("OperationId", start.GetOperationId()) && !hasPrefix("Operation NOT", start.GetOperation())
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
