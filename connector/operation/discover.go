package operation

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ErrNoAnswer is in the chain of the error of [Client.ListTools] and [Client.ReadList]
// where Temporal took the question and no worker answered it in time.
var ErrNoAnswer = errors.New("operation: no worker answered")

// lookBack is how much longer than the question its operation lives: Temporal
// forgets why the attempts failed when it times out.
const lookBack = 2 * time.Second

// ListTools reads one page of a service's manifest. It gives up after timeout,
// and so does the operation a moment later: a service that is away is not asked
// on behind the caller's back.
func (c *Client) ListTools(ctx context.Context, endpoint, service, cursor string, timeout time.Duration) (json.RawMessage, error) {
	return c.ask(ctx, endpoint, service, contract.OperationListTools, contract.ListInput(cursor), timeout)
}

// ReadList reads one page of another list of a service, as [Client.ListTools] does:
// method is the list method of MCP, "resources/list".
func (c *Client) ReadList(ctx context.Context, endpoint, service, method, cursor string, timeout time.Duration) (json.RawMessage, error) {
	input := contract.ListInput(cursor)
	if cursor == "" {
		input = json.RawMessage("{}")
	}
	return c.ask(ctx, endpoint, service, contract.MethodOperation(method), input, timeout)
}

func (c *Client) ask(ctx context.Context, endpoint, service, operation string, input json.RawMessage, timeout time.Duration) (json.RawMessage, error) {
	nc, err := c.temporal.NewNexusClient(client.NexusClientOptions{Endpoint: endpoint, Service: service})
	if err != nil {
		return nil, err
	}
	var bits [16]byte
	_, _ = rand.Read(bits[:])
	id := "mcp-discovery-" + hex.EncodeToString(bits[:])
	start, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = within(start, func() error { // behind no call's start
		_, err := nc.ExecuteOperation(start, operation, resultmap.RawValue(input),
			client.StartNexusOperationOptions{ID: id, ScheduleToCloseTimeout: max(timeout, contract.MinScheduleToClose) + lookBack})
		return err
	})
	if err != nil {
		return nil, c.startFailure(endpoint, service, false, err)
	}
	output, err := c.wait(ctx, id, timeout)
	var failure *contract.Failure
	if errors.Is(err, ErrRunning) || errors.As(err, &failure) && failure.Code == contract.CodeTimedOut {
		why, cause := c.whyNoAnswer(ctx, endpoint, id)
		return nil, &contract.Failure{
			Code: contract.CodeUnavailable, Retryable: true, Cause: cause,
			Message: fmt.Sprintf("The service %q on endpoint %q did not answer within %v. %s",
				service, endpoint, timeout.Round(time.Millisecond), why),
		}
	}
	return output, err
}

// whyNoAnswer tells a worker that fails at each attempt from one that is away, and
// from one whose answer could not be read in time.
func (c *Client) whyNoAnswer(ctx context.Context, endpoint, id string) (why string, cause error) {
	ctx, cancel := context.WithTimeout(ctx, lookBack)
	defer cancel()
	d, err := c.state(ctx, id)
	if err != nil {
		return c.whoPolls(ctx, endpoint), ErrNoAnswer
	}
	switch last := d.lastAttempt(); {
	case d.Status == Completed:
		return "It answered too late, or this program cannot decode the answer; its log says so then.", nil
	case last != nil:
		handler, ok := errors.AsType[*nexus.HandlerError](last)
		f := resultmap.FromError(last)
		if f.Code != contract.CodeTimedOut && (!ok || handler.Type != nexus.HandlerErrorTypeUpstreamTimeout) {
			return "The last attempt ended with: " + f.Message, ErrNoAnswer
		}
	}
	return c.whoPolls(ctx, endpoint), ErrNoAnswer
}

