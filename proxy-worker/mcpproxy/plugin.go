package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
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
	started    bool               // on its way, or running
	stop       context.CancelFunc // ends the wait of a start
	stopped    bool
	release    func() // of the runtime; nil while it has none
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
		if life := options.WorkerRegistryOptions; life != nil { // which the Worker holds: it may never be started, nor stopped
			goruntime.AddCleanup(life, p.forget, options.WorkerInstanceKey)
		}
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

func (p *Proxy) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, key)
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
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	state, err := p.begin(options, stop)
	if err != nil {
		return fmt.Errorf("mcpproxy: %s: %w", p.name, err)
	}
	if state == nil {
		return next(ctx, options) // the plugin is there twice
	}
	err = p.acquireRuntime(waiting)
	if err == nil && !p.keep(state) {
		p.releaseRuntime()
		err = waiting.Err()
	}
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = errors.New("the Worker was stopped while it started")
	}
	if err != nil {
		p.drop(state)
		return fmt.Errorf("mcpproxy: %s: %w", p.name, err)
	}
	if err := next(ctx, options); err != nil {
		p.drop(state)
		return err
	}
	return nil
}

// begin registers the service with a Worker that starts. The state is nil for the
// second plugin on the way to the same start.
func (p *Proxy) begin(options worker.PluginStartWorkerOptions, stop context.CancelFunc) (*workerState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	state := p.workers[options.WorkerInstanceKey]
	switch {
	case state == nil || state.calls == state.own:
		return nil, errors.New("the proxy is a plugin of the Worker only: it must be among the plugins of the Worker's client, " +
			"client.Options.Plugins, which gives it to all Workers of that client")
	case state.started:
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	if !state.registered {
		if err := p.register(options.WorkerRegistry); err != nil {
			return nil, err
		}
		state.registered = true
	}
	state.started, state.stop = true, stop
	return state, nil
}

// keep makes the runtime the state's to release, unless the Worker has been stopped.
func (p *Proxy) keep(state *workerState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !state.stopped {
		state.release = p.releaseRuntime
	}
	return !state.stopped
}

// drop releases the runtime of a Worker that does not run, if it has one.
func (p *Proxy) drop(state *workerState) {
	p.mu.Lock()
	release := state.release
	state.started, state.release = false, nil
	p.mu.Unlock()
	if release != nil {
		release()
	}
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
// It ends the wait of a start.
func (p *Proxy) StopWorker(ctx context.Context, options worker.PluginStopWorkerOptions, next func(context.Context, worker.PluginStopWorkerOptions)) {
	p.mu.Lock()
	state := p.workers[options.WorkerInstanceKey]
	delete(p.workers, options.WorkerInstanceKey)
	if state != nil {
		state.stopped = true
		if state.stop != nil {
			state.stop()
		}
	}
	p.mu.Unlock()
	next(ctx, options)
	if state != nil {
		p.drop(state)
	}
}
