package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"math/big"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// register registers the tools, and the Workflows behind them, with the Worker.
func register(w worker.Registry, idle time.Duration) error {
	w.RegisterWorkflow(BrewReport)
	w.RegisterWorkflow(TopicList)
	return newService(idle).Register(w)
}

// newService declares the tools.
func newService(idle time.Duration) *mcptool.Service {
	tools := mcptool.NewService(serviceName, mcptool.ServiceOptions{
		Instructions: "Lucky numbers, tickets, reports that take their time, and lists of topics that outlive every process.",
	})
	yes, no := true, false
	mcptool.Add(tools, luckyNumber, mcptool.Tool{
		Title:       "Lucky number",
		Description: "Tells the lucky number of a name. It is always the same one.",
		Annotations: mcptool.Annotations{ReadOnlyHint: true, OpenWorldHint: &no},
	})
	mcptool.Add(tools, drawTicket, mcptool.Tool{
		Title:                  "Draw a ticket",
		Description:            "Draws one ticket of the lottery for a name. Each call draws a new one.",
		Annotations:            mcptool.Annotations{DestructiveHint: &no, OpenWorldHint: &no},
		ScheduleToCloseTimeout: time.Minute,
	})
	mcptool.Add(tools, brewReport, mcptool.Tool{
		Title:                  "Brew a report",
		Description:            "Writes the report on a topic from tea leaves, which takes as many seconds as you give it.",
		Annotations:            mcptool.Annotations{DestructiveHint: &no, OpenWorldHint: &no},
		ScheduleToCloseTimeout: 2 * time.Hour,
	})
	mcptool.Add(tools, createTopicList(idle), mcptool.Tool{
		Title: "Create a topic list",
		Description: fmt.Sprintf("Creates an empty list of topics and returns its handle, which remember_topic takes. "+
			"Whoever has the handle can use the list; it ends after %s without use.", idle),
		Annotations:            mcptool.Annotations{DestructiveHint: &no, OpenWorldHint: &no},
		ScheduleToCloseTimeout: time.Minute,
	})
	mcptool.Add(tools, rememberTopic, mcptool.Tool{
		Title:                  "Remember a topic",
		Description:            "Adds a topic to the list with the handle, unless it is there already, and returns the whole list.",
		Annotations:            mcptool.Annotations{DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no},
		ScheduleToCloseTimeout: time.Minute,
		Kind:                   contract.KindUpdate,
	})
	mcptool.Add(tools, deleteTopicList, mcptool.Tool{
		Title:                  "Delete a topic list",
		Description:            "Deletes the list with the handle and all its topics. Nothing brings them back.",
		Annotations:            mcptool.Annotations{DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
		ScheduleToCloseTimeout: time.Minute,
	})
	return tools
}

type person struct {
	Name string `json:"name" jsonschema:"whose it is" mcp:"minLength=1,maxLength=100"`
}

type luckyNumberOutput struct {
	Name   string `json:"name"`
	Number int    `json:"number"`
}

// luckyNumber is a plain function: a synchronous operation, answered at once.
var luckyNumber = nexus.NewSyncOperation("lucky_number",
	func(_ context.Context, in person, _ nexus.StartOperationOptions) (luckyNumberOutput, error) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(in.Name))
		return luckyNumberOutput{Name: in.Name, Number: int(h.Sum32()%99) + 1}, nil
	})

type drawTicketOutput struct {
	Name   string `json:"name"`
	Ticket int64  `json:"ticket"`
}

// drawTicket must not happen twice for one call, so it is an activity: it runs at
// most once, even if its Worker dies in the middle.
var drawTicket = mcptool.NewActivityOperation("draw_ticket",
	func(_ context.Context, in person) (drawTicketOutput, error) {
		n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
		if err != nil {
			return drawTicketOutput{}, err
		}
		return drawTicketOutput{Name: in.Name, Ticket: n.Int64()}, nil
	}, mcptool.ActivityOptions{})

type brewReportInput struct {
	Topic   string `json:"topic" jsonschema:"what the report is about" mcp:"minLength=1,maxLength=200"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"how long it takes" mcp:"minimum=1,maximum=3600,default=10"`
}

type brewReportOutput struct {
	Topic      string `json:"topic"`
	Report     string `json:"report"`
	WorkflowID string `json:"workflow_id" jsonschema:"the Workflow that wrote it"`
}

// brewReport is a Workflow: nothing but the end of its time ends it, neither a
// client that leaves nor a Worker that dies.
var brewReport = temporalnexus.NewWorkflowRunOperation("brew_report", BrewReport,
	func(_ context.Context, _ brewReportInput, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
		return client.StartWorkflowOptions{ID: mcptool.WorkflowID("brew-report", o.RequestID)}, nil
	})

// BrewReport is the Workflow behind brew_report. Its timer is durable.
func BrewReport(ctx workflow.Context, in brewReportInput) (brewReportOutput, error) {
	if err := workflow.Sleep(ctx, time.Duration(in.Seconds)*time.Second); err != nil {
		return brewReportOutput{}, err
	}
	return brewReportOutput{
		Topic:      in.Topic,
		Report:     fmt.Sprintf("After %d seconds the leaves say of %s: all will be well.", in.Seconds, in.Topic),
		WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID,
	}, nil
}
