package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// sameForBoth makes calls from a Workflow and as an MCP client of the connector,
// and wants both to see the same.
func sameForBoth(t *testing.T, service string, errands []errand) []ending {
	t.Helper()
	temporal := harness.Shared(t)
	a := newAgent(t, temporal)
	endings := a.endings(t, a.send(t, list{Services: []mcpworkflow.Service{{Name: service}}, Errands: errands}))
	peer := temporal.StartStdio(t, "--service", service).Speak(t, harness.Revision2026)
	for i, e := range errands {
		m := peer.StartTool(t, e.Tool, string(e.Args)).Answer(t)
		what := fmt.Sprintf("%s %s: the Workflow sees %+v", e.Tool, e.Args, endings[i])
		if m.Error != nil {
			if endings[i].Code == string(contract.CodeInvalid) {
				require.Equal(t, -32602, m.Error.Code, what)
				continue
			}
			p, err := contract.DecodeProtocolError(json.RawMessage(endings[i].Protocol))
			require.NoError(t, err, what)
			require.EqualValues(t, p.Code, m.Error.Code, what)
			require.Equal(t, p.Message, m.Error.Message, what)
			require.Equal(t, contract.Digest(p.Data), contract.Digest(m.Error.Data), what)
			continue
		}
		if endings[i].Code == string(contract.CodeCanceled) {
			require.Contains(t, string(m.Result), `"type":"canceled"`, what)
			continue
		}
		mine, err := contract.ParseObject(json.RawMessage(endings[i].Result))
		require.NoError(t, err, what)
		theirs, err := contract.ParseObject(m.Result)
		require.NoError(t, err, what)
		for _, key := range []string{"content", "structuredContent"} {
			require.Equal(t, contract.Digest(theirs.Get(key)), contract.Digest(mine.Get(key)), "%s, %s, the client %s", what, key, m.Result)
		}
		require.Equal(t, string(theirs.Get("isError")) == "true", string(mine.Get("isError")) == "true", what)
		r, err := contract.DecodeResult(m.Result)
		require.NoError(t, err)
		o, err := contract.DecodeResult(json.RawMessage(endings[i].Result))
		require.NoError(t, err)
		for _, key := range []string{contract.MetaFailure, contract.MetaOutcome} {
			require.Equal(t, contract.Digest(r.Meta(key)), contract.Digest(o.Meta(key)), "%s, %s", what, key)
		}
	}
	return endings
}

// Whoever calls, every way for a call to end looks the same.
func TestBothCallersSeeTheSame(t *testing.T) {
	t.Parallel()
	var errands []errand
	add := func(tool, args string) { errands = append(errands, errand{tool, json.RawMessage(args)}) }
	for _, as := range []string{"protocol", "unknown", "size", "canceled", "error", "nothing"} {
		add("fail", `{"as":"`+as+`","details":{"code":-32001,"message":"no","data":{"n":1e400}}}`)
	}
	add("fail", `{"as":"tool","details":{"content":[{"type":"text","text":"no <b>"}],"isError":true,"later":1.0}}`)
	for _, value := range []string{`null`, `"<b>\u2028"`, `[1.0,-0]`, `{"z":1,"a":9007199254740993,"a":2}`, `1e400`} {
		for _, tool := range []string{"pick", "pick_any", "slow", "act"} {
			add(tool, `{"value":`+value+`}`)
		}
	}
	add("slow", `{"fail":"It is <broken>."}`)
	add("content", `{"result":{"content":[{"type":"hologram","n":1.0}],"later":2.0}}`)
	add("content", `{"result":[]}`)
	add("big", `{"Bytes":3000000}`)
	add("no_such_tool", `{}`)
	add("echo", `[]`)
	sameForBoth(t, harness.SharedService(t).Name, errands)
}

type order struct {
	Item string `json:"item"`
	N    int    `json:"n"`
}

func deliver(ctx workflow.Context, o order) (order, error) {
	return order{Item: o.Item, N: o.N + 1}, workflow.Sleep(ctx, 200*time.Millisecond)
}

// A service of the tool SDK, with a tool of each kind.
func TestServiceOfTheToolSDK(t *testing.T) {
	t.Parallel()
	temporal := harness.Shared(t)
	name := harness.Unique("sdk")
	temporal.CreateEndpoint(t, name, name)
	service := mcptool.NewService(name)
	mcptool.Add(service, nexus.NewSyncOperation("check", func(_ context.Context, o order, _ nexus.StartOperationOptions) (order, error) {
		if o.N < 0 {
			return order{}, mcptool.ToolError("There is no such number.")
		}
		return o, nil
	}), mcptool.Tool{Description: "Checks an order.", Annotations: mcptool.Annotations{ReadOnlyHint: true}})
	mcptool.Add(service, temporalnexus.NewWorkflowRunOperation("deliver", deliver,
		func(_ context.Context, _ order, o nexus.StartOperationOptions) (client.StartWorkflowOptions, error) {
			return client.StartWorkflowOptions{ID: mcptool.WorkflowID("deliver", o.RequestID)}, nil
		}), mcptool.Tool{Description: "Delivers an order."})
	mcptool.Add(service, mcptool.NewActivityOperation("pay", func(_ context.Context, o order) (int, error) { return 100 * o.N, nil },
		mcptool.ActivityOptions{}), mcptool.Tool{Description: "Pays an order."})
	w := worker.New(temporal.Client(t), name, worker.Options{})
	w.RegisterWorkflow(deliver)
	require.NoError(t, service.Register(w))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	endings := sameForBoth(t, name, []errand{
		{"check", json.RawMessage(`{"item":"bolt","n":7}`)}, {"check", json.RawMessage(`{"item":"bolt","n":-1}`)},
		{"check", json.RawMessage(`{"item":7}`)}, {"deliver", json.RawMessage(`{"item":"bolt","n":7}`)},
		{"pay", json.RawMessage(`{"item":"bolt","n":7}`)},
	})
	require.Contains(t, endings[1].Result, "There is no such number.")
	require.Contains(t, endings[3].Result, `"structuredContent":{"item":"bolt","n":8}`)
	require.Contains(t, endings[4].Result, `"text":"700"`)
}

// The suite for callers, with an agent in a process of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	temporal := harness.Shared(t)
	name := harness.Unique("contract")
	temporal.CreateEndpoint(t, name, name)
	w := worker.New(temporal.Client(t), name, worker.Options{})
	w.RegisterNexusService(contracttest.NewService(name))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	a := newAgent(t, temporal)
	contracttest.Caller(t, func(_ context.Context, tool string, arguments json.RawMessage) contracttest.Outcome {
		e := a.endings(t, a.send(t, list{
			Services: []mcpworkflow.Service{{Name: name}}, Errands: []errand{{tool, arguments}},
		}))[0]
		switch {
		case e.Result != "":
			return contracttest.Outcome{Result: json.RawMessage(e.Result)}
		case e.Protocol != "":
			p, err := contract.DecodeProtocolError(json.RawMessage(e.Protocol))
			return contracttest.Outcome{Protocol: p, Err: err}
		case e.Code == string(contract.CodeCanceled):
			return contracttest.Outcome{Canceled: true}
		}
		return contracttest.Outcome{Err: fmt.Errorf("%+v", e)}
	})
}
