package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// taskQueue is that of the Worker, which has all services.
const taskQueue = "garden"

type settings struct {
	weather, tokenFile, almanac string
	ensureEndpoints             bool
}

// run serves until ctx ends.
func run(ctx context.Context, s settings, logs io.Writer) error {
	logger := slog.New(slog.NewTextHandler(logs, nil))
	weather, almanac, err := newProxies(s, logger)
	if err != nil {
		return err
	}

	// The client is the place for your credentials, namespace and data converter.
	// The proxies are its plugins, and so those of all its Workers.
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = sdklog.NewStructuredLogger(logger)
	options.Plugins = append(options.Plugins, weather, almanac)
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer temporal.Close()

	if s.ensureEndpoints {
		for _, service := range []string{gardenService, weatherService, almanacService} {
			if err := ensureEndpoint(ctx, temporal, options.Namespace, service); err != nil {
				return err
			}
		}
	}
	// What is under way when the Worker stops gets some seconds to end.
	w := worker.New(temporal, taskQueue, worker.Options{WorkerStopTimeout: 10 * time.Second})
	if err := newGarden().Register(w); err != nil {
		return err
	}
	if err := w.Start(); err != nil { // connects to the MCP servers and lists their tools
		return err
	}
	defer w.Stop()
	logger.Info("proxy-library is ready; Ctrl-C stops it")
	<-ctx.Done()
	return nil
}

// ensureEndpoint creates a service's endpoint. Each service has its own, since the
// server stops asking an endpoint for a while that fails. One that exists stays as
// it is.
func ensureEndpoint(ctx context.Context, c client.Client, namespace, service string) error {
	here := &nexuspb.EndpointTarget_Worker{Namespace: namespace, TaskQueue: taskQueue}
	_, err := c.OperatorService().CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{
			Name:   service,
			Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{Worker: here}},
		},
	})
	if !errors.As(err, new(*serviceerror.AlreadyExists)) {
		return err
	}
	list, err := c.OperatorService().ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: service})
	if err != nil {
		return err
	}
	for _, e := range list.GetEndpoints() {
		there := e.GetSpec().GetTarget().GetWorker()
		if there.GetNamespace() != here.GetNamespace() || there.GetTaskQueue() != here.GetTaskQueue() {
			return fmt.Errorf("the endpoint %q exists and leads elsewhere: to task queue %q in namespace %q",
				service, there.GetTaskQueue(), there.GetNamespace())
		}
	}
	return nil
}
