package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is an MCP host with one connector as a child process, over stdio.
type host struct {
	session   *mcp.ClientSession
	connector *stage.Child
	started   chan string // operation IDs, as the first progress of each call tells them
}

// waitBudget is the connector's: a host with no patience makes a short story.
const waitBudget = 3 * time.Second

// open starts a connector and connects to it as a host does.
func (s *story) open(ctx context.Context) (*host, error) {
	child, err := s.stage.Command("connector", s.stage.Program("durable-mcp-connector"),
		[]string{"--service", "lucky-number", "--service", "weather", "--service", "almanac", "--wait-budget", waitBudget.String()}, s.temporal.Env())
	if err != nil {
		return nil, err
	}
	h := &host{connector: child, started: make(chan string, 16)}
	c := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			if id, ok := req.Params.Meta[contract.MetaOperationID].(string); ok {
				select {
				case h.started <- id:
				default:
				}
			}
		},
	})
	h.session, err = c.Connect(ctx, &mcp.CommandTransport{Command: child.Cmd, TerminateDuration: time.Second}, nil)
	if err != nil {
		return nil, fmt.Errorf("the connector does not answer: %w; its log is %s", err, child.Log)
	}
	return h, nil
}

// leave ends the connector as a host does that quits. It works on a nil host.
func (h *host) leave() {
	if h != nil {
		_ = h.session.Close()
	}
}

// arguments of a tool.
type arguments map[string]any

func (a arguments) String() string {
	data, _ := json.Marshal(a)
	return string(data)
}

// answer is how a call ended.
type answer struct {
	result *mcp.CallToolResult
	err    error
}

// ask calls a tool and returns what comes first, which may say: still running.
func (h *host) ask(ctx context.Context, tool string, args arguments, meta mcp.Meta) answer {
	result, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args, Meta: meta})
	if err != nil {
		err = fmt.Errorf("%s: %w", tool, err)
	}
	return answer{result, err}
}

// settle returns the answer, or what comes of it where it says: still running. A
// result may report an error.
func (h *host) settle(ctx context.Context, a answer) (*mcp.CallToolResult, error) {
	for a.err == nil {
		id, running := runningID(a.result)
		if !running {
			return a.result, nil
		}
		a = h.ask(ctx, contract.ToolGetOperationResult, arguments{"operation_id": id, "wait_seconds": waitBudget.Seconds()}, nil)
	}
	return nil, a.err
}

// call calls a tool and waits as long as it takes. A result that reports an error
// is an error.
func (h *host) call(ctx context.Context, tool string, args arguments, meta mcp.Meta) (*mcp.CallToolResult, error) {
	result, err := h.settle(ctx, h.ask(ctx, tool, args, meta))
	if err == nil && result.IsError {
		err = fmt.Errorf("%s: %s", tool, text(result))
	}
	return result, err
}

// result reads the result of an operation by its ID.
func (h *host) result(ctx context.Context, id string) (*mcp.CallToolResult, error) {
	return h.call(ctx, contract.ToolGetOperationResult, arguments{"operation_id": id}, nil)
}

// begin calls a tool in the background. It returns when the connector has told the
// operation's ID; the call's end is sent on the channel.
func (h *host) begin(ctx context.Context, tool string, args arguments) (id string, ended <-chan answer, err error) {
	for len(h.started) > 0 {
		<-h.started // of an earlier call
	}
	done := make(chan answer, 1)
	go func() {
		done <- h.ask(ctx, tool, args, mcp.Meta{"progressToken": "demo"})
	}()
	select {
	case id = <-h.started:
		return id, done, nil
	case a := <-done:
		return "", nil, fmt.Errorf("the call ended before it told its operation's ID: %w", a.err)
	case <-ctx.Done():
		return "", nil, ctx.Err()
	}
}

// operation is a call as list_operations shows it.
type operation struct {
	ID        string `json:"operation_id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Status    string `json:"status"`
}

// operations lists this host's latest calls, newest first.
func (h *host) operations(ctx context.Context, args arguments) ([]operation, error) {
	result, err := h.call(ctx, contract.ToolListOperations, args, nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Operations []operation }
	return list.Operations, decode(result, &list)
}

// runningID returns the operation ID of a result that says: still running.
func runningID(result *mcp.CallToolResult) (id string, running bool) {
	var state struct {
		Status string `json:"status"`
		ID     string `json:"operation_id"`
	}
	_ = decode(result, &state)
	return state.ID, state.Status == "running" && state.ID != ""
}

// decode decodes the structured content of a result.
func decode(result *mcp.CallToolResult, v any) error {
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the result is not what was expected: %w: %s", err, data)
	}
	return nil
}

func text(result *mcp.CallToolResult) string {
	var parts []string
	for _, block := range result.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}
