package cli

import (
	"context"
	"slices"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
)

// worthIt is the size in bytes from which on such a request is compressed.
const worthIt = 4 << 10

// smallAnswer are the requests that the Worker asks for each call and whose
// answers are small whatever was asked. A poll is none: its answer has a payload.
var smallAnswer = map[string]bool{
	workflowservice.WorkflowService_StartActivityExecution_FullMethodName:       true,
	workflowservice.WorkflowService_RespondNexusTaskCompleted_FullMethodName:    true,
	workflowservice.WorkflowService_RespondActivityTaskCompleted_FullMethodName: true,
	workflowservice.WorkflowService_RecordActivityTaskHeartbeat_FullMethodName:  true,
}

// compress is a gRPC interceptor of the Temporal client. The Temporal SDK compresses
// every request, and the server then every answer, which costs both of them more
// than anything else that they do with a small message.
func compress(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if m, ok := request.(proto.Message); ok && smallAnswer[method] && proto.Size(m) < worthIt {
		options = append(slices.Clip(options), grpc.UseCompressor(encoding.Identity))
	}
	return invoke(ctx, method, request, reply, conn, options...)
}
