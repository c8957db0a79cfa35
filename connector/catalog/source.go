package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
)

// FromOperations returns the source that reads the lists of services by standalone Nexus
// operations.
func FromOperations(c *operation.Client) Source { return operations{c} }

type operations struct{ client *operation.Client }

func (o operations) List(ctx context.Context, s Service, method, cursor string, timeout time.Duration) (json.RawMessage, error) {
	if method == ListTools {
		return o.client.ListTools(ctx, s.Endpoint, s.Name, cursor, timeout)
	}
	return o.client.ReadList(ctx, s.Endpoint, s.Name, method, cursor, timeout)
}

func (o operations) PolledSince(ctx context.Context, s Service, t time.Time) (bool, error) {
	target, ok, err := o.client.Endpoint(ctx, s.Endpoint)
	if err != nil || !ok {
		return false, err
	}
	last, err := o.client.LastPoll(ctx, target)
	return last.After(t), err
}
