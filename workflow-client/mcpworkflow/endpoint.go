package mcpworkflow

import (
	"context"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"
)

// reach returns a failure for an endpoint that Temporal does not have: the server
// fails the Workflow task, again and again, that starts an operation on one, and
// the Workflow would never learn why it stands still. So each endpoint is looked
// up once for each client, by a local activity, before it is first used.
func (c *Client) reach(ctx workflow.Context, s Service) error {
	lookup, known := c.endpoints[s.Endpoint]
	if !known {
		calm, _ := workflow.NewDisconnectedContext(ctx)
		lookup = workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(calm, workflow.LocalActivityOptions{
			ScheduleToCloseTimeout: lookupTimeout,
		}), findEndpoint, s.Endpoint)
		c.endpoints[s.Endpoint] = lookup
	}
	if err := wait(ctx, lookup); err != nil {
		return err
	}
	var answer endpointState
	if err := lookup.Get(ctx, &answer); err != nil || answer != endpointMissing {
		return nil //nolint:nilerr // what cannot be told is tried
	}
	delete(c.endpoints, s.Endpoint)
	return contract.NoEndpoint(s.Endpoint, s.Name)
}

const lookupTimeout = 5 * time.Second

type endpointState string

const (
	endpointFound   endpointState = "found"
	endpointMissing endpointState = "missing"
	// endpointUnknown: the server does not tell, for want of a permission or
	// because it is away.
	endpointUnknown endpointState = "unknown"
)

// findEndpoint looks an endpoint up. It is a local activity, and its name is in
// histories.
func findEndpoint(ctx context.Context, name string) (state endpointState, err error) {
	// The SDK's test environment has no client.
	defer func() {
		if recover() != nil {
			state = endpointUnknown
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout/2)
	defer cancel()
	reply, err := activity.GetClient(ctx).OperatorService().ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: name})
	if err != nil {
		return endpointUnknown, nil
	}
	for _, e := range reply.GetEndpoints() {
		if e.GetSpec().GetName() == name {
			return endpointFound, nil
		}
	}
	return endpointMissing, nil
}
