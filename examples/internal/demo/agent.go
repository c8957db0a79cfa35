package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
)

// startAgent starts a Worker of the agent.
func (s *story) startAgent(ctx context.Context) (*stage.Child, error) {
	child, err := s.stage.Start("agent", s.stage.Program("rehearsal"), []string{"worker"}, s.temporal.Env())
	if err != nil {
		return nil, err
	}
	return child, child.AwaitLog(ctx, "agent is ready")
}

func (s *story) killAgent(ctx context.Context) error {
	worker, err := s.startAgent(ctx)
	if err != nil {
		return err
	}
	ask, err := s.stage.Command("ask", s.stage.Program("rehearsal"), []string{"ask", "--allow", "How are things?"}, s.temporal.Env())
	if err != nil {
		return err
	}
	var said bytes.Buffer
	ask.Cmd.Stdout = &said
	if err := ask.Cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, ask.Kill)
	defer stop()
	if err := eventually(ctx, func() error { return s.wantReports(ctx, "Running", 1) }); err != nil {
		return err
	}
	s.say("its scripted model calls four tools at once; one of them, brew_report, runs")
	worker.Kill()
	s.say("the Worker is dead, and another one starts")
	if _, err := s.startAgent(ctx); err != nil {
		return err
	}
	if err := ask.Cmd.Wait(); err != nil {
		return fmt.Errorf("the agent: %w; its log is %s", err, ask.Log)
	}
	// The weather, the harvest, the far future, the tides, and the agent's.
	if err := eventually(ctx, func() error { return s.wantReports(ctx, "", 5) }); err != nil {
		return err
	}
	// The list is gone only if all steps of the script had what they needed.
	if !strings.Contains(said.String(), `The list: {"deleted":true}`) {
		return fmt.Errorf("the agent's answer is not as told: %s", said.String())
	}
	for line := range strings.Lines(strings.TrimSpace(said.String())) {
		if line = strings.TrimSpace(line); line != "" {
			s.say("→ %s", line)
		}
	}
	return nil
}
