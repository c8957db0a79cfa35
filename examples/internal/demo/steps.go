package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/api/workflowservice/v1"
)

// report is what brew_report returns.
type report struct {
	Topic      string `json:"topic"`
	Report     string `json:"report"`
	WorkflowID string `json:"workflow_id"`
}

// topics is what remember_topic returns.
type topics struct {
	Topics []string `json:"topics"`
}

func (s *story) build(ctx context.Context) error {
	return s.stage.Build(ctx, connectorPackage, servicePackage, agentPackage, proxyPackage, weatherPackage, almanacPackage)
}

func (s *story) startTemporal(ctx context.Context) (err error) {
	s.temporal, err = s.stage.StartTemporal(ctx, s.cli)
	if err != nil {
		return err
	}
	s.say("Look inside while the story goes on: %s", s.temporal.UI)
	return nil
}

func (s *story) startService(ctx context.Context) error {
	child, err := s.stage.Start("lucky-number", s.stage.Program("lucky-number"), []string{"--ensure-endpoint"}, s.temporal.Env())
	if err != nil {
		return err
	}
	return child.AwaitLog(ctx, "lucky-number is ready")
}

func (s *story) listTools(ctx context.Context) (err error) {
	if s.host, err = s.open(ctx); err != nil {
		return err
	}
	list, err := s.host.session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	served := map[string]bool{}
	for _, tool := range list.Tools {
		served[tool.Name] = true
	}
	for _, of := range []struct {
		whose string
		tools []string
	}{
		{"lucky-number", []string{"lucky_number", "draw_ticket", "brew_report", "create_topic_list", "remember_topic", "delete_topic_list"}},
		{"weather", []string{"forecast", "alerts", "book_trip", "trips"}},
		{"almanac", []string{"outlook"}},
		{"the connector's own", []string{contract.ToolGetOperationResult, contract.ToolCancelOperation, contract.ToolListOperations}},
	} {
		for _, tool := range of.tools {
			if !served[tool] {
				return fmt.Errorf("there is no tool %s of %s among %v", tool, of.whose, slices.Sorted(maps.Keys(served)))
			}
			delete(served, tool)
		}
		s.say("%s: %s", of.whose, strings.Join(of.tools, ", "))
	}
	if len(served) > 0 {
		return fmt.Errorf("there are more tools than there should be: %v", slices.Sorted(maps.Keys(served)))
	}
	return nil
}

func (s *story) callShort(ctx context.Context) error {
	args := arguments{"name": "Ada"}
	result, err := s.host.call(ctx, "lucky_number", args, nil)
	if err != nil {
		return err
	}
	var answer struct {
		Name   string
		Number int
	}
	if err := decode(result, &answer); err != nil {
		return err
	}
	if answer.Name != "Ada" || answer.Number == 0 {
		return fmt.Errorf("want Ada's number, got %s", text(result))
	}
	s.say("lucky_number %s → %s", args, text(result))
	return nil
}

func (s *story) callLong(ctx context.Context) error {
	args := arguments{"topic": "the weather", "seconds": 7}
	s.say("brew_report %s, but the host waits %s at most", args, seconds(waitBudget))
	began := time.Now()
	first := s.host.ask(ctx, "brew_report", args, nil)
	if first.err != nil {
		return first.err
	}
	id, running := runningID(first.result)
	if !running {
		return fmt.Errorf("want an answer that says it is running, got %s", text(first.result))
	}
	s.say("after %s the answer is: running, as operation %s", seconds(time.Since(began)), id)
	result, err := s.host.result(ctx, id)
	if err != nil {
		return err
	}
	s.say("get_operation_result has it after %s", seconds(time.Since(began)))
	return s.checkReport(result, "the weather")
}

func (s *story) checkReport(result *mcp.CallToolResult, topic string) error {
	var r report
	if err := decode(result, &r); err != nil {
		return err
	}
	if r.Topic != topic || r.WorkflowID == "" {
		return fmt.Errorf("want the report on %s, got %s", topic, text(result))
	}
	s.say("→ %s", r.Report)
	return nil
}

func (s *story) createList(ctx context.Context) error {
	result, err := s.host.call(ctx, "create_topic_list", arguments{}, nil)
	if err != nil {
		return err
	}
	var list struct{ Handle string }
	if err := decode(result, &list); err != nil {
		return err
	}
	s.handle = list.Handle
	s.say("create_topic_list → %s", text(result))
	return s.remember(ctx, "the weather", "the weather")
}

// remember adds a topic and wants the whole list to be as given.
func (s *story) remember(ctx context.Context, topic string, want ...string) error {
	result, err := s.host.call(ctx, "remember_topic", arguments{"handle": s.handle, "topic": topic}, nil)
	if err != nil {
		return err
	}
	var list topics
	if err := decode(result, &list); err != nil {
		return err
	}
	if !slices.Equal(list.Topics, want) {
		return fmt.Errorf("want the topics %q, got %q", want, list.Topics)
	}
	s.say("remember_topic, with the handle and %q → %s", topic, text(result))
	return nil
}

