package proxy_test

import (
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// operate runs an operation as a Nexus caller that is none of ours, and returns how
// it failed.
func operate(t *testing.T, service, operation, input string) error {
	t.Helper()
	return operateWith(t, service, operation, input, nil)
}

func operateWith(t *testing.T, service, operation, input string, header nexus.Header) error {
	t.Helper()
	nc, err := harness.Shared(t).Client(t).NewNexusClient(client.NexusClientOptions{Endpoint: service, Service: service})
	require.NoError(t, err)
	raw := converter.NewRawValue(&commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(input),
	})
	handle, err := nc.ExecuteOperation(t.Context(), operation, raw, client.StartNexusOperationOptions{
		ID: harness.Unique("direct"), ScheduleToCloseTimeout: time.Minute,
	})
	if err != nil {
		return err
	}
	var out converter.RawValue
	return handle.Get(t.Context(), &out)
}
