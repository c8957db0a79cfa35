package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// brokenCodec is a codec whose halves fail, or hang, as a test says.
type brokenCodec struct{ encode, decode atomic.Pointer[func() error] }

func (c *brokenCodec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return payloads, outcome(&c.encode)
}

func (c *brokenCodec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return payloads, outcome(&c.decode)
}

func outcome(half *atomic.Pointer[func() error]) error {
	if f := half.Load(); f != nil {
		return (*f)()
	}
	return nil
}

// codecDown is what a remote codec's client says that nobody answers.
func codecDown() error { return errors.New(`Post "http://codec.internal:8081": connection refused`) }

// codecSilent is what it says of one that does not answer in time, codecStalls of one
// that stops within its answer.
func codecSilent() error {
	return &url.Error{Op: "Post", URL: "http://codec.internal:8081", Err: context.DeadlineExceeded}
}

func codecStalls() error {
	return fmt.Errorf("failed to read response body: %w", context.DeadlineExceeded)
}

func connectCodec(t *testing.T) (*operation.Client, *temporaltest.Frontend, *brokenCodec) {
	t.Helper()
	_, temporal := connect(t)
	codec := &brokenCodec{}
	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), operation.Codec(codec))
	c := dialWith(t, temporal, client.Options{
		DataConverter:    dc,
		FailureConverter: sdktemporal.NewDefaultFailureConverter(sdktemporal.DefaultFailureConverterOptions{DataConverter: dc}),
	})
	return c, temporal, codec
}

// Who cannot read what tells two calls apart does not call them different.
func TestDescribeWithoutCodec(t *testing.T) {
	t.Parallel()

	c, _, codec := connectCodec(t)
	one := call(`{"n":1}`)
	one.IdempotencyKey = "k"
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)

	down := codecDown
	codec.decode.Store(&down)
	_, started := c.Start(t.Context(), one)
	_, described := c.Describe(t.Context(), id)
	d, err := c.Find(t.Context(), id)
	require.NoError(t, err, "its state needs no codec")
	require.Equal(t, operation.Completed, d.Status)
	_, err = c.Read(t.Context(), d, 200*time.Millisecond)
	require.ErrorIs(t, err, operation.ErrRunning)
	for _, err := range []error{started, described} {
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

	var asked atomic.Int32
	backSoon := func() error {
		if asked.Add(1) < 3 {
			return codecDown()
		}
		return nil
	}
	codec.decode.Store(&backSoon)
	result, err := c.Read(t.Context(), d, time.Minute)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(result.Structured()))

	missing := func() error { return converter.ErrEncodingIsNotSupported }
	codec.decode.Store(&missing)
	_, err = c.Describe(t.Context(), id)
	f, ok := errors.AsType[*contract.Failure](err)
	require.True(t, ok, "%v", err)
	require.False(t, f.Retryable)
	require.Contains(t, f.Message, "this program has no codec for it")
	codec.decode.Store(nil)

	again, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, id, again)
}

// A call that has completed has not failed because nobody can read its result now.
func TestResultWithoutCodec(t *testing.T) {
	t.Parallel()

	c, _, codec := connectCodec(t)
	one := call(`{"n":1.0}`)
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	down := codecDown
	codec.decode.Store(&down)
	_, err = c.Result(t.Context(), id, one.Tool, 200*time.Millisecond)
	require.ErrorIs(t, err, operation.ErrRunning)

	var asked atomic.Int32 // by the look before too, which may not have ended
	backSoon := func() error {
		if asked.Add(1) < 3 {
			return codecDown()
		}
		return nil
	}
	codec.decode.Store(&backSoon)
	result, err := c.Result(t.Context(), id, one.Tool, time.Minute)
	require.NoError(t, err)
	require.Equal(t, `{"n":1.0}`, string(result.Structured()))
}

