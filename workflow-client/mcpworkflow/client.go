package mcpworkflow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/workflow"
)

// Service is one Nexus service whose tools a Workflow calls.
type Service struct {
	// Name is that of the Nexus service.
	Name string `json:"name"`
	// Endpoint is the Nexus endpoint. Defaults to Name.
	Endpoint string `json:"endpoint,omitempty"`
	// Prefix goes before the names of the service's tools, joined by "_" unless
	// it ends with "_" or "-". Empty for none.
	Prefix string `json:"prefix,omitempty"`
}

// Options configure a [Client]. All but Services may be left out.
type Options struct {
	// Services are asked for their tools. The order decides who owns a name that
	// several have.
	Services []Service

	// DiscoveryTimeout bounds each page of a service's list, from when it is
	// asked for; the wait for MaxPending comes before that. From 3 s on. Defaults
	// to 30 s.
	DiscoveryTimeout time.Duration
	// StartTimeout is how long a call waits for a Worker to take it (Temporal's
	// schedule-to-start timeout; server 1.31). A call with a shorter timeout
	// ends with that. Defaults to 1 minute; negative is no bound.
	StartTimeout time.Duration
	// MaxPending is the most Nexus operations that the Workflow run may have
	// pending when this client starts one more. Lower it to leave room for
	// those that the Workflow starts by itself, which are never held back.
	// Another number is a change to the Workflow's code: calls go out at other
	// times. Defaults to 30, which is the server's limit.
	MaxPending int
	// MaxArgumentBytes is the most bytes of JSON that the input of a call may
	// have. Lower it where a codec makes payloads longer, raise it where external
	// storage takes them. Defaults to what fits in a payload of 2 MiB.
	MaxArgumentBytes int

	// Partial lets [Client.List] succeed where a service does not answer, as
	// long as one does: its tools are missing then, and a warning says why.
	Partial bool
	// Snapshot is a list that another client made, for example in the run before
	// continue-as-new. It is used as it is; no service is asked. Its services
	// must be those of Services, or Services empty.
	Snapshot *Snapshot
	// Drift says what becomes of a Snapshot that the services do not confirm.
	// Defaults to [DriftUnchecked].
	Drift Drift
}

// Drift says what a client does about services that have other tools by now than
// the [Snapshot] that it was given.
type Drift int

const (
	// DriftUnchecked does not ask the services.
	DriftUnchecked Drift = iota
	// DriftWarn asks them once, when the client is first used, keeps the
	// snapshot, and warns in the log and in [Snapshot.Warnings].
	DriftWarn
	// DriftFail asks them once, and if they differ fails every list and call from
	// then on with a [*contract.Failure] of the code "invalid", until
	// [Client.Refresh]. Where a service does not answer, the next use asks again.
	DriftFail
)

// The defaults of [Options].
const (
	defaultDiscoveryTimeout = 30 * time.Second
	defaultStartTimeout     = time.Minute
	defaultMaxPending       = 30 // limit.operation.concurrency of a Workflow
	defaultMaxArgumentBytes = contract.PayloadLimit - contract.PayloadOverhead
)

// Client calls tools from one Workflow run. Make it in the Workflow function. The
// coroutines of that run may share it; another run may not, since it keeps what
// this run has listed.
type Client struct {
	options  Options
	fault    error // of the options; every method returns it
	run      *run  // of the Workflow run that used the client first
	snapshot *Snapshot
	listing  workflow.Future // the list under way; nil without one
	checked  bool            // the given snapshot was compared with the services
	drifted  error           // what came of that, with DriftFail
	// endpoints are the lookups of those that were used, by name.
	endpoints map[string]workflow.Future
}

// New returns a client. It sends nothing; what is wrong with the options is the
// error of every method.
func New(o Options) *Client {
	if o.DiscoveryTimeout == 0 {
		o.DiscoveryTimeout = defaultDiscoveryTimeout
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.MaxPending == 0 {
		o.MaxPending = defaultMaxPending
	}
	if o.MaxArgumentBytes == 0 {
		o.MaxArgumentBytes = defaultMaxArgumentBytes
	}
	o.Services = slices.Clone(o.Services)
	for i := range o.Services {
		if o.Services[i].Endpoint == "" {
			o.Services[i].Endpoint = o.Services[i].Name
		}
	}
	c := &Client{options: o, snapshot: o.Snapshot, endpoints: map[string]workflow.Future{}}
	if err := o.check(); err != nil {
		c.fault = invalid("mcpworkflow: %w", err)
	}
	if o.Snapshot != nil && len(o.Services) == 0 {
		c.options.Services = o.Snapshot.services()
	}
	return c
}

// check returns every fault of the options.
func (o Options) check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Services) == 0 && o.Snapshot == nil {
		fault("Options.Services: there is none")
	}
	for i, s := range o.Services {
		if s.Name == "" {
			fault("Options.Services[%d].Name: it is empty", i)
		}
		if err := contract.CheckPrefix(s.Prefix); err != nil {
			fault("Options.Services[%d].Prefix: service %q: %w", i, s.Name, err)
		}
		if slices.Contains(o.Services[:i], s) {
			fault("Options.Services[%d]: service %q on endpoint %q is named twice", i, s.Name, s.Endpoint)
		}
	}
	if o.DiscoveryTimeout < contract.MinScheduleToClose {
		fault("Options.DiscoveryTimeout: %v, the shortest that a Temporal server can keep is %v", o.DiscoveryTimeout, contract.MinScheduleToClose)
	}
	if o.StartTimeout > 0 && o.StartTimeout < contract.MinScheduleToClose {
		fault("Options.StartTimeout: %v, the shortest that a Temporal server can keep is %v", o.StartTimeout, contract.MinScheduleToClose)
	}
	if o.MaxPending < 1 {
		fault("Options.MaxPending: %d, want 1 or more", o.MaxPending)
	}
	if o.MaxArgumentBytes < 1 {
		fault("Options.MaxArgumentBytes: %d, want 1 or more", o.MaxArgumentBytes)
	}
	if o.Drift < DriftUnchecked || o.Drift > DriftFail {
		fault("Options.Drift: %d is none of the constants", o.Drift)
	}
	if o.Snapshot != nil && len(o.Services) > 0 && !slices.Equal(o.Services, o.Snapshot.services()) {
		fault("Options.Snapshot: it was made of other services than Options.Services names: " +
			"leave Services out, or list anew without a Snapshot")
	}
	return errors.Join(errs...)
}

// use ties the client to the Workflow run of ctx.
func (c *Client) use(ctx workflow.Context) error {
	if c.fault != nil {
		return c.fault
	}
	r := runOf(ctx)
	if c.run == nil {
		c.run = r
	}
	if c.run != r {
		return invalid("mcpworkflow: the Client belongs to another Workflow run; make one in the Workflow function with New")
	}
	return nil
}

// invalid is a failure that the Workflow's author can mend.
func invalid(format string, args ...any) *contract.Failure {
	err := fmt.Errorf(format, args...)
	return &contract.Failure{Code: contract.CodeInvalid, Message: err.Error(), Cause: errors.Unwrap(err)}
}
