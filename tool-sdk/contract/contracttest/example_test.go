package contracttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// The scripted service has one operation for each row of the contract's tables.
func ExampleNewService() {
	service := contracttest.NewService("scripted")
	fmt.Println(service.Name, service.Operation("protocol_error").Name())
	// Output: scripted protocol_error
}

var (
	temporalClient client.Client
	temporalWorker worker.Worker
	t              *testing.T
)

// A service checks itself in a test of its own, with a Worker that runs behind a
// Nexus endpoint.
func ExampleService() {
	_ = func() { // func TestContract(t *testing.T)
		contracttest.Service(t, contracttest.NexusCall(temporalClient, "my-endpoint", "my-tools", 10*time.Second))
	}
	fmt.Println("go test -run TestContract")
	// Output: go test -run TestContract
}

// A caller checks itself against the scripted service.
func ExampleCaller() {
	_ = func() { // func TestContract(t *testing.T)
		temporalWorker.RegisterNexusService(contracttest.NewService("scripted"))
		contracttest.Caller(t, func(_ context.Context, tool string, arguments json.RawMessage) contracttest.Outcome {
			answer := myCaller(tool, arguments)
			return contracttest.Outcome{Result: answer}
		})
	}
	fmt.Println("go test -run TestContract")
	// Output: go test -run TestContract
}

func myCaller(string, json.RawMessage) json.RawMessage { return nil }

// NexusCall makes calls for [contracttest.Service], and for tests that look at
// one operation.
func ExampleNexusCall() {
	_ = func(ctx context.Context) {
		call := contracttest.NexusCall(temporalClient, "my-endpoint", "my-tools", 10*time.Second)
		output, err := call(ctx, "look_up", json.RawMessage(`{"key":7}`))
		fmt.Println(string(output), err)
	}
	fmt.Println("bytes in, bytes out")
	// Output: bytes in, bytes out
}