// The answer of a tool that has failed is an answer too, and the details of another
// failure are not.
func TestToolErrorWithoutCodec(t *testing.T) {
	t.Parallel()

	c, temporal, codec := connectCodec(t)
	answer := resultmap.ToolError(contract.TextResult("no such room", true).WithMeta("n", json.RawMessage("1.0")))
	protocol := &contract.Failure{Code: contract.CodeProtocolError, Message: "no", Details: json.RawMessage(`{"code":-32042,"message":"no","data":1.0}`)}
	down := codecDown
	for name, of := range map[string]struct {
		err  error
		want *contract.Failure
	}{
		"async":    {resultmap.ApplicationError(answer), answer},
		"sync":     {resultmap.OperationError(answer), answer},
		"protocol": {resultmap.OperationError(protocol), protocol},
	} {
		temporal.Handle(service, tool, func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, of.err })
		one := call(`{}`)
		id, err := c.Start(t.Context(), one)
		require.NoError(t, err)
		codec.decode.Store(&down)
		_, err = c.Result(t.Context(), id, one.Tool, time.Second)
		require.ErrorIs(t, err, operation.ErrRunning, name)
		codec.decode.Store(nil)
		_, err = c.Result(t.Context(), id, one.Tool, time.Minute)
		f, ok := errors.AsType[*contract.Failure](err)
		require.True(t, ok, "%v", err)
		require.JSONEq(t, string(of.want.Result().JSON()), string(f.Result().JSON()), name)
		require.Equal(t, string(of.want.Details), string(f.Details), name)
	}

	temporal.Handle(service, tool, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, sdktemporal.NewNonRetryableApplicationError("no stock", "OutOfStock", nil, "of one's own")
	})
	one := call(`{}`)
	id, err := c.Start(t.Context(), one)
	require.NoError(t, err)
	codec.decode.Store(&down)
	_, err = c.Result(t.Context(), id, one.Tool, time.Minute)
	f, ok := errors.AsType[*contract.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "no stock", f.Message)
}

// What the codec says is the operator's: it names addresses.
func TestStartWithoutCodec(t *testing.T) {
	t.Parallel()

	c, temporal, codec := connectCodec(t)
	temporal.Serve(service, `{"tools":[]}`, nil)
	down := codecDown
	codec.decode.Store(&down)
	_, listed := c.ListTools(t.Context(), "e", service, "", 2*time.Second)
	codec.encode.Store(&down)
	_, started := c.Start(t.Context(), call(`{}`))
	_, asked := c.ListTools(t.Context(), "e", service, "", time.Minute)
	for want, err := range map[string]error{"cannot decode the answer": listed, "The call cannot be sent to Temporal": started, `(endpoint "e"`: asked} {
		f, ok := errors.AsType[*contract.Failure](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, contract.CodeUnavailable, f.Code)
		require.True(t, f.Retryable)
		require.Contains(t, f.Message, want)
		require.NotContains(t, f.Message, "codec.internal")
		require.NotErrorIs(t, err, operation.ErrNoAnswer, "the worker is there")
	}
	for name, says := range map[string]func() error{"down": codecDown, "silent": codecSilent, "stalls": codecStalls} {
		codec.encode.Store(&says)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := c.Start(ctx, call(`{}`))
		require.NoError(t, ctx.Err(), name)
		cancel()
		f := resultmap.FromError(err)
		require.Contains(t, f.Message, "The call cannot be sent to Temporal", name)
		require.NotContains(t, f.Message, "recorded", name)
	}
	require.Empty(t, temporal.Operations(service))
}

// Where one try may have arrived, the next that cannot be sent says nothing of the call.
func TestACodecThatFailsAtTheSecondTry(t *testing.T) {
	t.Parallel()

	c, temporal, codec := connectCodec(t)
	_, err := c.Start(t.Context(), call(`{}`)) // the connection is there
	require.NoError(t, err)
	temporal.SetDown(serviceerror.NewDeadlineExceeded("away")) // the SDK does not try it again by itself
	secondFails := func() error {
		if temporal.Calls("StartNexusOperationExecution") > 1 {
			return codecDown()
		}
		return nil
	}
	codec.encode.Store(&secondFails)
	id, err := c.Start(t.Context(), call(`{}`))
	f := resultmap.FromError(err)
	require.Equal(t, contract.CodeUnavailable, f.Code)
	require.Equal(t, `Temporal did not confirm the call (endpoint "e", service "tools"); the log of this program says why. `+
		"The call may have been recorded all the same: its operation is "+id+".", f.Message)
}

