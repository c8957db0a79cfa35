package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// callTool calls an operation of a service in the test environment of the Go SDK,
// which takes the place of a Worker.
func callTool(service *mcptool.Service, name, operation, input string, workflows ...any) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet())
	env := suite.NewTestWorkflowEnvironment()
	for _, w := range workflows {
		env.RegisterWorkflow(w)
	}
	if err := service.Register(env); err != nil {
		fmt.Println(err)
		return
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) (string, error) {
		future := workflow.NewNexusClient("endpoint", name).ExecuteOperation(ctx, operation,
			resultmap.RawValue(json.RawMessage(input)), workflow.NexusOperationOptions{})
		var output converter.RawValue
		if err := future.Get(ctx, &output); err != nil {
			return "", err
		}
		return string(output.Payload().GetData()), nil
	})
	if err := env.GetWorkflowError(); err != nil {
		fmt.Println(resultmap.FromError(err).Message)
		return
	}
	var output string
	_ = env.GetWorkflowResult(&output)
	fmt.Println(output)
}

type lookupInput struct {
	Key   string `json:"key" jsonschema:"what to look up" mcp:"minLength=1"`
	Limit int    `json:"limit,omitempty" mcp:"minimum=1,maximum=100,default=10"`
}

type lookupOutput struct {
	Found []string `json:"found"`
	Limit int      `json:"limit"`
}

func ExampleAdd() {
	lookup := nexus.NewSyncOperation("lookup", func(_ context.Context, in lookupInput, _ nexus.StartOperationOptions) (lookupOutput, error) {
		if in.Key == "secret" {
			return lookupOutput{}, mcptool.ToolError("That key is not for you; try another.")
		}
		return lookupOutput{Found: []string{in.Key + "!"}, Limit: in.Limit}, nil
	})

	tools := mcptool.NewService("my-tools")
	mcptool.Add(tools, lookup, mcptool.Tool{
		Title:       "Look up a key",
		Description: "Find what is stored under a key.",
		Annotations: mcptool.Annotations{ReadOnlyHint: true},
	})

	callTool(tools, "my-tools", "lookup", `{"key":"a"}`)
	callTool(tools, "my-tools", "lookup", `{"limit":1000}`)
	callTool(tools, "my-tools", "lookup", `{"key":"secret"}`)
	// Output:
	// {"found":["a!"],"limit":10}
	// arguments.limit: maximum: 1000, want at most 100
	// arguments.key: required: missing
	// That key is not for you; try another.
}

type reportInput struct {
	Month string `json:"month" mcp:"pattern=^[0-9]{4}-[0-9]{2}$"`
}

func writeReport(ctx workflow.Context, in reportInput) (string, error) {
	if err := workflow.Sleep(ctx, time.Hour); err != nil {
		return "", err
	}
	return mcptool.CheckResult("The report for " + in.Month)
}

func ExampleWorkflowID() {
	report := temporalnexus.NewWorkflowRunOperation("write_report", writeReport,
		func(_ context.Context, _ reportInput, options nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: mcptool.WorkflowID("report", options.RequestID)}, nil
		})

	tools := mcptool.NewService("reports")
	mcptool.Add(tools, report, mcptool.Tool{
		Description:            "Write the report of a month. It takes an hour.",
		ScheduleToCloseTimeout: 2 * time.Hour,
	})

	callTool(tools, "reports", "write_report", `{"month":"2026-11"}`, writeReport)
	// Output:
	// "The report for 2026-11"
}

type chargeInput struct {
	Cents int64 `json:"cents" mcp:"minimum=1"`
}

func ExampleNewActivityOperation() {
	charge := mcptool.NewActivityOperation("charge_card", func(_ context.Context, in chargeInput) (string, error) {
		return fmt.Sprintf("charged %d", in.Cents), nil // whatever must not happen twice
	}, mcptool.ActivityOptions{})

	tools := mcptool.NewService("payments")
	mcptool.Add(tools, charge, mcptool.Tool{Description: "Charge the card."})

	callTool(tools, "payments", "charge_card", `{"cents":9007199254740993}`)
	// Output:
	// "charged 9007199254740993"
}

