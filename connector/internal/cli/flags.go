package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
)

// Flag names.
const (
	flagService          = "service"
	flagAddress          = "temporal-address"
	flagNamespace        = "temporal-namespace"
	flagProfile          = "temporal-profile"
	flagCodec            = "codec-endpoint"
	flagLogLevel         = "log-level"
	flagLogFormat        = "log-format"
	flagDiscoveryTimeout = "discovery-timeout"
	flagCaller           = "caller"
	flagTransport        = "transport"
	flagListen           = "listen"
	flagAllowHost        = "allow-host"
	flagAllowOrigin      = "allow-origin"
	flagWaitBudget       = "wait-budget"
	flagRefreshInterval  = "refresh-interval"
	flagTasks            = "tasks"
	flagTaskAfter        = "task-after"
	flagProgressInterval = "progress-interval"
	flagPollTools        = "poll-tools"
	flagShutdownTimeout  = "shutdown-timeout"
	flagJSON             = "json"
	flagWait             = "wait"
)

func envVar(flag string) []string {
	return []string{"DURABLE_MCP_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

func stringFlag(name, value, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Value: value, Usage: usage, EnvVars: envVar(name)}
}

func durationFlag(name string, value time.Duration, usage string) *cli.DurationFlag {
	return &cli.DurationFlag{Name: name, Value: value, Usage: usage, EnvVars: envVar(name)}
}

func jsonFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: usage, EnvVars: envVar(flagJSON)}
}

// listFlag is the value of a repeatable flag. The parts are kept whole: a comma
// is part of --service. What the command line says replaces what the environment
// does.
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
			l.values, l.fromEnv = []string{value}, true
		}
	}
	return err
}

func repeatableFlag(name, usage string) cli.Flag {
	return listGenericFlag{&cli.GenericFlag{Name: name, Value: &listFlag{}, Usage: usage, EnvVars: envVar(name)}}
}

func commonFlags() []cli.Flag {
	return []cli.Flag{
		repeatableFlag(flagService, "serve the Nexus service `NAME[=ENDPOINT][,prefix=P]`; the endpoint defaults to the name; repeat for more (in the variable, separate by spaces)"),
		stringFlag(flagAddress, "", "Temporal's frontend `HOST:PORT`, over TEMPORAL_ADDRESS and the profile"),
		stringFlag(flagNamespace, "", "the `NAMESPACE` to call from, over TEMPORAL_NAMESPACE and the profile"),
		stringFlag(flagProfile, "", "the `PROFILE` of temporal.toml, over TEMPORAL_PROFILE"),
		stringFlag(flagCodec, "", "a remote codec's `URL` for payloads"),
		stringFlag(flagLogLevel, "info", "`LEVEL`: debug, info, warn or error"),
		stringFlag(flagLogFormat, "text", "`FORMAT`: text or json"),
		durationFlag(flagDiscoveryTimeout, 5*time.Second, "the `TIME` that each service has to give its manifest"),
		stringFlag(flagCaller, defaultCaller(), "who calls over stdio, `USER@HOST`; its hash marks the operation IDs"),
	}
}

// waitBudget is the default of --wait-budget.
const waitBudget = 30 * time.Second

func serveFlags() []cli.Flag {
	listen := stringFlag(flagListen, "127.0.0.1:8080", "the `ADDRESS` to listen on (http); MCP at /mcp and /, /healthz, /readyz")
	listen.Aliases = []string{"addr"}
	return []cli.Flag{
		stringFlag(flagTransport, "stdio", "`TRANSPORT`: stdio or http"),
		listen,
		repeatableFlag(flagAllowHost, "a further `HOST` that requests may name; needed where --listen is no loopback address (http); repeatable"),
		repeatableFlag(flagAllowOrigin, "a further `ORIGIN` that browsers may come from, like https://app.example.com (http); repeatable"),
		durationFlag(flagWaitBudget, waitBudget, "the longest `TIME` that one request waits for a result"),
		durationFlag(flagRefreshInterval, 30*time.Second, "the `TIME` between background refreshes of the manifests"),
		stringFlag(flagTasks, "auto", "`MODE`: auto gives a task to clients that declare the extension; off never"),
		durationFlag(flagTaskAfter, time.Second, "the `TIME` after which a call becomes a task"),
		durationFlag(flagProgressInterval, 5*time.Second, "the `TIME` between two progress notifications of a call, for clients that want them"),
		stringFlag(flagPollTools, "on", "`on|off`: serve get_operation_result, cancel_operation and list_operations"),
		durationFlag(flagShutdownTimeout, 10*time.Second, "the `TIME` that answers under way get when the program is told to stop"),
	}
}

