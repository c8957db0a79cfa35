package load_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// relay is a Temporal frontend that passes requests on as bytes, and answers some of
// them as a frontend does that is over its limits. Temporal has no streams.
type relay struct {
	*harness.Temporal

	upstream *grpc.ClientConn

	mu        sync.Mutex
	random    *rand.Rand
	exhausted float64        // of all requests: refused, and not passed on
	lost      float64        // of all requests: passed on, and the answer is lost
	requests  map[string]int // by method
}

func startRelay(t *testing.T, server *harness.Temporal) *relay {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed of the relay: %d", seed)
	upstream, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = upstream.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{
		Temporal: &harness.Temporal{Address: listener.Addr().String()}, upstream: upstream,
		random: rand.New(rand.NewPCG(seed, 0)), requests: map[string]int{},
	}
	s := grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.UnknownServiceHandler(r.handle), grpc.MaxRecvMsgSize(64<<20))
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return r
}

// fail sets what goes wrong from here on, as shares of all requests.
func (r *relay) fail(exhausted, lost float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exhausted, r.lost = exhausted, lost
}

// asked counts the requests until now, by method.
func (r *relay) asked() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.requests)
}

// total counts the requests until now.
func (r *relay) total() (n int) {
	for _, count := range r.asked() {
		n += count
	}
	return n
}

// exhaustedError is what the frontend answers over its limits.
var exhaustedError = serviceerror.ToStatus(&serviceerror.ResourceExhausted{
	Cause: enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, Scope: enumspb.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE, Message: "namespace rate limit exceeded",
}).Err()

func (r *relay) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.Method(stream.Context())
	r.mu.Lock()
	r.requests[method[strings.LastIndexByte(method, '/')+1:]]++
	refuse, lose := r.random.Float64() < r.exhausted, r.random.Float64() < r.lost
	r.mu.Unlock()
	var request, reply []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if refuse {
		return exhaustedError
	}
	if err := r.upstream.Invoke(outgoing(stream.Context()), method, &request, &reply); err != nil {
		return err
	}
	if lose {
		return status.Error(codes.Unavailable, "the connection broke")
	}
	return stream.SendMsg(&reply)
}

// outgoing passes the metadata on; the deadline and the cancellation are the
// context's own.
func outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	return metadata.NewOutgoingContext(ctx, md)
}

// bytesCodec leaves messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("no bytes: %T", v)
	}
	return *b, nil
}

func (bytesCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("no bytes: %T", v)
	}
	*b = append([]byte(nil), data...)
	return nil
}
