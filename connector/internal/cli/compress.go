package cli

import (
	"context"
	"slices"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
)

// worthIt is the size in bytes from which on a start is compressed.
const worthIt = 4 << 10

// compress is a gRPC interceptor of the Temporal client. The Temporal SDK compresses
// every request, and the server then every answer, which costs both of them more
// than anything else that they do with a small message. Of what is asked for each
// call only a start has an answer that is always small: that of a poll has a payload.
func compress(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if start, ok := request.(*workflowservice.StartNexusOperationExecutionRequest); ok && proto.Size(start) < worthIt {
		options = append(slices.Clip(options), grpc.UseCompressor(encoding.Identity))
	}
	return invoke(ctx, method, request, reply, conn, options...)
}
