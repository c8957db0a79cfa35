package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"
)

// service is the serve command with its flags resolved.
type service struct {
	settings
	options         client.Options
	taskQueue       string
	ensureEndpoints bool
	grace           time.Duration
	health          *health
}

// serveSettings resolves and checks every flag of the command; it connects to
// nothing and binds nothing.
func (e env) serveSettings(c *cli.Context) (*service, error) {
	common, err := e.settings(c, false)
	errs := []error{err}
	s := &service{
		settings: common, taskQueue: c.String(flagTaskQueue), ensureEndpoints: c.Bool(flagEnsureEndpoints),
		grace: c.Duration(flagShutdownTimeout),
	}
	s.options, err = clientOptions(c, s.logger)
	errs = append(errs, err)
	if s.grace <= 0 {
		errs = append(errs, fmt.Errorf("--%s: %v, want a time above zero", flagShutdownTimeout, s.grace))
	}
	if s.taskQueue == "" {
		errs = append(errs, fmt.Errorf("--%s: it is empty", flagTaskQueue))
	}
	errs = append(errs, checkListen(c.String(flagListen)))
	if s.ensureEndpoints {
		for i := range s.servers {
			errs = append(errs, checkEndpointName(&s.servers[i].Server))
		}
	}
	if s.file != nil && len(s.servers) == 0 {
		errs = append(errs, s.noServer())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

func (s *service) noServer() error {
	if len(s.file.Skipped) == 0 {
		return fmt.Errorf("--%s: every server of the file is disabled", flagConfig)
	}
	errs := []error{fmt.Errorf("--%s: no server is left to serve", flagConfig)}
	for _, k := range s.file.Skipped {
		errs = append(errs, k.Err)
	}
	return errors.Join(errs...)
}

func (e env) serve(c *cli.Context) error {
	s, err := e.serveSettings(c)
	if err != nil {
		return err
	}
	s.logFindings()
	temporal, err := client.NewLazyClient(s.pluggedIn())
	if err != nil {
		return usageError{err}
	}
	defer temporal.Close()
	ctx, fail := context.WithCancelCause(c.Context)
	defer fail(nil)
	s.health = &health{servers: s.servers, temporal: temporal, namespace: s.options.Namespace, taskQueue: s.taskQueue, identity: s.options.Identity}
	if address := c.String(flagListen); address != "" {
		stop, err := s.health.listen(ctx, address, s.logger, fail)
		if err != nil {
			return err
		}
		defer stop()
	}
	err = s.run(ctx, temporal, fail)
	if c.Err() != nil {
		return nil // told to stop, and what it broke off is no failure
	}
	return err
}

// pluggedIn are the client's options with every proxy as a plugin.
func (s *service) pluggedIn() client.Options {
	if s.options.Identity == "" {
		s.options.Identity = identity()
	}
	o := s.options
	for i := range s.servers {
		o.Plugins = append(o.Plugins, s.servers[i].proxy)
	}
	return o
}

// run serves until ctx ends. The upstreams come first: what is wrong with them is
// known at once, and waiting for Temporal can take for ever.
func (s *service) run(ctx context.Context, temporal client.Client, fail context.CancelCauseFunc) error {
	release, err := s.connect(ctx)
	defer release()
	if err != nil {
		return err
	}
	w, err := s.start(ctx, temporal, fail)
	if err != nil {
		return err
	}
	s.health.started.Store(true)
	s.logger.Info("serving", "servers", len(s.servers), "task queue", s.taskQueue, "temporal", s.options.HostPort, "namespace", s.options.Namespace)
	<-ctx.Done()
	s.health.started.Store(false)
	s.logger.Info("stopping; operations go on in Temporal, calls under way get a while to end", "timeout", s.grace)
	s.stop(w)
	return context.Cause(ctx)
}

// stopSlack is what the Worker gets beyond the calls' time, to tell a Temporal
// that may be away, and to end sessions.
const stopSlack = 5 * time.Second

func (s *service) stop(w worker.Worker) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(s.grace + stopSlack):
		s.logger.Warn("the Worker has not stopped in time")
	}
}

// connect connects to all upstreams at once. Release is never nil.
func (s *service) connect(ctx context.Context) (release func(), err error) {
	releases, errs := make([]func(), len(s.servers)), make([]error, len(s.servers))
	var group errgroup.Group
	for i := range s.servers {
		group.Go(func() error {
			releases[i], errs[i] = s.servers[i].proxy.Connect(ctx)
			return nil
		})
	}
	_ = group.Wait() // errs has them all
	return func() {
		var group errgroup.Group
		for _, r := range releases {
			if r != nil {
				group.Go(func() error { r(); return nil })
			}
		}
		_ = group.Wait()
	}, errors.Join(errs...)
}

// comingUp is how long a Temporal that was away may still lack what is made in it
// when it starts, such as its namespaces.
const comingUp = 15 * time.Second

// start returns a Worker that polls. While Temporal cannot be reached it tries
// again, until ctx ends.
func (s *service) start(ctx context.Context, temporal client.Client, fail context.CancelCauseFunc) (worker.Worker, error) {
	var away time.Time // when it was last
	pause := time.Second
	for {
		w, err := s.tryStart(ctx, temporal, fail)
		reason := "Temporal cannot be reached"
		switch {
		case err == nil:
			return w, nil
		case isAway(err):
			away = time.Now()
		case errors.As(err, new(*serviceerror.NamespaceNotFound)) && time.Since(away) < comingUp:
			reason = "the namespace is not there yet"
		default:
			return nil, s.explain(err)
		}
		s.logger.Warn(reason+"; trying again", "temporal", s.options.HostPort, "in", pause, "error", err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

func (s *service) tryStart(ctx context.Context, temporal client.Client, fail context.CancelCauseFunc) (worker.Worker, error) {
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := temporal.WorkflowService().DescribeNamespace(short, &workflowservice.DescribeNamespaceRequest{Namespace: s.options.Namespace}); err != nil {
		return nil, err
	}
	if s.ensureEndpoints {
		for i := range s.servers {
			target := endpoint{s.servers[i].Service, s.options.Namespace, s.taskQueue}
			if err := ensureEndpoint(short, temporal.OperatorService(), target, s.logger); err != nil {
				return nil, err
			}
		}
	}
	w := worker.New(temporal, s.taskQueue, worker.Options{
		DisableWorkflowWorker: true, // it has no Workflows
		WorkerStopTimeout:     s.grace,
		OnFatalError:          func(err error) { fail(fmt.Errorf("the Worker has stopped: %w", err)) },
	})
	return w, w.Start()
}

// explain says what to do about an answer that will stay the same.
func (s *service) explain(err error) error {
	var missing *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("there is no namespace %q at %s: create it (temporal operator namespace create -n %s), or name another with --%s",
			s.options.Namespace, s.options.HostPort, s.options.Namespace, flagNamespace)
	case errors.As(err, &denied):
		return fmt.Errorf("the namespace %q at %s is closed to this client: %w", s.options.Namespace, s.options.HostPort, err)
	}
	return err
}

// isAway reports whether Temporal may answer otherwise later.
func isAway(err error) bool {
	return errors.As(err, new(*serviceerror.Unavailable)) || errors.As(err, new(*serviceerror.DeadlineExceeded)) ||
		errors.As(err, new(*serviceerror.ResourceExhausted)) || errors.Is(err, context.DeadlineExceeded)
}
