package operation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
)

// bubble is a Temporal client without a network, for tests in a bubble: it knows
// when operations close, and counts the polls.
type bubble struct {
	client.Client
	outbound interceptor.ClientOutboundInterceptor

	mu         sync.Mutex
	closed     map[string]chan struct{}
	closedAt   map[string]time.Time
	open, most int
	polls      int
	deadlines  int
	looks      int
	lists      int
	listErr    error
	pollErr    error
}

func newBubble(t *testing.T) (*bubble, *operation.Client) {
	t.Helper()
	b := &bubble{closed: map[string]chan struct{}{}, closedAt: map[string]time.Time{}}
	b.outbound = operation.Interceptor().InterceptClient(&bubbleOutbound{b: b})
	c, err := operation.New(b, operation.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { <-time.After(time.Second) }) // what looks after parked waits sees that there are none
	return b, c
}

type bubbleOutbound struct {
	interceptor.ClientOutboundInterceptorBase
	b *bubble
}

func (o *bubbleOutbound) GetNexusOperationHandle(in *interceptor.ClientGetNexusOperationHandleInput) client.NexusOperationHandle {
	return bubbleHandle{b: o.b, id: in.OperationID}
}

func (b *bubble) GetNexusOperationHandle(o client.GetNexusOperationHandleOptions) client.NexusOperationHandle {
	return b.outbound.GetNexusOperationHandle(&interceptor.ClientGetNexusOperationHandleInput{OperationID: o.OperationID})
}

// end is the channel that closes with the operation.
func (b *bubble) end(id string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed[id] == nil {
		b.closed[id] = make(chan struct{})
	}
	return b.closed[id]
}

func (b *bubble) close(id string) {
	end := b.end(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closedAt[id] = time.Now()
	close(end)
}

func (b *bubble) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *bubble) ListNexusOperations(context.Context, client.ListNexusOperationsOptions) (client.ListNexusOperationsResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists++
	err := b.listErr
	var recent []*client.NexusOperationMetadata
	for id, at := range b.closedAt {
		if time.Since(at) < 10*time.Second {
			recent = append(recent, &client.NexusOperationMetadata{OperationID: id, CloseTime: at})
		}
	}
	return client.ListNexusOperationsResult{Results: func(yield func(*client.NexusOperationMetadata, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, m := range recent {
			if !yield(m, nil) {
				return
			}
		}
	}}, nil
}

type bubbleHandle struct {
	client.NexusOperationHandle
	b  *bubble
	id string
}

// Get decodes without a poll where there is something to decode to: the SDK's handle
// has the outcome by then.
func (h bubbleHandle) Get(ctx context.Context, value any) error {
	end := h.b.end(h.id)
	if value != nil {
		*value.(*converter.RawValue) = resultmap.RawValue(contract.Quote(h.id))
		return nil
	}
	_, hasDeadline := ctx.Deadline()
	h.b.mu.Lock()
	h.b.polls++
	h.b.open++
	h.b.most = max(h.b.most, h.b.open)
	if hasDeadline {
		h.b.deadlines++
	}
	err := h.b.pollErr
	h.b.mu.Unlock()
	defer h.b.set(func() { h.b.open-- })
	if err != nil {
		return err
	}
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return serviceerror.NewCanceled(ctx.Err().Error())
	}
}

func (h bubbleHandle) Describe(context.Context, client.DescribeNexusOperationOptions) (*client.NexusOperationExecutionDescription, error) {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.looks++
	d := &client.NexusOperationExecutionDescription{}
	d.Status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_RUNNING
	if !h.b.closedAt[h.id].IsZero() {
		d.Status = enumspb.NEXUS_OPERATION_EXECUTION_STATUS_COMPLETED
	}
	return d, nil
}

