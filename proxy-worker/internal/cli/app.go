// Package cli is the command line of durable-mcp-proxy.
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

const program = "durable-mcp-proxy"

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // the work failed
	exitUsage  = 2 // usage or configuration
)

// usageError is an error of the person or the file that started the program.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported ends the program as failed; what there is to say was said.
var errReported = errors.New("it has been reported")

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
	err := e.app().RunContext(ctx, hoistCommand(args))
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	}
	fmt.Fprintf(errOut, "%s: %v\n", program, err)
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
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
		Name:  program,
		Usage: "serve the tools of MCP servers as Temporal Nexus services, each tool call durable",
		UsageText: program + " [serve] --config FILE [--server NAME …]\n" +
			program + " check --config FILE [--server NAME …] [--json]",
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
			Usage:        "serve every server of the file as a Nexus service, on one Worker (the default command)",
			Flags:        serve,
			OnUsageError: onUsageError,
			Action:       noArgs(e.serve),
		}, {
			Name:  "check",
			Usage: "connect to every server of the file and print what would be served; needs no Temporal",
			Description: "Prints for each server its name, version and protocol, how its sessions are shared, and its tools\n" +
				"with the policy that each gets and why.\n" +
				"Exit codes: 0 all is well, 1 a server fails, 2 usage, or the file is wrong.",
			Flags:        append(commonFlags(), boolFlag(flagJSON, "print JSON")),
			OnUsageError: onUsageError,
			Action:       noArgs(e.check),
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

// hoistCommand brings the command to the front, where the flag parser wants it:
// people write it behind the flags too.
func hoistCommand(args []string) []string {
	boolean := []string{flagJSON, flagEnsureEndpoints, flagContinueOnError, flagPrefix, "help", "h", "version", "v"}
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return args
		case len(a) < 2 || a[0] != '-':
			if slices.Contains([]string{"serve", "check"}, a) {
				return slices.Concat(args[:1], args[i:i+1], args[1:i], args[i+1:])
			}
			return args
		case !strings.Contains(a, "=") && !slices.Contains(boolean, strings.TrimLeft(a, "-")):
			i++ // its value
		}
	}
	return args
}

// linkedVersion is what the linker was told, for builds where the go command can
// know no version: those of images, which have no repository.
//
//	-ldflags "-X github.com/durable-mcp/durable-mcp/proxy-worker/internal/cli.linkedVersion=v1.2.3"
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
