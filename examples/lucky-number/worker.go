package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
)

// serviceName is the name of the Nexus service, of its endpoint and of its task
// queue.
const serviceName = "lucky-number"

type settings struct {
	ensureEndpoint bool
	idle           time.Duration
}

// run serves the tools until SIGINT or SIGTERM. Where Temporal is, and who calls
// it, comes from the environment and from temporal.toml, as with all of
// Temporal's own tools.
func run(s settings, out io.Writer) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	c, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer c.Close()
	if s.ensureEndpoint {
		if err := ensureEndpoint(context.Background(), c, options.Namespace); err != nil {
			return err
		}
	}
	w := worker.New(c, serviceName, worker.Options{})
	if err := register(w, s.idle); err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Fprintf(out, "%s is ready; Ctrl-C stops it\n", serviceName)
	<-worker.InterruptCh()
	return nil
}

// ensureEndpoint creates the Nexus endpoint, the address by which callers find
// the Worker. One that exists stays as it is.
func ensureEndpoint(ctx context.Context, c client.Client, namespace string) error {
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	here := &nexuspb.EndpointTarget_Worker{Namespace: namespace, TaskQueue: serviceName}
	_, err := c.OperatorService().CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{
		Spec: &nexuspb.EndpointSpec{
			Name:   serviceName,
			Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{Worker: here}},
		},
	})
	if !errors.As(err, new(*serviceerror.AlreadyExists)) {
		return err
	}
	list, err := c.OperatorService().ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: serviceName})
	if err != nil {
		return err
	}
	for _, e := range list.GetEndpoints() {
		there := e.GetSpec().GetTarget().GetWorker()
		if there.GetNamespace() != here.Namespace || there.GetTaskQueue() != here.TaskQueue {
			return fmt.Errorf("the endpoint %q exists and leads elsewhere: to task queue %q in namespace %q",
				serviceName, there.GetTaskQueue(), there.GetNamespace())
		}
	}
	return nil
}
