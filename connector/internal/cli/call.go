package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/urfave/cli/v2"
)

func (e env) call(c *cli.Context) error {
	if n := c.NArg(); n < 1 || n > 2 {
		return usagef("call takes TOOL [ARGS], but there are %d arguments", n)
	}
	args, err := e.readArguments(c.Args().Get(1))
	if err != nil {
		return usageError{err}
	}
	s, err := e.settings(c)
	if err != nil {
		return err
	}
	if c.Duration(flagWait) < 0 {
		return usagef("--%s: %v, want zero or more", flagWait, c.Duration(flagWait))
	}
	name := c.Args().First()
	if name == contract.ToolGetOperationResult {
		args = s.lookFor(args, c.Duration(flagWait))
	}
	// A signal ends the wait, not what has to be done after it.
	ctx := context.WithoutCancel(c.Context)
	server, done, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	if name == contract.ToolGetOperationResult {
		return e.readResult(ctx, c, server, args)
	}
	if result, ok, err := server.PollTool(c.Context, name, args); ok {
		return e.printResult(c, result, err)
	}
	entry, ok := server.Catalog().Lookup(c.Context, name)
	if !ok {
		return unknownTool(name, server.Catalog().Snapshot())
	}
	caller := operation.Caller{Transport: operation.Stdio, Name: s.server.Caller}
	id, err := server.Operations().Start(c.Context, operation.Call{
		Endpoint: entry.Service.Endpoint, Service: entry.Service.Name, Tool: entry.Tool,
		Params: contract.CallParams{Arguments: args}, Caller: caller,
		Starting: func(id string) { fmt.Fprintf(e.err, "operation %s\n", id) },
	})
	switch {
	case err == nil:
	case c.Err() != nil && id != "":
		return e.interrupted(ctx, server, id, "The call may have been recorded; then it goes on in Temporal.")
	default:
		return e.printResult(c, contract.Result{}, err)
	}
	stopProgress := e.showProgress(name)
	result, err := server.Operations().Result(c.Context, id, entry.Tool, c.Duration(flagWait))
	stopProgress()
	switch {
	case c.Err() != nil && err != nil:
		return e.interrupted(ctx, server, id, goesOn)
	case errors.Is(err, operation.ErrRunning):
		if c.Bool(flagJSON) {
			fmt.Fprintln(e.out, string(server.Running(id).JSON()))
		}
		e.howToRead(id, goesOn)
		return exitError(exitRunning)
	}
	return e.printResult(c, result, err)
}

// untilDone is a time that nobody lives to see the end of.
const untilDone = time.Duration(1 << 62)

// lookFor makes one look at the result of an earlier call wait as a call of its own
// does; zero has no end. Arguments that say how long to look are heeded.
func (s *settings) lookFor(args json.RawMessage, wait time.Duration) json.RawMessage {
	o, err := contract.ParseObject(args)
	if err != nil || o.Has("wait_seconds") {
		return args
	}
	if wait == 0 {
		wait = untilDone
	}
	s.server.WaitBudget = max(wait, waitBudget)
	o.Set("wait_seconds", fmt.Appendf(nil, "%.3f", wait.Seconds()))
	return o.JSON()
}

// readResult reads the result of an earlier call.
func (e env) readResult(ctx context.Context, c *cli.Context, server *mcpserver.Server, args json.RawMessage) error {
	o, err := contract.ParseObject(args)
	if err != nil {
		return err
	}
	var id string
	_ = json.Unmarshal(o.Get("operation_id"), &id) // the tool says what is wrong with it
	stopProgress := e.showProgress(contract.ToolGetOperationResult)
	result, _, err := server.PollTool(c.Context, contract.ToolGetOperationResult, args)
	stopProgress()
	if c.Err() != nil && (err != nil || result.IsError()) {
		return e.interrupted(ctx, server, id, "If the call still runs, it goes on in Temporal.")
	}
	return e.printResult(c, result, err)
}

