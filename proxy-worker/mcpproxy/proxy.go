package mcpproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/mcpclient"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// Proxy serves one upstream as one Nexus service. It is a plugin for the Temporal
// client of the Workers that serve it, and safe for concurrent use. Any number of
// proxies fit on one client, under different names.
type Proxy struct {
	client.PluginBase
	workerPlugin

	name      string
	options   Options
	transport mcpclient.Transport
	log       *slog.Logger

	mu      sync.Mutex
	workers map[string]*workerState // by instance key
	users   int                     // Workers that run
	runtime *runtime                // nil while none does
	starts  sync.Mutex              // held while a runtime starts
}

// workerPlugin has a name of its own: the client's has the same.
type workerPlugin = worker.PluginBase

// New returns a proxy for an upstream. The name is that of the Nexus service. It
// reports everything that is wrong at once and connects to nothing.
func New(name string, upstream Upstream, options Options) (*Proxy, error) {
	var errs []error
	if strings.TrimSpace(name) == "" {
		errs = append(errs, errors.New("the name is empty"))
	}
	errs = append(errs, options.check()...)
	p := &Proxy{name: name, options: options, workers: map[string]*workerState{}}
	if len(errs) == 0 { // the expressions are not nil
		p.options.setDefaults(name)
		p.log = p.options.Logger.With("server", name)
	}
	transport, faults := upstream.open(p.options, p.log)
	p.transport = transport
	if errs = append(errs, faults...); len(errs) > 0 {
		for i, err := range errs {
			errs[i] = fmt.Errorf("mcpproxy: %s: %w", name, err)
		}
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Name implements client.Plugin and worker.Plugin.
func (p *Proxy) Name() string { return pluginName + "." + p.name }

const pluginName = "durable-mcp.mcpproxy"

// Version is that of this module in the program.
func (p *Proxy) Version() string { return version() }
