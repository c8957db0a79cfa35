// Package cli is the command line of durable-mcp-connector.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // the work failed
	exitUsage   = 2 // usage or configuration
	exitRunning = 3 // the call goes on
)

// usageError is an error of the person or file that started the program.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError ends the program with a code; what there is to say was said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// env is what a command has of the process.
type env struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the program and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	e := env{in, out, errOut}
	ctx, stop := signalContext()
	defer stop()
	err := e.app().RunContext(ctx, hoistFlags(args))
	var usage usageError
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(errOut, "durable-mcp-connector: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(errOut, "durable-mcp-connector: %v\n", err)
	return exitFailed
}

// signalContext ends at the first SIGINT or SIGTERM; the second ends the
// program at once.
func signalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		if _, again := <-signals; again {
			os.Exit(exitFailed)
		}
	}()
	return ctx, func() { signal.Stop(signals); close(signals) }
}

func (e env) app() *cli.App {
	serve := append(commonFlags(), serveFlags()...)
	return &cli.App{
		Name:  "durable-mcp-connector",
		Usage: "serve Temporal Nexus services as an MCP server, each tool call a durable operation",
		UsageText: "durable-mcp-connector [serve] --service NAME[=ENDPOINT][,prefix=P] …\n" +
			"durable-mcp-connector tools --service …\n" +
			"durable-mcp-connector call --service … TOOL [ARGS]\n" +
			"durable-mcp-connector doctor --service …",
		Version:         version(),
		HideHelpCommand: true,
		Reader:          e.in,
		Writer:          e.out,
		ErrWriter:       e.err,
		ExitErrHandler:  func(*cli.Context, error) {}, // Main says it and picks the code
		OnUsageError:    onUsageError,
		Flags:           serve,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("there is no command %q; see --help", c.Args().First())
			}
			return e.serve(c)
		},
		Commands: []*cli.Command{{
			Name:         "serve",
			Usage:        "serve MCP over stdio or Streamable HTTP (the default command)",
			Flags:        serve,
			OnUsageError: onUsageError,
			Action:       noArgs(e.serve),
		}, {
			Name:         "tools",
			Usage:        "list the tools as they would be served, by service",
			Flags:        append(commonFlags(), jsonFlag("print JSON")),
			OnUsageError: onUsageError,
			Action:       noArgs(e.tools),
		}, {
			Name:      "call",
			Usage:     "call a tool, wait for its result and print it",
			ArgsUsage: "TOOL [ARGS]",
			Description: "ARGS is a JSON object, @FILE for a file that holds one, or - for standard input.\n" +
				"The operation ID goes to standard error at once; the result alone to standard output.\n" +
				"Exit codes: 0 done, 1 the tool reported an error, 2 usage, 3 still running.",
			Flags:        append(commonFlags(), callFlags()...),
			OnUsageError: onUsageError,
			Action:       e.call,
		}, {
			Name:         "doctor",
			Usage:        "check everything from the address to the manifests, each with a remedy",
			Flags:        append(commonFlags(), jsonFlag("print JSON")),
			OnUsageError: onUsageError,
			Action:       noArgs(e.doctor),
		}},
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef("%w; see %s --help", err, strings.TrimSpace(c.App.Name+" "+strings.TrimPrefix(c.Command.Name, c.App.Name)))
}

func noArgs(run func(*cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return usagef("%s takes no arguments, but there is %q", c.Command.Name, c.Args().First())
		}
		return run(c)
	}
}

// hoistFlags brings what people write in any order into the one that the flag
// parser takes: the command, its flags, its arguments.
func hoistFlags(args []string) []string {
	boolean := []string{flagJSON, "help", "h"}
	var flags, rest []string
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		name := strings.TrimLeft(a, "-")
		if name == "version" || name == "v" {
			return args // not of a command
		}
		flags = append(flags, a)
		if !strings.Contains(name, "=") && !slices.Contains(boolean, name) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	hoisted := slices.Clone(args[:1])
	if len(rest) > 0 && slices.Contains(commands, rest[0]) {
		hoisted, rest = append(hoisted, rest[0]), rest[1:]
	}
	hoisted = append(hoisted, flags...)
	if len(rest) > 0 {
		hoisted = append(append(hoisted, "--"), rest...)
	}
	return hoisted
}

var commands = []string{"serve", "tools", "call", "doctor"}

// linkedVersion is what the linker was told, for builds where the go command can
// know no version: those of images, which have no repository.
//
//	-ldflags "-X github.com/durable-mcp/durable-mcp/connector/internal/cli.linkedVersion=v1.2.3"
var linkedVersion string

// version is the module's version under go install, else what the linker was
// told, else the commit of a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info, linkedVersion)
}

func versionOf(info *debug.BuildInfo, linked string) string {
	const none = "(devel)"
	if v := info.Main.Version; v != "" && v != none {
		return v
	}
	if linked != "" {
		return linked
	}
	words := []string{none}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			words = append(words, s.Value[:min(7, len(s.Value))])
		case s.Key == "vcs.modified" && s.Value == "true":
			words = append(words, "dirty")
		}
	}
	return strings.Join(words, " ")
}