// unknownTool says that nobody has the tool, or that it cannot be told.
func unknownTool(name string, snapshot *catalog.Snapshot) error {
	first := fmt.Sprintf("there is no tool %q", name)
	if !snapshot.Complete() {
		first = fmt.Sprintf("the tool %q cannot be called now: no service that answers has it", name)
	}
	return errors.New(strings.Join(append([]string{first}, snapshot.Warnings()...), "\n  "))
}

// readArguments returns the JSON object that ARGS stands for.
func (e env) readArguments(arg string) (json.RawMessage, error) {
	data := []byte(arg)
	var err error
	switch {
	case arg == "-":
		data, err = io.ReadAll(e.in)
	case strings.HasPrefix(arg, "@"):
		data, err = os.ReadFile(arg[1:])
	}
	if err != nil {
		return nil, fmt.Errorf("ARGS: %w", err)
	}
	args, err := contract.CheckArguments([]byte(strings.TrimSpace(string(data))))
	if err != nil {
		return nil, fmt.Errorf("ARGS: %w", err)
	}
	return args, nil
}

// printResult prints how the call ended and picks the exit code.
func (e env) printResult(c *cli.Context, result contract.Result, err error) error {
	if err != nil {
		f := resultmap.FromError(err)
		if p := f.Protocol(); p != nil {
			return p
		}
		if f.Code == contract.CodeInvalid {
			return f
		}
		result = f.Result()
	}
	result = mcpserver.Presentable(result)
	if _, err := io.WriteString(e.out, printed(result, c.Bool(flagJSON))); err != nil {
		return fmt.Errorf("the result could not be printed: %w", err)
	}
	switch {
	case result.IsError():
		return exitError(exitFailed)
	case mcpserver.IsRunning(result):
		return exitError(exitRunning)
	}
	return nil
}

// printed returns what a result is on standard output.
func printed(result contract.Result, asJSON bool) string {
	text, hasText := result.Text()
	switch {
	case asJSON:
		return string(result.JSON()) + "\n"
	case hasText:
		return text + "\n"
	case result.Structured() != nil:
		return string(result.Structured()) + "\n"
	}
	var blocks strings.Builder
	for _, block := range result.Content() {
		blocks.Write(block)
		blocks.WriteByte('\n')
	}
	return blocks.String()
}

// goesOn is what becomes of a call whose wait has ended.
const goesOn = "The call is still running; it goes on in Temporal."

func (e env) howToRead(id, state string) {
	fmt.Fprintf(e.err, "%s To read its result:\n"+
		"  durable-mcp-connector call --service … %s '{\"operation_id\":\"%s\"}'\n", state, contract.ToolGetOperationResult, id)
}

// interrupted is Ctrl-C: on a terminal the person decides what becomes of the
// call.
func (e env) interrupted(ctx context.Context, server *mcpserver.Server, id, state string) error {
	if isTerminal(e.in) && isTerminal(e.err) {
		fmt.Fprint(e.err, "\nCancel the call? It goes on otherwise. [y/N] ")
		line, _ := bufio.NewReader(e.in).ReadString('\n')
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if err := server.Operations().Cancel(ctx, id, "cancelled at the terminal"); err != nil {
				e.howToRead(id, state)
				return err
			}
			fmt.Fprintln(e.err, "The cancellation is recorded.")
			return exitError(exitFailed)
		}
	}
	e.howToRead(id, state)
	return exitError(exitRunning)
}

// showProgress keeps a line with the elapsed time on a terminal.
func (e env) showProgress(tool string) (stop func()) {
	if !isTerminal(e.err) {
		return func() {}
	}
	began := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(e.err, "\r%s has been running for %s ", tool, time.Since(began).Round(time.Second))
			case <-done:
				fmt.Fprint(e.err, "\r\033[K")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Name() != os.DevNull && f.Name() != os.DevNull
}
