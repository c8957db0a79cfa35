package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tasksExtension is the identifier of the tasks extension (SEP-2663). A task is
// the operation, the task ID its ID.
const tasksExtension = "io.modelcontextprotocol/tasks"

// taskPollInterval is how often a client should ask for a task.
const taskPollInterval = time.Second

// Task states of the extension.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskFailed    = "failed" // for JSON-RPC errors only
	taskCancelled = "cancelled"
)

type taskParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
}

func (s *Server) addTaskMethods() error {
	if s.options.DisableTasks {
		return nil
	}
	return errors.Join(
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/get", s.getTask),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/update", s.updateTask),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/cancel", s.cancelTask),
	)
}

// wantsTask reports whether the client declared the tasks extension.
func (s *Server) wantsTask(req *mcp.CallToolRequest) bool {
	extensions, _ := declared(req)["extensions"].(map[string]any)
	_, tasks := extensions[tasksExtension]
	return tasks && !s.options.DisableTasks
}

func declaresTasks(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[tasksExtension]
	return ok
}

// checkTaskRequest refuses clients that did not declare the extension, and IDs
// that are not of the caller's own calls.
func (s *Server) checkTaskRequest(req *mcp.ServerRequest[*taskParams]) error {
	if !declaresTasks(req.ClientCapabilities()) {
		return &jsonrpc.Error{
			Code:    mcp.CodeMissingRequiredClientCapabilities,
			Message: "The client did not declare the tasks extension.",
			Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
		}
	}
	if req.Params == nil || req.Params.TaskID == "" {
		return invalidParams("taskId: missing")
	}
	if !s.caller(req.Extra).Owns(req.Params.TaskID) {
		return unknownTask(req.Params.TaskID)
	}
	return nil
}

func unknownTask(id string) error {
	return invalidParams("There is no task %q of this caller: the ID is wrong, or its result has expired.", id)
}

// newTask is the answer to a call that goes on as a task. It does not depend on
// Temporal: the client must get the ID.
func (s *Server) newTask(ctx context.Context, id string, began time.Time) (mcp.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskPollInterval)
	defer cancel()
	d, err := s.ops.Describe(ctx, id)
	if err != nil {
		d = operation.Description{ID: id, Started: began}
	}
	o := s.task(ctx, d, taskWorking)
	o.Set("resultType", contract.Quote("task"))
	return newResult(o, true), nil
}

// task is the task object of an operation.
func (s *Server) task(ctx context.Context, d operation.Description, status string) contract.Object {
	updated := d.Started
	if !d.Closed.IsZero() {
		updated = d.Closed
	}
	var o contract.Object
	o.Set("taskId", contract.Quote(d.ID))
	o.Set("status", contract.Quote(status))
	if d.CancelRequested && status == taskWorking {
		o.Set("statusMessage", contract.Quote("The cancellation was requested."))
	}
	o.Set("createdAt", contract.Quote(d.Started.UTC().Format(time.RFC3339Nano)))
	o.Set("lastUpdatedAt", contract.Quote(updated.UTC().Format(time.RFC3339Nano)))
	o.Set("ttlMs", fmt.Appendf(nil, "%d", s.taskRetention(ctx).Milliseconds()))
	o.Set("pollIntervalMs", fmt.Appendf(nil, "%d", taskPollInterval.Milliseconds()))
	return o
}

func (s *Server) getTask(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*rawResult, error) {
	began, budget := time.Now(), s.look(0)
	d, err := s.findTask(ctx, p.TaskID, budget)
	if err != nil {
		return nil, err
	}
	if d.Status == operation.Running {
		return newResult(s.task(ctx, d, taskWorking), true), nil
	}
	result, err := s.read(ctx, d, budget-time.Since(began))
	if errors.Is(err, operation.ErrRunning) {
		return newResult(s.task(ctx, d, taskWorking), true), nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	o, err := s.endedTask(ctx, d, result, resultmap.FromError(err))
	if err != nil {
		return nil, internal(err)
	}
	return newResult(o, true), nil
}

// endedTask is the task object with the result of the call, or its failure.
func (s *Server) endedTask(ctx context.Context, d operation.Description, result contract.Result, f *contract.Failure) (contract.Object, error) {
	switch {
	case f == nil:
		result = Presentable(result)
	case f.Code == contract.CodeCanceled:
		return s.task(ctx, d, taskCancelled), nil
	case f.Protocol() != nil:
		o := s.task(ctx, d, taskFailed)
		o.Set("statusMessage", contract.Quote(f.Message))
		o.Set("error", f.Protocol().JSON())
		return o, nil //nolint:nilerr // the error is part of the task
	default:
		result = errorResult(f, d.ID)
	}
	inline, err := resultFor(firstModern, result)
	if err != nil {
		return contract.Object{}, err
	}
	o := s.task(ctx, d, taskCompleted)
	o.Set("result", inline.object.JSON())
	return o, nil
}

// updateTask answers input requests. Nothing asks for input here, so there is
// nothing to update.
func (s *Server) updateTask(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*rawResult, error) {
	if _, err := s.findTask(ctx, p.TaskID, s.look(0)); err != nil {
		return nil, err
	}
	return nil, invalidParams("The task %q asks for no input, so there is nothing to update.", p.TaskID)
}

func (s *Server) cancelTask(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*rawResult, error) {
	ctx, stop := s.within(ctx, s.options.WaitBudget)
	defer stop()
	if err := s.ops.Cancel(ctx, p.TaskID, "tasks/cancel by the MCP client"); err != nil {
		return nil, taskError(p.TaskID, err)
	}
	return newResult(contract.Object{}, true), nil
}

func (s *Server) findTask(ctx context.Context, id string, budget time.Duration) (operation.Description, error) {
	d, err := s.find(ctx, id, budget)
	if err != nil {
		return d, taskError(id, err)
	}
	return d, nil
}

func taskError(id string, err error) error {
	if f := resultmap.FromError(err); f.Code == contract.CodeInvalid {
		return unknownTask(id)
	}
	return internal(err)
}

func internal(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: resultmap.FromError(err).Message}
}
