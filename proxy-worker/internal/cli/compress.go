package cli

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"
)

// worthIt is the size in bytes from which on a request is compressed.
const worthIt = 4 << 10

// compress is a gRPC interceptor of the Temporal client. The Temporal SDK compresses
// every request, and the server then every answer, which costs both of them more
// than anything else that they do with a small message. So the answers to small
// requests, results among them, come as they are, as they did before the SDK
// compressed.
func compress(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if m, ok := request.(proto.Message); ok && proto.Size(m) < worthIt {
		options = append(slices.Clip(options), grpc.UseCompressor(encoding.Identity))
	}
	return invoke(ctx, method, request, reply, conn, options...)
}