// waiting starts n waits; the returned function counts those that ended well.
func waiting(ctx context.Context, c *operation.Client, n int) (ended func() int, all *sync.WaitGroup) {
	var mu sync.Mutex
	count := 0
	all = &sync.WaitGroup{}
	for i := range n {
		all.Go(func() {
			id := fmt.Sprintf("op-%d", i)
			result, err := c.Result(ctx, id, contract.Tool{}, 0)
			if err != nil {
				return
			}
			text, _ := result.Text()
			mu.Lock()
			defer mu.Unlock()
			if text == id {
				count++
			}
		})
	}
	synctest.Wait()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}, all
}

// A deadline on the poll would make the server answer empty a thousand times.
func TestOneWaitIsOnePoll(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := c.Result(ctx, "op", contract.Tool{}, 30*time.Second)
		require.ErrorIs(t, err, operation.ErrRunning)
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, 1, b.polls)
		require.Zero(t, b.deadlines)
	})
}

func TestTheCallersCauseComesBack(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		_, c := newBubble(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		_, err := c.Result(ctx, "op", contract.Tool{}, time.Minute)
		require.ErrorIs(t, err, gone)
	})
}

// An overloaded Temporal, or one that is away, is waited for.
func TestTroubleOnTheWayIsNoFailure(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		b.set(func() {
			b.pollErr = serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "too many")
		})
		b.close("op")
		time.AfterFunc(time.Minute, func() { b.set(func() { b.pollErr = nil }) })
		result, err := c.Result(t.Context(), "op", contract.Tool{}, 2*time.Minute)
		require.NoError(t, err)
		text, _ := result.Text()
		require.Equal(t, "op", text)
		require.Less(t, b.polls, 60, "it pauses longer each time")

		b.set(func() { b.pollErr = serviceerror.NewNotFound("no") })
		_, err = c.Result(t.Context(), "nobody", contract.Tool{}, time.Minute)
		var failure *contract.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, contract.CodeInvalid, failure.Code)
	})
}

func TestOpenPollsAreBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		const n = 1000
		ended, all := waiting(t.Context(), c, n)
		require.Equal(t, 128, b.open)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 128, b.most)
		require.Zero(t, ended())

		// Whichever they are, those that close are found.
		for i := range n {
			if i%10 == 0 {
				b.close(fmt.Sprintf("op-%d", i))
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, n/10, ended())
		for i := range n {
			if i%10 != 0 {
				b.close(fmt.Sprintf("op-%d", i))
			}
		}
		all.Wait()
		synctest.Wait()
		require.Equal(t, n, ended())
		require.LessOrEqual(t, b.most, 2*128)
		require.Equal(t, n-128, b.looks)
	})
}

func TestWaitsTakeTurnsWithoutVisibility(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		b.listErr = errors.New("no visibility")
		const n = 300
		ctx, cancel := context.WithCancel(t.Context())
		ended, all := waiting(ctx, c, n)
		for i := range n {
			if i%2 == 0 {
				b.close(fmt.Sprintf("op-%d", i))
			}
		}
		time.Sleep(time.Minute) // five turns are enough for everybody
		synctest.Wait()
		require.Equal(t, n/2, ended())
		require.LessOrEqual(t, b.most, 128)
		cancel()
		all.Wait()
		synctest.Wait()
		require.Zero(t, b.open)
	})
}

// A result that is there does not stand in line behind calls that go on.
func TestAClosedCallIsReadAtOnce(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		ctx, cancel := context.WithCancel(t.Context())
		b.close("old")
		time.Sleep(time.Hour) // visibility is asked for the latest only
		_, all := waiting(ctx, c, 1000)
		began := time.Now()
		_, err := c.Result(ctx, "old", contract.Tool{}, time.Minute)
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		cancel()
		all.Wait()
	})
}

func TestCancelledWaitsAreForgotten(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, c := newBubble(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended, all := waiting(ctx, c, 500)
		time.Sleep(time.Second)
		cancel()
		all.Wait()
		require.Zero(t, ended())
		time.Sleep(time.Second)
		synctest.Wait()
		lists := b.lists
		require.Positive(t, lists)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, lists, b.lists, "nobody is parked")
		require.Zero(t, b.open)
	})
}
