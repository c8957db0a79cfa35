// Package demo is the story of Durable MCP in about a minute: it starts a Temporal
// dev server, a tool service, two MCP servers behind the proxy, and the connector.
// It calls tools as an MCP host does, kills the connector and the servers in the
// middle of calls, and checks each step that it tells.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/durable-mcp/durable-mcp/examples/internal/stage"
)

// The programs of the story.
const (
	connectorPackage = "github.com/durable-mcp/durable-mcp/connector/cmd/durable-mcp-connector"
	servicePackage   = "github.com/durable-mcp/durable-mcp/examples/lucky-number"
	proxyPackage     = "github.com/durable-mcp/durable-mcp/proxy-worker/cmd/durable-mcp-proxy"
	weatherPackage   = "github.com/durable-mcp/durable-mcp/examples/weather-proxy/weather-server"
	agentPackage     = "github.com/durable-mcp/durable-mcp/examples/agent/rehearsal"
	almanacPackage   = "github.com/durable-mcp/durable-mcp/examples/proxy-library/almanac"
)

// patience is how long the whole story may take before something hangs.
const patience = 5 * time.Minute

// Main tells the story and returns the exit code: 0 when every step went as told,
// 1 when one did not, 2 for wrong usage, 130 after Ctrl-C. All that it started is
// stopped then.
func Main(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errOut)
	keep := flags.Bool("keep", false, "leave everything running at the end, until Ctrl-C")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(errOut, "usage: demo [--keep]")
		return 2
	}
	cli := os.Getenv("TEMPORAL_CLI")
	if cli == "" {
		fmt.Fprintln(errOut, "demo: TEMPORAL_CLI names no Temporal CLI; run it as ./justw demo, which finds or installs one")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	st, err := stage.New()
	if err != nil {
		fmt.Fprintln(errOut, "demo:", err)
		return 1
	}
	began := time.Now()
	s := &story{out: out, stage: st, cli: cli}
	limited, cancel := context.WithTimeout(ctx, patience)
	err = s.tell(limited)
	cancel()
	if err == nil {
		fmt.Fprintf(out, "That was all, in %s: every step went as told.\n", seconds(time.Since(began)))
		if *keep {
			s.sayHowToGoOn()
			<-ctx.Done()
		}
	}
	s.stop()
	switch {
	case err == nil:
		fmt.Fprintln(out, "Everything that was started is stopped.")
		return s.remove(errOut, 0)
	case ctx.Err() != nil:
		fmt.Fprintln(out, "\nInterrupted. Everything that was started is stopped.")
		return s.remove(errOut, 130)
	}
	fmt.Fprintf(errOut, "\n%v\n\nEverything that was started is stopped. The logs are in %s\n", err, st.Dir())
	return 1
}

// remove removes the programs and logs, and returns the exit code.
func (s *story) remove(errOut io.Writer, code int) int {
	if err := s.stage.Close(); err != nil {
		fmt.Fprintln(errOut, "demo:", err)
		return 1
	}
	return code
}

func (s *story) sayHowToGoOn() {
	fmt.Fprintf(s.out, `
All of it keeps running until Ctrl-C.
    Temporal's web interface   %s
    Temporal's address         %s
    Call a tool yourself       %[3]s call --temporal-address %[2]s --service lucky-number lucky_number '{"name":"you"}'
    One behind the proxy       %[3]s call --temporal-address %[2]s --service weather forecast '{"place":"Lisbon"}'
`, s.temporal.UI, s.temporal.Address, s.stage.Program("durable-mcp-connector"))
}

// story is where the story has got to.
type story struct {
	out   io.Writer
	stage *stage.Stage
	cli   string
	step  int

	temporal *stage.Temporal
	proxy    *stage.Child
	weather  weatherServer
	host     *host
	handle   string
	lost     string // the ID of the call that lost its connector
}

func (s *story) tell(ctx context.Context) error {
	fmt.Fprint(s.out, "\nDurable MCP in a minute: tools that keep running, whatever happens to who called them.\n\n")
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Building the connector, the proxy and whose tools they serve…", s.build},
		{"A Temporal dev server starts.", s.startTemporal},
		{"A tool service starts: a Temporal Worker whose Nexus operations are tools.", s.startService},
		{"Two MCP servers that know nothing of Temporal get a proxy.", s.startProxy},
		{"An MCP host starts the connector and asks for its tools.", s.listTools},
		{"A short call is answered at once.", s.callShort},
		{"So are calls to the servers behind the proxy.", s.callProxied},
		{"A call takes longer than the host waits.", s.callLong},
		{"The host keeps something for later: a list that has a handle.", s.createList},
		{"In the middle of a call, the connector dies: kill -9.", s.killConnector},
		{"A new connector finds that call and reads its result.", s.findCall},
		{"The list is still there.", s.useList},
		{"A server behind the proxy dies while a tool reads: kill -9.", s.killAlmanac},
		{"A server dies in a call that must not run twice: kill -9.", s.killWeather},
		{"Whether it happened, a tool that only reads can tell.", s.lookAtTrips},
		{"A call of ten minutes is cancelled.", s.cancelCall},
		{"One call is sent twice, with one idempotency key.", s.callTwice},
		{"An agent is a Workflow, and its Worker dies in the middle of a tool call: kill -9.", s.killAgent},
	} {
		s.step++
		fmt.Fprintf(s.out, "%2d  %s\n", s.step, step.title)
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("step %d is not as told (%s): %w", s.step, step.title, err)
		}
		fmt.Fprintf(s.out, "    ✓ %s\n\n", seconds(time.Since(began)))
	}
	return nil
}

// say adds a line to the step.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "    "+format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func (s *story) stop() {
	s.host.leave()
	if s.temporal != nil {
		s.temporal.Client.Close()
	}
	s.stage.Stop()
}
