package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The poll tools are how a model reaches a call that outlived its request.

// pollTool returns the result as the call itself has it: it is for the one who
// answers to bring it into the form of a client's revision.
type pollTool func(context.Context, *mcp.CallToolRequest) (contract.Result, error)

// defaultPollWait is how long get_operation_result waits where the caller does
// not say.
const defaultPollWait = 10 * time.Second

func (s *Server) addPollTools() {
	yes, no := true, false
	for _, t := range []*mcp.Tool{{
		Name:  contract.ToolGetOperationResult,
		Title: "Get the result of a running call",
		Description: "Returns the result of a tool call that was answered as still running, exactly as the call itself would have returned it. " +
			"If it is not there yet, the answer says so: call this again. Works after restarts too, until the result expires.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no},
		InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"operation_id":{"type":"string","description":"The operation ID of the call."},`+
			`"wait_seconds":{"type":"number","minimum":0,"maximum":%g,"description":"How long to wait for the result, in seconds. Defaults to %g."}},`+
			`"required":["operation_id"]}`, s.options.WaitBudget.Seconds(), min(defaultPollWait, s.options.WaitBudget).Seconds())),
	}, {
		Name:  contract.ToolCancelOperation,
		Title: "Cancel a running call",
		Description: "Requests the cancellation of a tool call. It returns once the request is recorded; what the tool has done already is not undone. " +
			"To see how the call ended, get its result.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"operation_id":{"type":"string","description":"The operation ID of the call."}},"required":["operation_id"]}`),
	}, {
		Name:  contract.ToolListOperations,
		Title: "List your latest calls",
		Description: "Lists your latest tool calls, newest first, with their operation IDs, arguments in short and states. " +
			"Use it to find a call whose answer was lost, instead of repeating the call. " +
			"A call that has just started may take some seconds to show: list again before you take it for lost.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no},
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"tool":{"type":"string","description":"Only calls of this tool."},` +
			`"status":{"type":"string","enum":["running","completed","failed","canceled","terminated","timed_out"],"description":"Only calls in this state."},` +
			`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"The most calls to list. Defaults to 20."}}}`),
	}} {
		s.mcp.AddTool(t, unreachable)
	}
}

// pollTool returns the poll tool that the request calls, if it does.
func (s *Server) pollTool(req *mcp.CallToolRequest) (pollTool, bool) {
	if s.options.HidePollTools {
		return nil, false
	}
	switch req.Params.Name {
	case contract.ToolGetOperationResult:
		return s.getOperationResult, true
	case contract.ToolCancelOperation:
		return s.cancelOperation, true
	case contract.ToolListOperations:
		if mayList(s.caller(req.Extra)) {
			return s.listOperations, true
		}
	}
	return nil, false
}

// PollTool calls a poll tool for the stdio caller, without an MCP client. ok is
// false where name is none.
func (s *Server) PollTool(ctx context.Context, name string, arguments json.RawMessage) (result contract.Result, ok bool, err error) {
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: name, Arguments: arguments}}
	tool, ok := s.pollTool(req)
	if !ok {
		return contract.Result{}, false, nil
	}
	result, err = tool(ctx, req)
	return result, true, err
}

// mayList reports whether the caller can list calls: only its own, so one that
// nobody can tell from another has none.
func mayList(c operation.Caller) bool { return c.Name != "" }

func (s *Server) getOperationResult(ctx context.Context, req *mcp.CallToolRequest) (contract.Result, error) {
	var args struct {
		OperationID string   `json:"operation_id"`
		WaitSeconds *float64 `json:"wait_seconds"`
	}
	if problem := s.ownOperation(req, &args, &args.OperationID); problem != "" {
		return refuse("%s", problem)
	}
	wait := defaultPollWait
	if args.WaitSeconds != nil {
		if *args.WaitSeconds < 0 {
			return refuse("wait_seconds: %g is negative.", *args.WaitSeconds)
		}
		wait = time.Duration(min(*args.WaitSeconds, s.options.WaitBudget.Seconds()) * float64(time.Second))
	}
	openStream(ctx)
	began, budget := time.Now(), s.look(wait)
	d, err := s.find(ctx, args.OperationID, budget)
	if err != nil {
		return s.failure(ctx, req, args.OperationID, err)
	}
	defer s.progress(ctx, req, d.ID, time.Now())()
	left := budget - time.Since(began)
	if d.Status == operation.Running {
		left = min(wait, left)
	}
	result, err := s.read(ctx, d, left)
	switch {
	case err == nil:
		return Presentable(result), nil
	case errors.Is(err, operation.ErrRunning):
		return s.Running(d.ID), nil
	case ctx.Err() != nil:
		return contract.Result{}, err // only this look was cancelled, not the call
	}
	return s.failure(ctx, req, d.ID, err)
}

func (s *Server) cancelOperation(ctx context.Context, req *mcp.CallToolRequest) (contract.Result, error) {
	var args struct {
		OperationID string `json:"operation_id"`
	}
	if problem := s.ownOperation(req, &args, &args.OperationID); problem != "" {
		return refuse("%s", problem)
	}
	ctx, stop := s.within(ctx, s.options.WaitBudget)
	defer stop()
	d, err := s.ops.Find(ctx, args.OperationID)
	if err != nil {
		return s.failure(ctx, req, args.OperationID, err)
	}
	if d.Status != operation.Running {
		return stateResult(fmt.Sprintf("The call has ended already: %s. Nothing was cancelled.", d.Status), d.ID, string(d.Status)), nil
	}
	if err := s.ops.Cancel(ctx, d.ID, "cancel_operation by the MCP client"); err != nil {
		return s.failure(ctx, req, d.ID, err)
	}
	return stateResult(fmt.Sprintf("The cancellation of %s is recorded. Call %s to see how it ended.",
		d.ID, contract.ToolGetOperationResult), d.ID, "cancel_requested"), nil
}

// ownOperation decodes the arguments, and says what is wrong with them unless they name
// an operation of the caller's own.
func (s *Server) ownOperation(req *mcp.CallToolRequest, args any, id *string) (problem string) {
	if err := decodeArguments(req, args); err != nil {
		return err.Error()
	}
	switch {
	case *id == "":
		return "operation_id: missing."
	case !s.caller(req.Extra).Owns(*id):
		return fmt.Sprintf("%q is not the ID of a call of this caller.", *id)
	}
	return ""
}

// lookTime is how long a look at a call may take at least, however short a wait for
// its end was asked for: Temporal or a codec may be away for a moment.
const lookTime = 5 * time.Second

// look bounds a look at a call.
func (s *Server) look(wait time.Duration) time.Duration {
	return min(s.options.WaitBudget, max(wait, lookTime))
}

// find finds an operation. A Temporal that is away is waited for within the budget.
func (s *Server) find(ctx context.Context, id string, budget time.Duration) (operation.Description, error) {
	ctx, stop := s.within(ctx, budget)
	defer stop()
	return s.ops.Find(ctx, id)
}

// read is operation.Read that ends as running when the server drains. The result of
// what has ended is there, so a server that drains still gets it, within the last word.
func (s *Server) read(ctx context.Context, d operation.Description, budget time.Duration) (contract.Result, error) {
	after := lastWord
	if d.Status == operation.Running {
		after = 0
	}
	ctx, stop := s.untilDrained(ctx, after)
	defer stop()
	return s.ops.Read(ctx, d, max(budget, time.Millisecond))
}

func (s *Server) listOperations(ctx context.Context, req *mcp.CallToolRequest) (contract.Result, error) {
	var args struct {
		Tool   string           `json:"tool"`
		Status operation.Status `json:"status"`
		Limit  *int             `json:"limit"`
	}
	if err := decodeArguments(req, &args); err != nil {
		return refuse("%v", err)
	}
	ctx, stop := s.within(ctx, s.options.WaitBudget)
	defer stop()
	filter := operation.Filter{Status: args.Status}
	if args.Status != "" && !slices.Contains(operation.Statuses(), args.Status) {
		return refuse("status: %q is none of %v.", args.Status, operation.Statuses())
	}
	if args.Limit != nil {
		if *args.Limit < 1 {
			return refuse("limit: %d is less than 1.", *args.Limit)
		}
		filter.Limit = *args.Limit
	}
	if args.Tool != "" {
		entry, ok := s.catalog.Lookup(ctx, args.Tool)
		if !ok {
			return refuse("tool: there is no tool %q.", args.Tool)
		}
		filter.Endpoint, filter.Service, filter.Tool = entry.Service.Endpoint, entry.Service.Name, entry.Tool.Name
	}
	calls, err := s.ops.List(ctx, s.caller(req.Extra), filter)
	if err != nil {
		return s.failure(ctx, req, "", err)
	}
	snapshot := s.catalog.Snapshot()
	rows := make([]json.RawMessage, len(calls))
	for i, d := range calls {
		name := d.Tool.Name
		if e, ok := snapshot.Owner(d.Endpoint, d.Service, name); ok {
			name = e.Name
		}
		var row contract.Object
		row.Set("operation_id", contract.Quote(d.ID))
		row.Set("tool", contract.Quote(name))
		row.Set("service", contract.Quote(d.Service))
		row.Set("arguments", contract.Quote(d.Arguments))
		row.Set("status", contract.Quote(string(d.Status)))
		row.Set("started", contract.Quote(d.Started.UTC().Format(time.RFC3339Nano)))
		if !d.Closed.IsZero() {
			row.Set("closed", contract.Quote(d.Closed.UTC().Format(time.RFC3339Nano)))
		}
		rows[i] = row.JSON()
	}
	var o contract.Object
	o.Set("operations", contract.Array(rows...))
	r, err := contract.ValueResult(o.JSON(), false)
	if err != nil {
		return contract.Result{}, internal(err)
	}
	return r, nil
}

func decodeArguments(req *mcp.CallToolRequest, v any) error {
	raw, err := contract.CheckArguments(req.Params.Arguments)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s: %s, want %s", typ.Field, typ.Value, typ.Type)
		}
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// refuse answers bad arguments of a poll tool, in words for the model.
func refuse(format string, args ...any) (contract.Result, error) {
	f := &contract.Failure{Code: contract.CodeInvalid, Message: fmt.Sprintf(format, args...)}
	return f.Result(), nil
}
