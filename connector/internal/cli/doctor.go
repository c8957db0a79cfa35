package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/urfave/cli/v2"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// check is one line of the doctor.
type check struct {
	Check   string `json:"check"`
	Service string `json:"service,omitempty"`
	OK      bool   `json:"ok"`
	// Detail says what was found, Remedy what to do about it.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

type doctor struct {
	settings
	ops    *operation.Client
	checks []check
}

func (e env) doctor(c *cli.Context) error {
	s, err := e.settings(c)
	if err != nil {
		return err
	}
	temporalClient, err := client.NewLazyClient(s.client)
	if err != nil {
		return usageError{err}
	}
	defer temporalClient.Close()
	ops, err := operation.New(temporalClient, operation.Options{Logger: s.logger})
	if err != nil {
		return err
	}
	d := &doctor{settings: s, ops: ops}
	d.examine(c.Context)
	failed := false
	for _, k := range d.checks {
		failed = failed || !k.OK
	}
	if c.Bool(flagJSON) {
		err = printJSON(e, map[string]any{"ok": !failed, "checks": d.checks})
	} else {
		d.print(e)
	}
	if err == nil && failed {
		return exitError(exitFailed)
	}
	return err
}

func (d *doctor) print(e env) {
	for _, k := range d.checks {
		mark, name := "ok  ", k.Check
		if !k.OK {
			mark = "FAIL"
		}
		if k.Service != "" {
			name += " " + k.Service
		}
		fmt.Fprintf(e.out, "%s  %s: %s\n", mark, name, k.Detail)
		if k.Remedy != "" {
			fmt.Fprintf(e.out, "      → %s\n", k.Remedy)
		}
	}
}

func (d *doctor) add(name, service string, ok bool, detail, remedy string) bool {
	if ok {
		remedy = ""
	}
	d.checks = append(d.checks, check{name, service, ok, detail, remedy})
	return ok
}

// examine goes from the address to the manifests. A check whose ground is
// missing is not made.
func (d *doctor) examine(ctx context.Context) {
	if !d.address(ctx) {
		return
	}
	temporalClient := d.ops.Temporal()
	reply, err := temporalClient.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: d.client.Namespace})
	if !d.add("namespace", "", err == nil, detail(err, d.client.Namespace),
		"Create it (temporal operator namespace create -n "+d.client.Namespace+"), or name another with --"+flagNamespace+".") {
		return
	}
	d.add("standalone operations", "", reply.GetNamespaceInfo().GetCapabilities().GetStandaloneNexusOperation(),
		fmt.Sprintf("switched on: %t", reply.GetNamespaceInfo().GetCapabilities().GetStandaloneNexusOperation()),
		"Set nexusoperation.enableStandalone=true in the server's dynamic configuration for this namespace.")
	cat, err := catalog.New(catalog.FromOperations(d.ops), d.server.Services, catalog.Options{
		DiscoveryTimeout: d.server.DiscoveryTimeout, Check: mcpserver.CheckTool, Logger: slog.New(slog.DiscardHandler),
	})
	if !d.add("services", "", err == nil, detail(err, fmt.Sprintf("%d", len(d.server.Services))), "Mend --"+flagService+".") {
		return
	}
	cat.Refresh(ctx)
	snapshot := cat.Snapshot()
	asked := map[operation.Endpoint]bool{}
	for _, st := range snapshot.Services {
		d.endpoint(ctx, st, asked)
	}
	var warnings []string
	for _, st := range snapshot.Services {
		d.manifest(st)
		warnings = append(warnings, st.Warnings...)
	}
	d.add("names", "", len(warnings) == 0, fmt.Sprintf("%d tools are served, %d warnings", len(snapshot.Entries), len(warnings)),
		strings.Join(warnings, "\n      → "))
}

func detail(err error, ok string) string {
	if err != nil {
		return err.Error()
	}
	return ok
}

// address checks that Temporal answers at all.
func (d *doctor) address(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := d.ops.Temporal().CheckHealth(ctx, &client.CheckHealthRequest{})
	return d.add("address", "", err == nil, detail(err, d.client.HostPort),
		fmt.Sprintf("Nothing answers at %s. Start Temporal, or name its address with --%s or TEMPORAL_ADDRESS.", d.client.HostPort, flagAddress))
}

func (d *doctor) endpoint(ctx context.Context, st catalog.ServiceState, asked map[operation.Endpoint]bool) {
	s := st.Service
	target, ok, err := d.ops.Endpoint(ctx, s.Endpoint)
	switch {
	case err != nil:
		d.add("endpoint", s.Name, false, err.Error(), "The server does not tell; ask whoever runs it whether the endpoint "+s.Endpoint+" exists.")
	case !ok:
		remedy := fmt.Sprintf("temporal operator nexus endpoint create --name %s --target-namespace NAMESPACE --target-task-queue QUEUE", s.Endpoint)
		if err := contract.CheckEndpointName(s.Endpoint); err != nil {
			remedy = fmt.Sprintf("There can be none: %v. Name the right one in --%s.", err, flagService)
		}
		d.add("endpoint", s.Name, false, fmt.Sprintf("there is no endpoint %q", s.Endpoint), remedy)
	case target == operation.Endpoint{}:
		d.add("endpoint", s.Name, true, s.Endpoint+" leads outside this Temporal", "")
	default:
		d.add("endpoint", s.Name, true, fmt.Sprintf("%s leads to task queue %s in namespace %s", s.Endpoint, target.TaskQueue, target.Namespace), "")
		if !asked[target] {
			asked[target] = true
			d.callbacks(ctx, target)
		}
		d.worker(ctx, st, target)
	}
}

func (d *doctor) callbacks(ctx context.Context, target operation.Endpoint) {
	on, err := d.ops.ActivityCallbacks(ctx, target.Namespace)
	switch {
	case err != nil:
		d.add("activity callbacks", "", true, fmt.Sprintf("namespace %s does not tell: %v", target.Namespace, err), "")
	default:
		d.add("activity callbacks", "", on, fmt.Sprintf("namespace %s: switched on: %t", target.Namespace, on),
			"Activity-backed tools need activity.enableCallbacks=true in the server's dynamic configuration for that namespace.")
	}
}

func (d *doctor) worker(ctx context.Context, st catalog.ServiceState, target operation.Endpoint) {
	s := st.Service
	last, err := d.ops.LastPoll(ctx, target)
	remedy := fmt.Sprintf("Start a worker that serves %s on task queue %s in namespace %s.", s.Name, target.TaskQueue, target.Namespace)
	switch {
	case err != nil:
		d.add("worker", s.Name, true, "the server does not tell: "+err.Error(), "")
	case last.IsZero() && st.Manifest != nil: // the server tells of a new worker a moment late
		d.add("worker", s.Name, true, "a worker answered", "")
	case last.IsZero():
		d.add("worker", s.Name, false, "no worker polls the task queue for Nexus tasks", remedy)
	default:
		age := time.Since(last).Round(time.Second)
		d.add("worker", s.Name, age < operation.FreshPoll, fmt.Sprintf("a worker polled %v ago", age), remedy)
	}
}

func (d *doctor) manifest(st catalog.ServiceState) {
	switch {
	case st.Err != nil:
		d.add("manifest", st.Service.Name, false, resultmap.FromError(st.Err).Message,
			"See the lines above; if they are fine, look at the worker's log.")
		return
	case st.Manifest == nil:
		d.add("manifest", st.Service.Name, false, "the check was interrupted", "Let it finish.")
		return
	}
	d.add("manifest", st.Service.Name, true, fmt.Sprintf("%d tools", len(st.Manifest.Tools)), "")
}