func (s *story) killConnector(ctx context.Context) error {
	args := arguments{"topic": "the harvest", "seconds": 9}
	id, ended, err := s.host.begin(ctx, "brew_report", args)
	if err != nil {
		return err
	}
	// The ID is told before the operation starts.
	if err := eventually(ctx, func() error { return s.wantReports(ctx, "Running", 1) }); err != nil {
		return err
	}
	s.say("brew_report %s runs as operation %s", args, id)
	s.host.connector.Kill()
	select {
	case a := <-ended:
		if a.err == nil {
			return errors.New("the call was answered, although its connector is dead")
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	s.say("the connector is dead, and the host has an error in the place of a result")
	s.lost = id
	s.host.leave()
	s.host = nil
	return nil
}

func (s *story) findCall(ctx context.Context) (err error) {
	if s.host, err = s.open(ctx); err != nil {
		return err
	}
	var found operation
	err = eventually(ctx, func() error { // the list is an index, which may lag behind
		list, err := s.host.operations(ctx, arguments{"tool": "brew_report", "limit": 5})
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.ID == s.lost {
				found = o
				return nil
			}
		}
		return fmt.Errorf("list_operations does not name %s among %v", s.lost, list)
	})
	if err != nil {
		return err
	}
	if found.Status != "running" {
		return fmt.Errorf("want a call that still runs, got %v", found)
	}
	s.say("list_operations → %s %s: %s", found.Tool, found.Arguments, found.Status)
	result, err := s.host.result(ctx, found.ID)
	if err != nil {
		return err
	}
	return s.checkReport(result, "the harvest")
}

func (s *story) useList(ctx context.Context) error {
	return s.remember(ctx, "the harvest", "the weather", "the harvest")
}

func (s *story) cancelCall(ctx context.Context) error {
	args := arguments{"topic": "the far future", "seconds": 600}
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	id, ended, err := s.host.begin(call, "brew_report", args)
	if err != nil {
		return err
	}
	if err := eventually(ctx, func() error { return s.wantReports(ctx, "Running", 1) }); err != nil {
		return err
	}
	s.say("brew_report %s runs as operation %s", args, id)
	cancel()
	if a := <-ended; !errors.Is(a.err, context.Canceled) {
		return fmt.Errorf("want a cancelled call, got: %w", a.err)
	}
	s.say("the host cancels it")
	err = eventually(ctx, func() error {
		list, err := s.host.operations(ctx, arguments{"status": "canceled"})
		if err != nil {
			return err
		}
		if len(list) != 1 || list[0].ID != id {
			return fmt.Errorf("list_operations names as cancelled %v, not %s alone", list, id)
		}
		return s.wantReports(ctx, "Canceled", 1)
	})
	if err != nil {
		return err
	}
	s.say("list_operations → canceled, and so is the Workflow behind it")
	return nil
}

// wantReports checks how many Workflows of brew_report Temporal has with a status,
// or with any.
func (s *story) wantReports(ctx context.Context, status string, want int64) error {
	query := "WorkflowType = 'BrewReport'"
	if status != "" {
		query += fmt.Sprintf(" AND ExecutionStatus = '%s'", status)
	}
	count, err := s.temporal.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return err
	}
	if count.GetCount() != want {
		return fmt.Errorf("want %d Workflows where %s, but Temporal has %d", want, query, count.GetCount())
	}
	return nil
}

func (s *story) callTwice(ctx context.Context) error {
	args := arguments{"topic": "the tides", "seconds": 1}
	meta := mcp.Meta{contract.MetaIdempotencyKey: "tides-of-today"}
	s.say("brew_report %s, twice at the same time", args)
	answers := make(chan answer, 2)
	for range cap(answers) {
		go func() {
			result, err := s.host.call(ctx, "brew_report", args, meta)
			answers <- answer{result, err}
		}()
	}
	var runs []string
	for range cap(answers) {
		a := <-answers
		if a.err != nil {
			return a.err
		}
		var r report
		if err := decode(a.result, &r); err != nil {
			return err
		}
		runs = append(runs, r.WorkflowID)
	}
	if runs[0] != runs[1] || runs[0] == "" {
		return fmt.Errorf("the two calls were two runs: %v", runs)
	}
	// The weather, the harvest, the far future, the tides.
	if err := eventually(ctx, func() error { return s.wantReports(ctx, "", 4) }); err != nil {
		return err
	}
	s.say("two answers, one run: %s", runs[0])
	return nil
}

// eventually asks until the answer is nil, for ten seconds.
func eventually(ctx context.Context, ask func() error) error {
	last := time.NewTimer(10 * time.Second)
	defer last.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-last.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