func callFlags() []cli.Flag {
	return []cli.Flag{
		jsonFlag("print the raw CallToolResult"),
		durationFlag(flagWait, 0, "the longest `TIME` to wait for the result; 0 waits until it is there"),
	}
}

func defaultCaller() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// settings are the resolved flags.
type settings struct {
	server  mcpserver.Options
	client  client.Options
	logger  *slog.Logger
	command *cli.Context
}

// settings resolves and checks every flag of the command; it dials and binds
// nothing. The error lists every fault.
func (e env) settings(c *cli.Context) (settings, error) {
	s := settings{command: c}
	var errs []error
	logger, err := newLogger(e.err, c.String(flagLogLevel), c.String(flagLogFormat))
	errs = append(errs, err)
	s.logger = logger
	s.client, err = clientOptions(c, logger)
	errs = append(errs, err)
	services, err := parseServices(list(c, flagService))
	errs = append(errs, err)
	s.server = mcpserver.Options{
		Services:         services,
		Namespace:        s.client.Namespace,
		Caller:           c.String(flagCaller),
		DiscoveryTimeout: c.Duration(flagDiscoveryTimeout),
		Implementation:   &mcp.Implementation{Name: "durable-mcp-connector", Version: version()},
		Logger:           logger,
	}
	errs = append(errs, positive(c, flagDiscoveryTimeout))
	if err := errors.Join(errs...); err != nil {
		return settings{}, usageError{err}
	}
	return s, nil
}

// serveSettings adds the flags of the serve command.
func (e env) serveSettings(c *cli.Context) (settings, error) {
	s, err := e.settings(c)
	errs := []error{err}
	o := &s.server
	o.WaitBudget, o.RefreshInterval, o.TaskAfter = c.Duration(flagWaitBudget), c.Duration(flagRefreshInterval), c.Duration(flagTaskAfter)
	o.ProgressInterval = c.Duration(flagProgressInterval)
	o.DisableTasks, o.HidePollTools = c.String(flagTasks) == "off", c.String(flagPollTools) == "off"
	o.AllowHosts, o.AllowOrigins = list(c, flagAllowHost), list(c, flagAllowOrigin)
	errs = append(errs,
		positive(c, flagWaitBudget), positive(c, flagRefreshInterval), positive(c, flagTaskAfter),
		positive(c, flagProgressInterval), positive(c, flagShutdownTimeout),
		oneOf(c, flagTransport, "stdio", "http"), oneOf(c, flagTasks, "auto", "off"), oneOf(c, flagPollTools, "on", "off"))
	if c.String(flagTransport) == "http" {
		host, _, err := net.SplitHostPort(c.String(flagListen))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--%s: %q is no HOST:PORT: %w", flagListen, c.String(flagListen), err))
		case !mcpserver.IsLoopback(host) && len(o.AllowHosts) == 0:
			errs = append(errs, fmt.Errorf("--%s: %q is reachable from other machines; name the hosts that requests may be for with --%s",
				flagListen, c.String(flagListen), flagAllowHost))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return settings{}, usageError{err}
	}
	return s, nil
}

func positive(c *cli.Context, flag string) error {
	if d := c.Duration(flag); d <= 0 {
		return fmt.Errorf("--%s: %v, want a time above zero", flag, d)
	}
	return nil
}

