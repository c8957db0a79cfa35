package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/urfave/cli/v2"
)

// Flag names.
const (
	flagConfig          = "config"
	flagServer          = "server"
	flagTaskQueue       = "task-queue"
	flagEnsureEndpoints = "ensure-endpoints"
	flagContinueOnError = "continue-on-error"
	flagPrefix          = "prefix-with-server-name"
	flagListen          = "listen"
	flagShutdownTimeout = "shutdown-timeout"
	flagAddress         = "temporal-address"
	flagNamespace       = "temporal-namespace"
	flagProfile         = "temporal-profile"
	flagCodec           = "codec-endpoint"
	flagLogLevel        = "log-level"
	flagLogFormat       = "log-format"
	flagJSON            = "json"
)

func envVar(flag string) []string {
	return []string{"DURABLE_MCP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: envVar(name)}
}

func boolFlag(name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, EnvVars: envVar(name)}
}

// listFlag is the value of a repeatable flag. A value is kept whole; the
// variable's is separated by spaces. What the command line says replaces what
// the environment does.
type listFlag struct {
	values  []string
	fromEnv bool
}

// Set implements [flag.Value].
func (l *listFlag) Set(value string) error {
	if l.fromEnv {
		l.values, l.fromEnv = nil, false
	}
	l.values = append(l.values, value)
	return nil
}

func (l *listFlag) String() string { return strings.Join(l.values, " ") }

// listGenericFlag reads the environment once, though it may be applied to more
// than one command.
type listGenericFlag struct{ *cli.GenericFlag }

// Apply implements [cli.Flag].
func (f listGenericFlag) Apply(set *flag.FlagSet) error {
	l, _ := f.Value.(*listFlag)
	vars := f.EnvVars
	f.EnvVars = nil
	err := f.GenericFlag.Apply(set)
	f.EnvVars = vars
	for _, name := range vars {
		if value := os.Getenv(name); value != "" && len(l.values) == 0 {
			l.values, l.fromEnv = strings.Fields(value), true
		}
	}
	return err
}

func list(c *cli.Context, flag string) []string {
	if l, ok := c.Generic(flag).(*listFlag); ok {
		return l.values
	}
	return nil
}

func commonFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(flagConfig, "", "the mcpServers `FILE` that MCP hosts use: a path, a file:// path, or - for standard input"),
		listGenericFlag{&cli.GenericFlag{
			Name: flagServer, Value: &listFlag{}, EnvVars: envVar(flagServer),
			Usage: "only the server under the key `NAME` of the file; repeat for more (in the variable, separate by spaces)",
		}},
		boolFlag(flagContinueOnError, "go on without a server that lacks a variable or does not answer; a server's own continue_on_error wins"),
		boolFlag(flagPrefix, "put a server's key and _ before the names of its tools, unless it has a prefix of its own"),
		stringFlag(flagAddress, "", "Temporal's frontend `HOST:PORT`, over TEMPORAL_ADDRESS and the profile"),
		stringFlag(flagNamespace, "", "the `NAMESPACE` of the Worker, over TEMPORAL_NAMESPACE and the profile"),
		stringFlag(flagProfile, "", "the `PROFILE` of temporal.toml, over TEMPORAL_PROFILE"),
		stringFlag(flagCodec, "", "a remote codec's `URL` for payloads"),
		stringFlag(flagLogLevel, "info", "`LEVEL`: debug, info, warn or error"),
		stringFlag(flagLogFormat, "text", "`FORMAT`: text or json"),
	}
}

func serveFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(flagTaskQueue, program, "the task `QUEUE` of the Worker"),
		boolFlag(flagEnsureEndpoints, "create each Nexus endpoint that is missing, named as the service, to this namespace and task queue"),
		stringFlag(flagListen, "", "an `ADDRESS` for /healthz and /readyz, like 127.0.0.1:8081"),
		&cli.DurationFlag{
			Name: flagShutdownTimeout, Value: 10 * time.Second, EnvVars: envVar(flagShutdownTimeout),
			Usage: "the `TIME` that calls under way get when the program is told to stop",
		},
	}
}

// server is a server of the file with its proxy.
type server struct {
	config.Server
	proxy *mcpproxy.Proxy
}

// settings are what both commands have of the flags.
type settings struct {
	logger  *slog.Logger
	file    *config.File
	servers []server
}

// settings resolves the flags and the file; it connects to nothing. The error
// lists every fault. A quiet command logs nothing.
func (e env) settings(c *cli.Context, quiet bool) (settings, error) {
	var s settings
	logger, err := newLogger(e.err, c.String(flagLogLevel), c.String(flagLogFormat))
	errs := []error{err}
	s.logger = logger
	if quiet {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if c.String(flagConfig) == "" {
		errs = append(errs, fmt.Errorf("--%s: there is none; name the file with the servers", flagConfig))
	} else {
		s.file, err = config.Load(c.String(flagConfig), e.in, config.Options{
			ContinueOnError: c.Bool(flagContinueOnError), PrefixWithServerName: c.Bool(flagPrefix), Only: list(c, flagServer),
		})
		errs = append(errs, err)
	}
	if s.file != nil {
		for _, described := range s.file.Servers {
			described.Options.Logger = s.logger
			proxy, err := mcpproxy.New(described.Service, described.Upstream(), described.Options)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", described.Path, err))
			}
			s.servers = append(s.servers, server{described, proxy})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return settings{}, usageError{err}
	}
	return s, nil
}

// logFindings logs what the file leaves to be said.
func (s *settings) logFindings() {
	for _, w := range s.file.Warnings {
		s.logger.Warn("config: " + w)
	}
	for _, k := range s.file.Disabled {
		s.logger.Debug("config: the server is disabled", "server", k)
	}
	for _, k := range s.file.Skipped {
		s.logger.Error("config: the server is skipped", "server", k.Key, "error", k.Err)
	}
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	var errs []error
	if err := l.UnmarshalText([]byte(level)); err != nil {
		errs = append(errs, fmt.Errorf("--%s: %q, want debug, info, warn or error", flagLogLevel, level))
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), errors.Join(errs...)
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), errors.Join(errs...)
	}
	errs = append(errs, fmt.Errorf("--%s: %q, want text or json", flagLogFormat, format))
	return slog.New(slog.DiscardHandler), errors.Join(errs...)
}
