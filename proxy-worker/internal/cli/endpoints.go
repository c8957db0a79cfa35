package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/durable-mcp/durable-mcp/proxy-worker/internal/config"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
)

// endpointName is what the Temporal server takes.
var endpointName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*[a-zA-Z0-9]$`)

const maxEndpointName = 200

// checkEndpointName reports a service that no endpoint can be named as.
func checkEndpointName(s *config.Server) error {
	if endpointName.MatchString(s.Service) && len(s.Service) <= maxEndpointName {
		return nil
	}
	return fmt.Errorf("%s: --%s names the endpoint as the service, and no endpoint can be named %q: it takes 2 to %d letters, digits and -, "+
		"begins with a letter and ends with no -; give the server a service, like %q",
		s.Path, flagEnsureEndpoints, s.Service, maxEndpointName, suggestEndpointName(s.Service))
}

func suggestEndpointName(service string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, service)
	name = strings.Trim(name, "-")
	if !endpointName.MatchString(name) {
		name = strings.TrimRight("mcp-"+name, "-")
	}
	if len(name) > maxEndpointName {
		name = strings.TrimRight(name[:maxEndpointName], "-")
	}
	return name
}

// endpoint is a Nexus endpoint to a task queue.
type endpoint struct{ name, namespace, taskQueue string }

// ensureEndpoint creates the endpoint if there is none of its name. One that
// leads elsewhere is an error and stays as it is.
func ensureEndpoint(ctx context.Context, operator operatorservice.OperatorServiceClient, want endpoint, logger *slog.Logger) error {
	found, err := checkEndpoint(ctx, operator, want)
	if err != nil || found {
		return err
	}
	_, err = operator.CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{Spec: &nexuspb.EndpointSpec{
		Name: want.name,
		Target: &nexuspb.EndpointTarget{Variant: &nexuspb.EndpointTarget_Worker_{
			Worker: &nexuspb.EndpointTarget_Worker{Namespace: want.namespace, TaskQueue: want.taskQueue},
		}},
	}})
	if errors.As(err, new(*serviceerror.AlreadyExists)) { // another replica was faster
		if found, err := checkEndpoint(ctx, operator, want); err != nil || found {
			return err
		}
	}
	if err != nil {
		return want.refused("create", err)
	}
	logger.Info("Nexus endpoint created", "endpoint", want.name, "namespace", want.namespace, "task queue", want.taskQueue)
	return nil
}

// checkEndpoint reports whether the endpoint is there; one that leads elsewhere
// is an error.
func checkEndpoint(ctx context.Context, operator operatorservice.OperatorServiceClient, want endpoint) (bool, error) {
	reply, err := operator.ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: want.name})
	if err != nil {
		return false, want.refused("look up", err)
	}
	for _, e := range reply.GetEndpoints() {
		if e.GetSpec().GetName() != want.name {
			continue
		}
		target := e.GetSpec().GetTarget()
		w := target.GetWorker()
		switch {
		case w == nil:
			return false, fmt.Errorf("the Nexus endpoint %q exists and leads outside this Temporal; it is not changed: give the server another service", want.name)
		case w.GetNamespace() != want.namespace || w.GetTaskQueue() != want.taskQueue:
			return false, fmt.Errorf("the Nexus endpoint %q exists and leads to task queue %q in namespace %q, not to %q in %q; it is not changed: "+
				"mend it yourself, give the server another service, or use --%s and --%s",
				want.name, w.GetTaskQueue(), w.GetNamespace(), want.taskQueue, want.namespace, flagTaskQueue, flagNamespace)
		}
		return true, nil
	}
	return false, nil
}

// refused says how to go on where the server does not let a client manage
// endpoints.
func (e endpoint) refused(what string, err error) error {
	if errors.As(err, new(*serviceerror.PermissionDenied)) || errors.As(err, new(*serviceerror.Unimplemented)) {
		return fmt.Errorf("--%s: Temporal does not let this client %s the Nexus endpoint %q (%w); have somebody who may create it "+
			"(temporal operator nexus endpoint create --name %s --target-namespace %s --target-task-queue %s) and leave the flag out",
			flagEnsureEndpoints, what, e.name, err, e.name, e.namespace, e.taskQueue)
	}
	return fmt.Errorf("--%s: %s the Nexus endpoint %q: %w", flagEnsureEndpoints, what, e.name, err)
}
