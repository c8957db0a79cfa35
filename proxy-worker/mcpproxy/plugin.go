package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
)

// callsAtOnce bounds the calls of one proxy that run or wait for a session. A
// Worker has as many activity slots for each of its proxies, so that a server
// which hangs takes none from another.
const callsAtOnce = 1000

// heartbeatThrottle bounds how long a cancel can go unheard.
const heartbeatThrottle = time.Second

// workerState is what the proxy knows of one Worker.
type workerState struct {
	calls      int // of ConfigureWorker
	own        int // of these, for the Worker's own plugins
	registered bool
	starting   bool
	running    bool
}

// ConfigureClient implements client.Plugin: it lets the proxy see the tasks that
// the client's Workers get.
func (p *Proxy) ConfigureClient(_ context.Context, options client.PluginConfigureClientOptions) error {
	connection := &options.ClientOptions.ConnectionOptions
	connection.DialOptions = append(slices.Clone(connection.DialOptions), grpc.WithChainUnaryInterceptor(p.intercept))
	return nil
}

// NewClient implements client.Plugin. A client that is made from another one uses
// its connection, and that has to have the proxy.
func (p *Proxy) NewClient(ctx context.Context, options client.PluginNewClientOptions, next func(context.Context, client.PluginNewClientOptions) error) error {
	if options.FromExisting != nil {
		probe := context.WithValue(ctx, probeKey{p}, true)
		_, err := options.FromExisting.WorkflowService().GetSystemInfo(probe, &workflowservice.GetSystemInfoRequest{})
		if !errors.Is(err, errProbed) && (err == nil || err.Error() != errProbed.Error()) {
			return fmt.Errorf("mcpproxy: %s: a client made from an existing one uses its connection: "+
				"the proxy must be among the plugins of the client that was dialed", p.name)
		}
	}
	return next(ctx, options)
}

// ConfigureWorker implements worker.Plugin.
func (p *Proxy) ConfigureWorker(_ context.Context, options worker.PluginConfigureWorkerOptions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.workers[options.WorkerInstanceKey]
	if state == nil {
		state = &workerState{}
		p.workers[options.WorkerInstanceKey] = state
		p.makeRoom(options.WorkerOptions)
	}
	state.calls++
	state.own = 0
	for _, plugin := range options.WorkerOptions.Plugins {
		if plugin == worker.Plugin(p) {
			state.own++
		}
	}
	return nil
}

// roomKey marks, in a Worker's options, that its number of slots is that of the
// proxies.
type roomKey struct{}

// makeRoom gives the Worker slots for this proxy, unless its number is the user's.
func (p *Proxy) makeRoom(o *worker.Options) {
	if d := o.MaxHeartbeatThrottleInterval; d == 0 || d > heartbeatThrottle {
		o.MaxHeartbeatThrottleInterval = heartbeatThrottle
	}
	ctx := o.BackgroundActivityContext
	if ctx == nil {
		ctx = context.Background()
	}
	ours := ctx.Value(roomKey{}) != nil
	if o.Tuner == nil && (ours || o.MaxConcurrentActivityExecutionSize == 0) {
		o.MaxConcurrentActivityExecutionSize += callsAtOnce
		o.BackgroundActivityContext = context.WithValue(ctx, roomKey{}, true)
	}
}

// StartWorker implements worker.Plugin: it connects, lists the tools and registers
// the service.
func (p *Proxy) StartWorker(ctx context.Context, options worker.PluginStartWorkerOptions, next func(context.Context, worker.PluginStartWorkerOptions) error) error {
	first, err := p.begin(options)
	if err != nil || !first {
		if err != nil {
			return fmt.Errorf("mcpproxy: %s: %w", p.name, err)
		}
		return next(ctx, options) // the plugin is there twice
	}
	started := false
	defer func() { p.started(options.WorkerInstanceKey, started) }()
	if err := p.acquireRuntime(ctx); err != nil {
		return fmt.Errorf("mcpproxy: %s: %w", p.name, err)
	}
	if err := next(ctx, options); err != nil {
		p.releaseRuntime()
		return err
	}
	started = true
	return nil
}

// begin registers the service with a Worker that starts. It reports false for the
// second plugin on the way to the same start.
func (p *Proxy) begin(options worker.PluginStartWorkerOptions) (first bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.workers[options.WorkerInstanceKey]
	switch {
	case state == nil || state.calls == state.own:
		return false, errors.New("the proxy is a plugin of the Worker only: it must be among the plugins of the Worker's client, " +
			"client.Options.Plugins, which gives it to all Workers of that client")
	case state.starting || state.running:
		return false, nil
	}
	if !state.registered {
		if err := p.register(options.WorkerRegistry); err != nil {
			return false, err
		}
		state.registered = true
	}
	state.starting = true
	return true, nil
}

func (p *Proxy) started(key string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers[key].starting, p.workers[key].running = false, ok
}

// registry is the part of a Worker that a proxy needs.
type registry interface {
	worker.NexusServiceRegistry
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

func (p *Proxy) register(r registry) (err error) {
	service, err := p.service()
	if err != nil {
		return err
	}
	defer func() {
		if v := recover(); v != nil { // the Worker's way to say that a name is taken
			err = fmt.Errorf("%v: a Worker can serve a name once", v)
		}
	}()
	r.RegisterNexusService(service)
	for name, f := range p.activities() {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return nil
}

// StopWorker implements worker.Plugin. The sessions end when the last Worker has.
func (p *Proxy) StopWorker(ctx context.Context, options worker.PluginStopWorkerOptions, next func(context.Context, worker.PluginStopWorkerOptions)) {
	next(ctx, options)
	p.mu.Lock()
	state := p.workers[options.WorkerInstanceKey]
	delete(p.workers, options.WorkerInstanceKey)
	p.mu.Unlock()
	if state != nil && state.running {
		p.releaseRuntime()
	}
}
