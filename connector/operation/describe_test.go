package operation_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// failingCodec is a codec that cannot decode for as long as it is down.
type failingCodec struct{ down atomic.Bool }

func (*failingCodec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return payloads, nil
}

func (c *failingCodec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.down.Load() {
		return nil, errors.New("the codec is down")
	}
	return payloads, nil
}

// Who cannot read what tells two calls apart does not call them different.
func TestDescribeWithoutCodec(t *testing.T) {
	t.Parallel()

	_, temporal := connect(t)
	codec := &failingCodec{}
	c := dialWith(t, temporal, client.Options{DataConverter: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)})
	one := call(`{"n":1}`)
	one.IdempotencyKey = "k"
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)

	codec.down.Store(true)
	_, started := c.Start(t.Context(), one)
	_, described := c.Describe(t.Context(), id)
	_, found := c.Find(t.Context(), id)
	for _, err := range []error{started, described, found} {
		f, ok := errors.AsType[*contract.Failure](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		require.True(t, f.Retryable)
		require.Contains(t, f.Message, id)
	}
	calls, err := c.List(t.Context(), one.Caller, operation.Filter{})
	require.NoError(t, err)
	require.Len(t, calls, 1, "what is known is listed")
	require.Equal(t, tool, calls[0].Tool.Name)

	codec.down.Store(false)
	again, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, id, again)
}
