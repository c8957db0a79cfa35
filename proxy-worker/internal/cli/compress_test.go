package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// TestCompress: a small request is not compressed.
func TestCompress(t *testing.T) {
	t.Parallel()

	input := func(size int) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: make([]byte, size)}}}
	}
	for _, c := range []struct {
		name, method string
		request      any
		plain        bool
	}{
		{
			"small", workflowservice.WorkflowService_RespondActivityTaskCompleted_FullMethodName,
			&workflowservice.RespondActivityTaskCompletedRequest{Result: input(100)}, true,
		},
		{
			"large", workflowservice.WorkflowService_RespondActivityTaskCompleted_FullMethodName,
			&workflowservice.RespondActivityTaskCompletedRequest{Result: input(worthIt)}, false,
		},
		{
			"poll", workflowservice.WorkflowService_PollActivityTaskQueue_FullMethodName,
			&workflowservice.PollActivityTaskQueueRequest{}, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			given := make([]grpc.CallOption, 1, 2)
			given[0] = grpc.UseCompressor("gzip")
			err := compress(t.Context(), c.method, c.request, nil, nil,
				func(_ context.Context, method string, _, _ any, _ *grpc.ClientConn, options ...grpc.CallOption) error {
					require.Equal(t, c.method, method)
					last := options[len(options)-1].(grpc.CompressorCallOption).CompressorType
					require.Equal(t, c.plain, last == encoding.Identity)
					return nil
				}, given...)
			require.NoError(t, err)
			require.Nil(t, given[:2][1], "the caller's options stay as they are")
		})
	}
}