// whoPolls says what Temporal knows of the workers of an endpoint that gave no
// answer.
func (c *Client) whoPolls(ctx context.Context, endpoint string) string {
	ctx, cancel := context.WithTimeout(ctx, lookBack)
	defer cancel()
	last, err := c.lastPoll(ctx, endpoint)
	switch ago := time.Since(last).Round(time.Second); {
	case err != nil:
		return "The likely cause is that no worker polls the endpoint's task queue, or that all are busy; Temporal does not tell."
	case last.IsZero():
		return "The likely cause is that no worker polls the endpoint's task queue: Temporal knows of none."
	case ago > FreshPoll:
		return fmt.Sprintf("The likely cause is that no worker polls the endpoint's task queue: the last one did %v ago.", ago)
	default:
		return fmt.Sprintf("A worker polled the endpoint's task queue %v ago: it has stopped since, is busy, or its log says why it does not answer.", ago)
	}
}

func (c *Client) lastPoll(ctx context.Context, endpoint string) (time.Time, error) {
	target, _, err := c.Endpoint(ctx, endpoint)
	if err != nil {
		return time.Time{}, err
	}
	if target == (Endpoint{}) {
		return time.Time{}, errors.New("operation: the endpoint leads to no task queue of this Temporal")
	}
	return c.LastPoll(ctx, target)
}

// FreshPoll is how old the last poll of a live worker can be: a long poll lasts a
// minute.
const FreshPoll = 90 * time.Second

// Endpoint is where a Nexus endpoint leads.
type Endpoint struct{ Namespace, TaskQueue string }

// Endpoint returns the target of a Nexus endpoint. ok is false where there is
// no endpoint of the name; the target is zero where it is no worker target.
// The server may refuse to tell.
func (c *Client) Endpoint(ctx context.Context, name string) (target Endpoint, ok bool, err error) {
	reply, err := c.temporal.OperatorService().ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: name})
	if err != nil {
		return Endpoint{}, false, err
	}
	for _, e := range reply.GetEndpoints() {
		if e.GetSpec().GetName() == name {
			if w, isWorker := e.GetSpec().GetTarget().GetVariant().(*nexuspb.EndpointTarget_Worker_); isWorker {
				return Endpoint{Namespace: w.Worker.GetNamespace(), TaskQueue: w.Worker.GetTaskQueue()}, true, nil
			}
			return Endpoint{}, true, nil
		}
	}
	return Endpoint{}, false, nil
}

// LastPoll returns when a worker last asked for Nexus tasks of the endpoint's
// task queue; zero where none has. It costs the service nothing: no operation
// is started, so it does not feed the server's circuit breaker.
func (c *Client) LastPoll(ctx context.Context, target Endpoint) (time.Time, error) {
	reply, err := c.temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     target.Namespace,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: target.TaskQueue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_NEXUS,
	})
	if err != nil {
		return time.Time{}, err
	}
	var last time.Time
	for _, p := range reply.GetPollers() {
		if t := p.GetLastAccessTime().AsTime(); t.After(last) {
			last = t
		}
	}
	return last, nil
}

// ActivityCallbacks reports whether a namespace has activity.enableCallbacks
// switched on, which activity-backed tools need. No capability says so, so a
// request is made that the server refuses in either case, for one reason or
// for another.
func (c *Client) ActivityCallbacks(ctx context.Context, namespace string) (bool, error) {
	_, err := c.temporal.WorkflowService().StartActivityExecution(ctx, &workflowservice.StartActivityExecutionRequest{
		Namespace:           namespace,
		RequestId:           "probe",
		ActivityId:          "probe",
		ActivityType:        &commonpb.ActivityType{Name: "probe"},
		TaskQueue:           &taskqueuepb.TaskQueue{Name: "probe"},
		StartToCloseTimeout: durationpb.New(time.Second),
		CompletionCallbacks: []*commonpb.Callback{{Variant: &commonpb.Callback_Nexus_{
			Nexus: &commonpb.Callback_Nexus{Url: "refused://probe"},
		}}},
	})
	// Both are InvalidArgument, so only the text tells them apart.
	switch {
	case err == nil:
		return false, errors.New("operation: the server took a request that it should refuse")
	case strings.Contains(err.Error(), callbacksOff):
		return false, nil
	case strings.Contains(err.Error(), "url"):
		return true, nil
	}
	return false, err
}
