package mcpworkflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/workflow"
)

// List returns the tools of all services. It asks them when the client is first
// used, all at once and every page; from then on the answer is the same until
// [Client.Refresh]. Coroutines that ask at once share one answer.
//
// The error is the cancellation of ctx, or a [*contract.Failure] that names each
// service which does not answer; the next List asks again then. See
// [Options.Partial].
func (c *Client) List(ctx workflow.Context) (*Snapshot, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	if c.drifted != nil {
		return nil, c.drifted
	}
	if c.snapshot != nil && (c.checked || c.options.Drift == DriftUnchecked || c.options.Snapshot == nil) {
		return c.snapshot, nil
	}
	return c.ask(ctx, c.settle)
}

// Refresh asks the services again, and has the client use what they answer. Where
// it fails, the client keeps what it had. Calls that are under way are left as
// they are. Compare [Snapshot.Hash] to see whether anything changed.
func (c *Client) Refresh(ctx workflow.Context) (*Snapshot, error) {
	if err := c.use(ctx); err != nil {
		return nil, err
	}
	if c.listing != nil { // it may have begun before what the caller knows has happened
		if err := wait(ctx, c.listing); err != nil {
			return nil, err
		}
	}
	clear(c.endpoints)
	return c.ask(ctx, func(ctx workflow.Context, fresh *Snapshot, err error) error {
		if err != nil {
			return err
		}
		c.adopt(ctx, fresh)
		return nil
	})
}

// ask lists, or waits for the list under way, and returns the client's snapshot
// then. Who asked may be cancelled while others wait, so the list has a context
// of its own.
func (c *Client) ask(ctx workflow.Context, done func(workflow.Context, *Snapshot, error) error) (*Snapshot, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.listing == nil {
		calm, _ := workflow.NewDisconnectedContext(ctx)
		listing, settable := workflow.NewFuture(calm)
		c.listing = listing
		workflow.Go(calm, func(ctx workflow.Context) {
			fresh, err := c.list(ctx)
			c.listing = nil
			settable.Set(nil, done(ctx, fresh, err))
		})
	}
	listing := c.listing
	if err := wait(ctx, listing); err != nil {
		return nil, err
	}
	if err := listing.Get(ctx, nil); err != nil {
		return nil, err
	}
	return c.snapshot, nil
}

// settle takes the first list, or compares it with the snapshot that the client
// was given.
func (c *Client) settle(ctx workflow.Context, fresh *Snapshot, err error) error {
	given := c.options.Snapshot
	if given == nil {
		if err == nil {
			c.adopt(ctx, fresh)
		}
		return err
	}
	if c.options.Drift == DriftFail && err != nil {
		return err
	}
	if err == nil && fresh.Hash() == given.Hash() {
		c.checked = true
		return nil
	}
	message := fmt.Sprintf("the tools are not those of the snapshot (hash %s): ", given.Hash())
	if err != nil {
		message = "the snapshot could not be compared with the services: " + err.Error()
	} else {
		message += difference(given, fresh)
	}
	if c.options.Drift == DriftFail {
		c.drifted = invalid("mcpworkflow: Options.Snapshot: %s", message)
		return c.drifted
	}
	c.checked = true
	drifted := *given
	drifted.drift = message
	c.adopt(ctx, &drifted)
	return nil
}

func (c *Client) adopt(ctx workflow.Context, s *Snapshot) {
	c.snapshot, c.checked, c.drifted = s, true, nil
	for _, w := range s.Warnings() {
		workflow.GetLogger(ctx).Warn("mcpworkflow: " + w)
	}
}

// difference names the tools in which two snapshots differ.
func difference(given, fresh *Snapshot) string {
	var parts []string
	for _, e := range given.Entries {
		now, ok := fresh.Find(e.Name)
		switch {
		case !ok:
			parts = append(parts, fmt.Sprintf("%q is gone", e.Name))
		case now.Service != e.Service || contract.Digest(now.Tool.Raw) != contract.Digest(e.Tool.Raw):
			parts = append(parts, fmt.Sprintf("%q has changed", e.Name))
		}
	}
	for _, e := range fresh.Entries {
		if _, ok := given.Find(e.Name); !ok {
			parts = append(parts, fmt.Sprintf("%q is new", e.Name))
		}
	}
	const most = 10
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// list asks all services at once.
func (c *Client) list(ctx workflow.Context) (*Snapshot, error) {
	answers := make([]answer, len(c.options.Services))
	failures := make([]*contract.Failure, len(answers))
	wg := workflow.NewWaitGroup(ctx)
	for i, s := range c.options.Services {
		answers[i].service = s
		wg.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer wg.Done()
			m, f := c.manifest(ctx, s)
			if f != nil {
				answers[i].fault, failures[i] = f.Message, f
				return
			}
			answers[i].manifest = m
		})
	}
	wg.Wait(ctx)
	var failed *contract.Failure
	var messages []string
	for i, f := range failures {
		if f == nil {
			continue
		}
		if failed == nil {
			failed = f
		}
		messages = append(messages, fmt.Sprintf("service %q: %s", answers[i].service.Name, f.Message))
	}
	if failed == nil || c.options.Partial && len(messages) < len(answers) {
		return build(answers), nil
	}
	all := *failed
	all.Message = "mcpworkflow: the tools cannot be listed: " + strings.Join(messages, "; ")
	return nil, &all
}

// manifest reads all pages of one service.
func (c *Client) manifest(ctx workflow.Context, s Service) (*contract.Manifest, *contract.Failure) {
	m, err := contract.Collect(context.Background(), func(_ context.Context, cursor string) (json.RawMessage, error) {
		timeout := c.options.DiscoveryTimeout
		return c.execute(ctx, s, contract.OperationListTools, contract.ListInput(cursor), timeout, callOptions{})
	})
	if err != nil {
		f := failureOf(err)
		if f.Code == contract.CodeTimedOut {
			f = &contract.Failure{
				Code: contract.CodeUnavailable, Retryable: true, Cause: err,
				Message: fmt.Sprintf("It did not answer within %v (endpoint %q). The likely cause is that no worker polls the endpoint's task queue.",
					c.options.DiscoveryTimeout, s.Endpoint),
			}
		}
		return nil, f
	}
	return &m, nil
}
