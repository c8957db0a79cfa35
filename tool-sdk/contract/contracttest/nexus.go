package contracttest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// NexusCall returns a function that calls one operation of a service as a
// standalone Nexus operation, as bytes: what [Service] wants. The operation ends
// when scheduleToClose has passed; zero is no bound. The function returns the
// error of the operation as the Temporal SDK has it, see package resultmap.
func NexusCall(c client.Client, endpoint, service string, scheduleToClose time.Duration) func(ctx context.Context, operation string, input json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, operation string, input json.RawMessage) (json.RawMessage, error) {
		nc, err := c.NewNexusClient(client.NexusClientOptions{Endpoint: endpoint, Service: service})
		if err != nil {
			return nil, err
		}
		handle, err := nc.ExecuteOperation(ctx, operation, resultmap.RawValue(input), client.StartNexusOperationOptions{
			ID: "contracttest-" + rand.Text(), ScheduleToCloseTimeout: scheduleToClose,
		})
		if err != nil {
			return nil, ended(ctx, err)
		}
		// A poll with a deadline makes the SDK ask without a pause in the last
		// second before it.
		poll, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		var output converter.RawValue
		if err := handle.Get(poll, &output); err != nil {
			return nil, ended(ctx, err)
		}
		return resultmap.JSON(output)
	}
}

// ended is the reason for which a context has ended, else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