func oneOf(c *cli.Context, flag string, values ...string) error {
	if !slices.Contains(values, c.String(flag)) {
		return fmt.Errorf("--%s: %q, want %s", flag, c.String(flag), strings.Join(values, " or "))
	}
	return nil
}

// list returns the values of a repeatable flag. One value may hold several,
// separated by spaces, as an environment variable has to.
func list(c *cli.Context, flag string) []string {
	var values []string
	if l, ok := c.Generic(flag).(*listFlag); ok {
		for _, v := range l.values {
			values = append(values, strings.Fields(v)...)
		}
	}
	return values
}

func parseServices(values []string) ([]catalog.Service, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("--%s: there is none; name at least one service, like --%s my-tools=my-endpoint", flagService, flagService)
	}
	var services []catalog.Service
	var errs []error
	for _, v := range values {
		s, err := parseService(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %q: %w", flagService, v, err))
			continue
		}
		services = append(services, s)
	}
	return services, errors.Join(errs...)
}

func parseService(value string) (catalog.Service, error) {
	parts := strings.Split(value, ",")
	name, endpoint, hasEndpoint := strings.Cut(parts[0], "=")
	s := catalog.Service{Name: name, Endpoint: endpoint}
	if name == "" {
		return s, errors.New("the name is empty; want NAME[=ENDPOINT][,prefix=P]")
	}
	if hasEndpoint && endpoint == "" {
		return s, errors.New("the endpoint is empty; want NAME[=ENDPOINT][,prefix=P]")
	}
	for _, option := range parts[1:] {
		key, v, _ := strings.Cut(option, "=")
		if key != "prefix" {
			return s, fmt.Errorf("there is no option %q; want NAME[=ENDPOINT][,prefix=P]", key)
		}
		s.Prefix = v
	}
	return s, nil
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

// clientOptions are Temporal's own settings under the flags.
func clientOptions(c *cli.Context, logger *slog.Logger) (client.Options, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: c.String(flagProfile)})
	if err != nil {
		return client.Options{}, fmt.Errorf("the Temporal settings: %w", err)
	}
	if v := c.String(flagAddress); v != "" {
		profile.Address = v
	}
	if v := c.String(flagNamespace); v != "" {
		profile.Namespace = v
	}
	if v := c.String(flagCodec); v != "" {
		if profile.Codec == nil {
			profile.Codec = &envconfig.ClientConfigCodec{}
		}
		profile.Codec.Endpoint = v
	}
	if codec := profile.Codec; codec != nil && codec.Endpoint != "" {
		if u, err := url.Parse(codec.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return client.Options{}, fmt.Errorf("--%s: %q, want an http or https URL", flagCodec, codec.Endpoint)
		}
	}
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, fmt.Errorf("the Temporal settings: %w", err)
	}
	if o.HostPort == "" {
		o.HostPort = client.DefaultHostPort
	}
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	o.DataConverter = converter.GetDefaultDataConverter()
	if codec := profile.Codec; codec != nil && codec.Endpoint != "" {
		o.DataConverter = remoteCodec(*codec, o.Namespace)
	}
	o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter})
	o.Interceptors = []interceptor.ClientInterceptor{operation.Interceptor()}
	o.Logger = sdklog.NewStructuredLogger(logger)
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(compress))
	return o, nil
}

// codecTimeout bounds one request to the remote codec, which knows nothing of the
// deadlines of the call that it is for.
const codecTimeout = 10 * time.Second

// remoteCodec is the converter that envconfig would make, with a timeout, for the
// namespace that is called from, which need not be configured, and with its errors
// marked.
func remoteCodec(c envconfig.ClientConfigCodec, namespace string) converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), operation.Codec(converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: c.Endpoint,
		Client:   http.Client{Timeout: codecTimeout},
		ModifyRequest: func(req *http.Request) error {
			req.Header.Set("X-Namespace", namespace)
			if c.Auth != "" {
				req.Header.Set("Authorization", c.Auth)
			}
			return nil
		},
	})))
}