func ExampleResult() {
	chart := nexus.NewSyncOperation("chart", func(context.Context, nexus.NoValue, nexus.StartOperationOptions) (mcptool.Result, error) {
		return mcptool.Content(
			map[string]string{"type": "text", "text": "The chart."},
			map[string]string{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
		).WithStructured(map[string]int{"points": 2}), nil
	})

	tools := mcptool.NewService("charts")
	mcptool.Add(tools, chart, mcptool.Tool{Description: "Draw the chart.", Annotations: mcptool.Annotations{ReadOnlyHint: true}})

	callTool(tools, "charts", "chart", `{"arguments":{}}`)
	// Output:
	// {"content":[{"text":"The chart.","type":"text"},{"data":"iVBORw0KGgo=","mimeType":"image/png","type":"image"}],"structuredContent":{"points":2}}
}

func ExampleRetry() {
	fetch := nexus.NewSyncOperation("fetch", func(context.Context, nexus.NoValue, nexus.StartOperationOptions) (string, error) {
		return "", mcptool.Retry(errors.New("busy")) // Temporal calls again, for a minute at most
	})

	tools := mcptool.NewService("fetcher")
	mcptool.Add(tools, fetch, mcptool.Tool{
		Description:            "Fetch it.",
		Annotations:            mcptool.Annotations{IdempotentHint: true},
		ScheduleToCloseTimeout: time.Minute,
	})

	callTool(tools, "fetcher", "fetch", `{}`) // the test environment calls once
	// Output:
	// The service did not take the call: busy
}

func ExampleService_Register() {
	tools := mcptool.NewService("my-tools", mcptool.ServiceOptions{Logger: slog.New(slog.DiscardHandler)})
	mcptool.Add(tools, nexus.NewSyncOperation("run report", func(_ context.Context, in string, _ nexus.StartOperationOptions) (string, error) {
		return in, nil
	}), mcptool.Tool{ScheduleToCloseTimeout: time.Second})
	fmt.Println(tools.Register(&registry{}))
	// Output:
	// mcptool: my-tools: tool "run report": description: missing
	// mcptool: my-tools: tool "run report": inputSchema: the operation takes string, whose JSON is no object
	// mcptool: my-tools: tool "run report": ScheduleToCloseTimeout: 1s; the Temporal server cannot keep less than 3s: calls would time out on their way to the Worker
	// mcptool: my-tools: tool "run report": name: the name "run report" has ' '; only letters, digits, _ and - of ASCII are allowed
}

type deleteInput struct {
	Path string `json:"path" jsonschema:"what to delete"`
}

func ExampleInputRequired() {
	remove := nexus.NewSyncOperation("delete", func(ctx context.Context, in deleteInput, _ nexus.StartOperationOptions) (mcptool.Result, error) {
		var answer struct {
			Action string `json:"action"`
		}
		if raw, ok := mcptool.InputResponses(ctx)["confirm"]; ok {
			if err := json.Unmarshal(raw, &answer); err != nil {
				return mcptool.Result{}, mcptool.ToolError("The answer is no object.")
			}
		}
		switch {
		case answer.Action == "accept":
			return mcptool.Text(in.Path + " is deleted."), nil
		case answer.Action != "":
			return mcptool.Text("Nothing is deleted."), nil
		case !mcptool.CanAsk(ctx, "elicitation/create"):
			return mcptool.Result{}, mcptool.ToolError("This needs a confirmation, and a client that asks for one.")
		}
		return mcptool.InputRequired(map[string]mcptool.InputRequest{"confirm": {
			Method: "elicitation/create",
			Params: map[string]any{
				"message":         "Delete " + in.Path + "?",
				"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
			},
		}}, ""), nil
	})

	tools := mcptool.NewService("files")
	mcptool.Add(tools, remove, mcptool.Tool{
		Description: "Delete a file, once a person has confirmed it.",
		Annotations: mcptool.Annotations{IdempotentHint: true},
	})

	callTool(tools, "files", "delete", `{"arguments":{"path":"a.txt"},"inputResponses":{"confirm":{"action":"accept"}}}`)
	callTool(tools, "files", "delete", `{"arguments":{"path":"a.txt"},"inputResponses":{"confirm":{"action":"decline"}}}`)
	callTool(tools, "files", "delete", `{"arguments":{"path":"a.txt"}}`)
	callTool(tools, "files", "delete", `{"arguments":{"path":"a.txt"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`)
	// Output:
	// {"content":[{"type":"text","text":"a.txt is deleted."}]}
	// {"content":[{"type":"text","text":"Nothing is deleted."}]}
	// This needs a confirmation, and a client that asks for one.
	// {"resultType":"input_required","inputRequests":{"confirm":{"method":"elicitation/create","params":{"message":"Delete a.txt?","requestedSchema":{"properties":{},"type":"object"}}}}}
}
