package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve makes the SDK's registry and the served bytes those of the snapshot. The
// SDK tells clients of the change.
func (s *Server) serve(snapshot *catalog.Snapshot) {
	s.served.Lock()
	defer s.served.Unlock()
	before := s.served.tools
	s.served.tools = make(map[string]rawTool, len(snapshot.Entries))
	for _, e := range snapshot.Entries {
		raw := s.render(e)
		if old, ok := before[e.Name]; !ok || !bytes.Equal(old.modern, raw.modern) {
			if err := register(s.mcp, e.Name, e.Tool); err != nil {
				s.options.Logger.Warn("tool is not served", "service", e.Service.Name, "tool", e.Name, "error", err)
				s.mcp.RemoveTools(e.Name)
				continue
			}
		}
		s.served.tools[e.Name] = raw
	}
	for name := range before {
		if _, ok := s.served.tools[name]; !ok {
			s.mcp.RemoveTools(name)
		}
	}
	s.tellOfLists(s.served.snapshot, snapshot)
	s.served.snapshot = snapshot
}

// CheckTool returns an error for a tool that the MCP Go SDK does not take: one
// whose input schema is nested too deep for it, or has an x-mcp-header that is
// wrong.
func CheckTool(t contract.Tool) error {
	return register(mcp.NewServer(&mcp.Implementation{Name: "check"}, nil), t.Name, t)
}

// register adds a tool to the SDK's registry: for paging, header checks and
// list_changed. The SDK panics at what it does not like.
func register(server *mcp.Server, name string, t contract.Tool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			message := strings.TrimPrefix(fmt.Sprint(p), fmt.Sprintf("AddTool %q: ", name))
			err = fmt.Errorf("the MCP SDK does not take it: %s", message)
		}
	}()
	server.AddTool(&mcp.Tool{Name: name, Description: t.Description, InputSchema: t.InputSchema}, unreachable)
	return nil
}

// unreachable is the handler of tools that the middleware answers. Only a tool
// that left the catalog a moment ago gets here.
func unreachable(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, unknownTool(req.Params.Name, nil)
}

// render returns the tool as it is served: under its served name, and with an
// output schema that a running result does not break.
func (s *Server) render(e catalog.Entry) rawTool {
	o, err := contract.ParseObject(e.Tool.Raw)
	if err != nil {
		return rawTool{} // the contract refused it already
	}
	if e.Name != e.Tool.Name {
		o.Set("name", contract.Quote(e.Name))
	}
	if e.Tool.OutputSchema != nil && s.mayOutlast(e.Tool.ScheduleToCloseTimeout) {
		o.Set("outputSchema", withRunning(e.Tool.OutputSchema))
	}
	raw := rawTool{modern: compact(o.JSON())}
	raw.legacy = raw.modern
	// Before 2026-07-28 an output schema describes an object; a client that
	// checks refuses the whole list otherwise.
	if schema := o.Get("outputSchema"); schema != nil && contract.CheckInputSchema(schema) != nil {
		o.Delete("outputSchema")
		raw.legacy = compact(o.JSON())
	}
	return raw
}

// mayOutlast reports whether a call with the timeout can end as running. Its time
// begins after that of the wait, and Temporal tells of its end a moment later.
func (s *Server) mayOutlast(timeout time.Duration) bool {
	budget := s.options.WaitBudget
	return timeout == 0 || timeout > budget-min(time.Second, budget/2)
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// listTools lets the SDK page, and puts the services' own bytes in the place of
// its tools.
func (s *Server) listTools(ctx context.Context, next mcp.MethodHandler, req *mcp.ListToolsRequest) (mcp.Result, error) {
	snapshot := s.catalog.Ready(ctx)
	res, err := next(ctx, "tools/list", req)
	if err != nil {
		return nil, err
	}
	list, ok := res.(*mcp.ListToolsResult)
	if !ok {
		return res, nil // somebody else's middleware answered
	}
	modern := isModern(req.ProtocolVersion())
	caller := s.caller(req.Extra)
	tools := make([]json.RawMessage, 0, len(list.Tools))
	for _, t := range list.Tools {
		switch raw, ok := s.served.get(t.Name); {
		case ok && modern:
			tools = append(tools, raw.modern)
		case ok:
			tools = append(tools, raw.legacy)
		case t.Name == contract.ToolListOperations && !mayList(caller):
		default: // a poll tool, or one that the host added
			own, err := json.Marshal(t)
			if err != nil {
				return nil, err
			}
			tools = append(tools, own)
		}
	}
	var o contract.Object
	o.Set("tools", contract.Array(tools...))
	s.endList(&o, list.NextCursor, snapshot.Warnings(), snapshot.Complete(), modern, caller)
	return newResult(o, modern), nil
}

// endList adds to a list what goes with it: where it goes on, what is missing,
// and from 2026-07-28 on how long it holds.
func (s *Server) endList(o *contract.Object, next string, warnings []string, complete, modern bool, caller operation.Caller) {
	if next != "" {
		o.Set("nextCursor", contract.Quote(next))
	}
	if len(warnings) > 0 {
		quoted := make([]json.RawMessage, len(warnings))
		for i, w := range warnings {
			quoted[i] = contract.Quote(w)
		}
		var meta contract.Object
		meta.Set(contract.MetaWarnings, contract.Array(quoted...))
		o.Set("_meta", meta.JSON())
	}
	if !modern {
		return
	}
	ttl, scope := s.options.RefreshInterval, "public"
	if !complete {
		ttl = time.Second
	}
	if caller.Name != "" {
		scope = "private" // who has no name may not see it, and has a tool less
	}
	o.Set("ttlMs", fmt.Appendf(nil, "%d", ttl.Milliseconds()))
	o.Set("cacheScope", contract.Quote(scope))
}
