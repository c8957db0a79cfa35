package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
)

// Status is the state of a call.
type Status string

// The states.
const (
	Running    Status = "running"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Canceled   Status = "canceled"
	Terminated Status = "terminated"
	TimedOut   Status = "timed_out"
)

// Statuses lists every [Status].
func Statuses() []Status {
	return []Status{Running, Completed, Failed, Canceled, Terminated, TimedOut}
}

var statuses = map[enumspb.NexusOperationExecutionStatus]Status{
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_RUNNING:    Running,
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_COMPLETED:  Completed,
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_FAILED:     Failed,
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_CANCELED:   Canceled,
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_TERMINATED: Terminated,
	enumspb.NEXUS_OPERATION_EXECUTION_STATUS_TIMED_OUT:  TimedOut,
}

// visibilityStatus is how a visibility query names each state.
var visibilityStatus = map[Status]string{
	Running: "Running", Completed: "Completed", Failed: "Failed",
	Canceled: "Canceled", Terminated: "Terminated", TimedOut: "TimedOut",
}

// Description is what Temporal knows of a call.
type Description struct {
	ID       string
	Endpoint string
	Service  string
	// Tool has the Nexus operation name, and from [Client.Describe] what
	// [Client.Result] needs.
	Tool    contract.Tool
	Status  Status
	Started time.Time
	Closed  time.Time // zero while it runs
	// Arguments are the call's arguments in short, for people.
	Arguments string
	// CancelRequested reports whether somebody asked for its cancellation.
	CancelRequested bool

	note        note
	taken       bool // a handler started it
	summary     func() (string, error)
	lastAttempt func() error
}

// Describe returns what Temporal knows of an operation. The error is a
// [*contract.Failure]: for an unknown ID with CodeInvalid, and with CodeUnavailable
// where a codec could not read what tells the calls apart, and how to read the
// result.
func (c *Client) Describe(ctx context.Context, id string) (Description, error) {
	d, err := c.state(ctx, id)
	if err != nil {
		return Description{}, err
	}
	if err := d.read(ctx); err != nil {
		return Description{}, undecodable(id, err)
	}
	return d, nil
}

func undecodable(id string, cause error) *contract.Failure {
	f := &contract.Failure{Code: contract.CodeUnavailable, Cause: cause, Message: fmt.Sprintf("What Temporal keeps of the operation %s cannot be decoded", id)}
	if errors.Is(cause, converter.ErrEncodingIsNotSupported) {
		f.Message += ": it is encoded, and this program has no codec for it."
		return f
	}
	f.Message += " now; try again later."
	f.Retryable = true
	return f
}

// Find returns the state of an operation, for which no codec is needed. A Temporal that
// is away or overloaded is asked again, until ctx ends. The error is that of
// [Client.Describe].
func (c *Client) Find(ctx context.Context, id string) (Description, error) {
	var pause backoff
	for told := false; ; told = true {
		d, err := c.state(ctx, id)
		if err == nil || !c.transient(err) {
			return d, err
		}
		if !told {
			c.log.Warn("temporal does not answer, asking again", "operation_id", id, "error", err)
		}
		if !pause.sleep(ctx) {
			return d, err
		}
	}
}

// state is what Temporal knows of an operation beside its payloads.
func (c *Client) state(ctx context.Context, id string) (Description, error) {
	d, err := c.handle(id).Describe(ctx, client.DescribeNexusOperationOptions{})
	if err != nil {
		if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
			return Description{}, unknown(id, err)
		}
		return Description{}, resultmap.FromError(err)
	}
	out := fromMetadata(&d.ClientNexusOperationMetadata)
	out.taken = d.OperationToken != ""
	out.CancelRequested = d.CancellationInfo != nil
	out.summary, out.lastAttempt = d.GetSummary, d.GetLastAttemptFailure
	return out, nil
}

// read reads what the call itself left in Temporal.
func (d *Description) read(ctx context.Context) error {
	if d.summary == nil {
		return nil
	}
	var summary string
	err := within(ctx, func() (err error) {
		summary, err = d.summary()
		return err
	})
	if err != nil {
		return codecFailed(err)
	}
	d.note = parseNote(summary)
	d.Tool, d.Arguments = d.note.tool(d.Tool.Name), d.note.arguments
	return nil
}

