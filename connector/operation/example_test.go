package operation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/internal/temporaltest"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// startTemporal starts a Temporal in memory with a worker behind the endpoint
// "greetings".
func startTemporal() (address string, stop func()) {
	temporal := temporaltest.Start()
	temporal.Handle("greetings", "greet", func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
		var who struct{ Name string }
		err := json.Unmarshal(input, &who)
		return contract.Quote("Hello, " + who.Name + "!"), err
	})
	temporal.Handle("greetings", "brood", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return temporal.Address(), temporal.Close
}

// A call is durable from the moment that Start returns. Its result can be read
// by its ID, here or in another process.
func Example() {
	address, stop := startTemporal()
	defer stop()

	temporalClient, err := client.NewLazyClient(client.Options{
		HostPort:     address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
	})
	if err != nil {
		panic(err)
	}
	defer temporalClient.Close()
	ops, err := operation.New(temporalClient, operation.Options{})
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	tool := contract.Tool{Name: "greet", Encoding: contract.EncodingValue}
	id, err := ops.Start(ctx, operation.Call{
		Endpoint: "greetings",
		Service:  "greetings",
		Tool:     tool,
		Params:   contract.CallParams{Arguments: json.RawMessage(`{"name":"Ada"}`)},
		Caller:   operation.Caller{Transport: operation.Stdio, Name: "ada@example"},
	})
	if err != nil {
		panic(err)
	}
	result, err := ops.Result(ctx, id, tool, time.Minute)
	fmt.Println(string(result.JSON()), err)
	// Output: {"content":[{"type":"text","text":"Hello, Ada!"}]} <nil>
}

// The wait has a budget; the call goes on after it. Whoever knows the ID finds
// the call, and cancels it.
func ExampleClient_Result() {
	address, stop := startTemporal()
	defer stop()
	ops, err := dial(address)
	if err != nil {
		panic(err)
	}
	defer ops.Temporal().Close()

	ctx := context.Background()
	tool := contract.Tool{Name: "brood"}
	id, err := ops.Start(ctx, operation.Call{Endpoint: "greetings", Service: "greetings", Tool: tool})
	if err != nil {
		panic(err)
	}
	_, err = ops.Result(ctx, id, tool, 10*time.Millisecond)
	fmt.Println(errors.Is(err, operation.ErrRunning))

	call, err := ops.Describe(ctx, id)
	fmt.Println(call.Tool.Name, call.Arguments, call.Status, err)

	fmt.Println(ops.Cancel(ctx, id, "nobody waits any more"))
	_, err = ops.Result(ctx, id, call.Tool, time.Minute)
	var failure *contract.Failure
	fmt.Println(errors.As(err, &failure), failure.Code)
	// Output:
	// true
	// brood {} running <nil>
	// <nil>
	// true canceled
}

// dial is the first lines of the package example.
func dial(address string) (*operation.Client, error) {
	temporalClient, err := client.NewLazyClient(client.Options{
		HostPort:     address,
		Interceptors: []interceptor.ClientInterceptor{operation.Interceptor()},
	})
	if err != nil {
		return nil, err
	}
	return operation.New(temporalClient, operation.Options{})
}

// A Temporal client without the interceptor could not send the headers of a
// call.
func ExampleNew() {
	temporalClient, err := client.NewLazyClient(client.Options{})
	if err != nil {
		panic(err)
	}
	defer temporalClient.Close()
	_, err = operation.New(temporalClient, operation.Options{})
	fmt.Println(err)
	// Output: operation: the Temporal client lacks operation.Interceptor(); add it to client.Options.Interceptors, since the Go SDK sets Nexus headers in no other way
}

// An ID says whose call it is.
func ExampleCaller_Owns() {
	ada := operation.Caller{Transport: operation.Stdio, Name: "ada@example"}
	fmt.Println(ada.Owner())

	id := "mcp-stdio-stateful-" + ada.Owner() + "-0123456789abcdef0123456789abcdef"
	fmt.Println(ada.Owns(id), operation.Caller{Name: "eve@example"}.Owns(id))
	// Output:
	// d5534a23
	// true false
}