// What nobody has marked as the error of a codec may be that of an answer.
func TestAnErrorOfNobody(t *testing.T) {
	t.Parallel()

	_, temporal := connect(t)
	c := dialOperations(t, temporal, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if err := invoke(ctx, method, req, reply, conn, options...); err != nil || !strings.HasSuffix(method, "/StartNexusOperationExecution") {
				return err
			}
			return status.Error(codes.OutOfRange, "http://proxy.internal broke off") // the SDK does not try it again by itself
		}))
	id, err := c.Start(t.Context(), call(`{}`))
	require.Len(t, temporal.Operations(service), 1)
	f := resultmap.FromError(err)
	require.Equal(t, `Temporal did not confirm the call (endpoint "e", service "tools"); the log of this program says why. `+
		"The call may have been recorded all the same: its operation is "+id+".", f.Message)
}

// A codec that hangs holds up who needs it, until their time is up, and nobody else.
func TestACodecThatHangs(t *testing.T) {
	t.Parallel()

	c, temporal, codec := connectCodec(t)
	other := dialOperations(t, temporal)
	one := call(`{"n":1}`)
	ids := make([]string, 130) // more than polls are open at once
	for i := range ids {
		var err error
		ids[i], err = c.Start(t.Context(), one)
		require.NoError(t, err)
		_, err = other.Result(t.Context(), ids[i], one.Tool, time.Minute)
		require.NoError(t, err)
	}
	temporal.Handle(service, "slow", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	slow := one
	slow.Tool.Name = "slow"
	running, err := c.Start(t.Context(), slow)
	require.NoError(t, err)

	released := make(chan struct{})
	defer close(released)
	hang := func() error { <-released; return nil }
	codec.decode.Store(&hang)
	codec.encode.Store(&hang)
	ended := make(chan error, len(ids))
	for _, id := range ids {
		go func() {
			_, err := c.Result(t.Context(), id, one.Tool, 300*time.Millisecond)
			ended <- err
		}()
	}
	for range ids {
		require.ErrorIs(t, <-ended, operation.ErrRunning)
	}
	require.NoError(t, c.Cancel(t.Context(), running, "enough"))
	_, err = c.Result(t.Context(), running, slow.Tool, time.Minute)
	f, ok := errors.AsType[*contract.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, contract.CodeCanceled, f.Code, "a poll is free for it")

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = c.Describe(ctx, ids[0])
	require.Error(t, err)
	_, err = c.Start(ctx, one)
	require.Error(t, err)
	_, err = c.ListTools(ctx, "e", service, "", time.Minute)
	require.Error(t, err)
}

// contextual is a codec that says for what it encodes.
type contextual struct {
	converter.PayloadCodec

	of string
}

func (c contextual) WithSerializationContext(ctx converter.SerializationContext) converter.PayloadCodec {
	return contextual{c.PayloadCodec, fmt.Sprintf("%T", ctx)}
}

func (c contextual) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("for " + c.of)
}

// A marked codec is told what it encodes for, as the codec in it would be.
func TestAMarkedCodecHasItsContext(t *testing.T) {
	t.Parallel()

	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), operation.Codec(contextual{}))
	of := converter.WorkflowSerializationContext{Namespace: "n"}
	_, err := converter.WithDataConverterSerializationContext(dc, of).ToPayload("x")
	require.EqualError(t, err, fmt.Sprintf("for %T", of))

	plain := operation.Codec(&brokenCodec{})
	require.Same(t, plain, plain.(converter.PayloadCodecWithSerializationContext).WithSerializationContext(of))
}