func fromMetadata(m *client.NexusOperationMetadata) Description {
	d := Description{
		ID: m.OperationID, Endpoint: m.Endpoint, Service: m.Service, Tool: contract.Tool{Name: m.Operation},
		Status: statuses[m.Status], Started: m.ScheduledTime,
	}
	if d.Status != Running {
		d.Closed = m.CloseTime
	}
	return d
}

// Filter narrows a list of calls. Zero fields do not.
type Filter struct {
	Endpoint string
	Service  string
	Tool     string // the Nexus operation name
	Status   Status
	// Limit is the most calls to return. Defaults to 20, is at most 100.
	Limit int
}

// wants reports whether the filter takes the call, whatever its status.
func (f Filter) wants(d Description) bool {
	return (f.Endpoint == "" || f.Endpoint == d.Endpoint) &&
		(f.Service == "" || f.Service == d.Service) && (f.Tool == "" || f.Tool == d.Tool.Name)
}

// maxListed bounds how many calls are read to find the latest.
const maxListed = 2000

// List returns the caller's latest calls, newest first, as Temporal's visibility has
// them and with those that this process has just started: another's call shows up
// there a moment after its start. An anonymous caller has none: its calls cannot be
// told from another's.
func (c *Client) List(ctx context.Context, caller Caller, filter Filter) ([]Description, error) {
	if caller.Name == "" {
		return nil, nil
	}
	if filter.Limit <= 0 {
		filter.Limit = 20
	}
	filter.Limit = min(filter.Limit, 100)
	calls, err := c.visible(ctx, caller, filter)
	if err != nil {
		return nil, err
	}
	for _, d := range c.recent.of(caller, filter) {
		if !slices.ContainsFunc(calls, func(o Description) bool { return o.ID == d.ID }) {
			calls = append(calls, d)
		}
	}
	// Visibility lags, and does not keep summaries.
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range calls {
		group.Go(func() error {
			if d, err := c.state(ctx, calls[i].ID); err == nil {
				_ = d.read(ctx)
				calls[i] = d
			}
			return nil // gone in the meantime, or not to be decoded: what is known must do
		})
	}
	_ = group.Wait()
	calls = slices.DeleteFunc(calls, func(d Description) bool { return filter.Status != "" && d.Status != filter.Status })
	slices.SortStableFunc(calls, newestFirst)
	return calls[:min(len(calls), filter.Limit)], nil
}

func newestFirst(a, b Description) int { return b.Started.Compare(a.Started) }

// visible returns what visibility has, newest first.
func (c *Client) visible(ctx context.Context, caller Caller, filter Filter) ([]Description, error) {
	list, err := c.temporal.ListNexusOperations(ctx, client.ListNexusOperationsOptions{Query: filter.query(caller)})
	if err != nil {
		return nil, resultmap.FromError(err)
	}
	// Visibility has those that run first, then those that closed last. No call
	// starts after it closes, so the newest starts are known once the rest closed
	// before them.
	var calls []Description
	read := 0
	for m, err := range list.Results {
		if err != nil {
			return nil, resultmap.FromError(err)
		}
		d := fromMetadata(m)
		full := len(calls) == filter.Limit
		if read++; read > maxListed || full && !d.Closed.IsZero() && d.Closed.Before(calls[len(calls)-1].Started) {
			break
		}
		if !filter.wants(d) {
			continue
		}
		at, _ := slices.BinarySearchFunc(calls, d, newestFirst)
		if calls = slices.Insert(calls, at, d); full {
			calls = calls[:filter.Limit]
		}
	}
	return calls, nil
}

func (f Filter) query(caller Caller) string {
	conditions := []string{fmt.Sprintf("(OperationId STARTS_WITH %s OR OperationId STARTS_WITH %s)",
		literal(Caller{Stdio, caller.Name}.prefix()), literal(Caller{HTTP, caller.Name}.prefix())),
		// What stands for a method of MCP, like the read of a resource, is no call.
		"Operation NOT STARTS_WITH " + literal(contract.MethodOperation(""))}
	for _, part := range []struct{ attribute, value string }{
		{"Service", f.Service}, {"Operation", f.Tool}, {"ExecutionStatus", visibilityStatus[f.Status]},
	} {
		if part.value != "" {
			conditions = append(conditions, part.attribute+" = "+literal(part.value))
		}
	}
	return strings.Join(conditions, " AND ")
}

func literal(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
