package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve returns when the server has ended.
func serve(address string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "tasktools", Version: "1"}, nil)
	addTools(server)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true,
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	return (&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}).Serve(l)
}

// add adds a tool that changes nothing.
func add[I any](s *mcp.Server, name, description string, f func(ctx context.Context, req *mcp.CallToolRequest, in I) (*mcp.CallToolResult, error)) {
	tool := &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(s, tool, func(ctx context.Context, req *mcp.CallToolRequest, in I) (*mcp.CallToolResult, any, error) {
		result, err := f(ctx, req, in)
		return result, nil, err
	})
}

func text(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

type nothing struct{}

// jobTime makes a task of a job.
const jobTime = 1500 * time.Millisecond

func addTools(s *mcp.Server) {
	type greeting struct {
		Name string `json:"name"`
	}
	add(s, "greet", "Greets.", func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, error) {
		return text("Hello, %s!", in.Name), nil
	})
	type computation struct {
		Seconds float64 `json:"seconds"`
		Label   string  `json:"label,omitempty"`
	}
	add(s, "slow_compute", "Computes for a while.", func(ctx context.Context, _ *mcp.CallToolRequest, in computation) (*mcp.CallToolResult, error) {
		if err := pause(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
			return nil, err
		}
		return text("Computed %q.", in.Label), nil
	})
	add(s, "failing_job", "Reports an error after a while.", func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		if err := pause(ctx, jobTime); err != nil {
			return nil, err
		}
		result := text("The job has failed on purpose.")
		result.IsError = true
		return result, nil
	})
	add(s, "protocol_error_job", "Ends as a protocol error after a while.", func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		if err := pause(ctx, jobTime); err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The job ends as a protocol error on purpose."}
	})
	addAsking(s)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// addAsking adds the tools that ask for input before they begin.
func addAsking(s *mcp.Server) {
	type file struct {
		Name string `json:"filename"`
	}
	add(s, "confirm_delete", "Deletes a file that is not there, once that is confirmed.", func(_ context.Context, req *mcp.CallToolRequest, in file) (*mcp.CallToolResult, error) {
		if said(req, "confirm", "confirm") != true {
			return ask(map[string]string{"confirm": "confirm"}), nil
		}
		return text("%q is not there.", in.Name), nil
	})
	add(s, "multi_input", "Asks for two confirmations.", func(_ context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		if said(req, "one", "confirm") != true || said(req, "two", "confirm") != true {
			return ask(map[string]string{"one": "confirm", "two": "confirm"}), nil
		}
		return text("It is confirmed twice."), nil
	})
	add(s, "test_tool_with_task", "Asks for a name and greets by it after a while.", func(ctx context.Context, req *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		name := said(req, "user_name", "name")
		if name == nil {
			return ask(map[string]string{"user_name": "name"}), nil
		}
		if err := pause(ctx, jobTime); err != nil {
			return nil, err
		}
		return text("Hello, %v! That took a while.", name), nil
	})
}

// ask is a result that asks for a property under each key.
func ask(properties map[string]string) *mcp.CallToolResult {
	requests := mcp.InputRequestMap{}
	for key, property := range properties {
		requests[key] = &mcp.ElicitParams{Message: "Please tell the " + property + ".", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{property: map[string]any{"type": "string"}},
		}}
	}
	return &mcp.CallToolResult{InputRequests: requests}
}

// said is what a person has put in for a property, nil where there is no answer.
func said(req *mcp.CallToolRequest, key, property string) any {
	answer, ok := req.Params.InputResponses[key].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return nil
	}
	return answer.Content[property]
}
