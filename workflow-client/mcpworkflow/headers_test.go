package mcpworkflow_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// call is a call of the tool "headers", or of "rounds" with a state: they return
// the headers that they got.
type call struct {
	Key, Header, Value, Summary string
	State                       string
	Timeout                     time.Duration
}

func (c call) options() (o []mcpworkflow.CallOption) {
	if c.Header+c.Value != "" {
		o = append(o, mcpworkflow.WithHeader(c.Header, c.Value))
	}
	if c.Timeout != 0 {
		o = append(o, mcpworkflow.WithTimeout(c.Timeout))
	}
	if c.State != "" {
		o = append(o, mcpworkflow.WithInput(nil, contract.Quote(c.State)))
	}
	return append(o, mcpworkflow.WithIdempotencyKey(c.Key), mcpworkflow.WithSummary(c.Summary))
}

func headersPlace(t *testing.T, o worker.Options) place {
	t.Helper()
	p := newPlace(t, "headers")
	p.serve(t, o, func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(
			toolJSON("headers", `,"_meta":{"io.temporal/scheduleToCloseTimeoutMs":50000}`),
			toolJSON("rounds", `,"_meta":{"io.temporal/encoding":"mcp"}`)),
			tool("headers", func(_ context.Context, _ json.RawMessage, o nexus.StartOperationOptions) (json.RawMessage, error) {
				return json.Marshal(o.Header)
			}),
			tool("rounds", func(_ context.Context, _ json.RawMessage, o nexus.StartOperationOptions) (json.RawMessage, error) {
				text, err := json.Marshal(o.Header)
				return contract.TextResult(string(text), false).JSON(), err
			})))
		workflowNamed(w, "headers", func(ctx workflow.Context, c call) (map[string]string, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p)})
			name := "headers"
			if c.State != "" {
				name = "rounds"
			}
			return mcpworkflow.CallAs[map[string]string](ctx, tools, name, nil, c.options()...)
		})
	})
	return p
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	p := headersPlace(t, options())
	got := func(c call) map[string]string {
		var h map[string]string
		require.NoError(t, p.start(t, "headers", c).Get(t.Context(), &h))
		return h
	}
	first, second := got(call{}), got(call{Key: "k <1>", Header: "Traceparent", Value: "00-1", Timeout: 20 * time.Second})
	require.Regexp(t, `^[0-9a-f]{16}$`, first[contract.HeaderCaller])
	require.NotEqual(t, first[contract.HeaderCaller], second[contract.HeaderCaller], "two Workflows are two callers")
	require.NotContains(t, first, contract.HeaderIdempotencyKey)
	require.Equal(t, "k <1>", second[contract.HeaderIdempotencyKey])
	require.Equal(t, "00-1", second[contract.HeaderTraceparent])

	// Of the rounds of a call each has its own key.
	rounds := map[string]bool{}
	for _, state := range []string{"a", "b"} {
		key := got(call{Key: "k", State: state})[contract.HeaderIdempotencyKey]
		require.Regexp(t, `^k/[0-9a-f]{32}$`, key)
		rounds[key] = true
	}
	require.Len(t, rounds, 2)
	require.NotContains(t, got(call{State: "a"}), contract.HeaderIdempotencyKey)

	// The manifest's timeout is the operation's, unless the call has one.
	for _, c := range []struct {
		header string
		most   time.Duration
	}{{first["operation-timeout"], 50 * time.Second}, {second["operation-timeout"], 20 * time.Second}} {
		d, err := time.ParseDuration(c.header)
		require.NoError(t, err)
		require.Greater(t, d, c.most-10*time.Second)
		require.LessOrEqual(t, d, c.most)
	}
}

func TestWithoutTheInterceptor(t *testing.T) {
	t.Parallel()
	p := headersPlace(t, worker.Options{})
	var h map[string]string
	require.NoError(t, p.start(t, "headers", call{}).Get(t.Context(), &h))
	require.NotContains(t, h, contract.HeaderCaller)
	for _, c := range []call{{Key: "k"}, {Header: "baggage", Value: "a=b"}} {
		err := p.start(t, "headers", c).Get(t.Context(), nil)
		require.ErrorContains(t, err, "add it to worker.Options.Interceptors")
	}
}

func TestBadCallOptions(t *testing.T) {
	t.Parallel()
	p := headersPlace(t, options())
	for want, c := range map[string]call{
		"WithTimeout: 2s, the shortest that a Temporal server can keep is 3s": {Timeout: 2 * time.Second},
		"WithTimeout: -1s":                                    {Timeout: -time.Second},
		"WithSummary: 201 bytes, at most 200":                 {Summary: strings.Repeat("s", 201)},
		"WithIdempotencyKey: it has a control character":      {Key: "a\nb"},
		"WithIdempotencyKey: 1025 bytes":                      {Key: strings.Repeat("k", 1025)},
		`WithHeader: "content-type": the key is reserved`:     {Header: "Content-Type", Value: "x"},
		`WithHeader: "mcp-caller": the key is reserved`:       {Header: "mcp-caller", Value: "x"},
		`WithHeader: "nexus-request-id": the key is reserved`: {Header: "Nexus-Request-Id", Value: "x"},
		`WithHeader: "a b": a key has letters`:                {Header: "a b", Value: "x"},
		`WithHeader: "": the key is empty`:                    {Header: "", Value: "x"},
		`WithHeader: "a": the value has a control character`:  {Header: "a", Value: "x\ny"},
		"WithHeader: 9070 bytes in all, at most 8192":         {Header: "a", Value: strings.Repeat("x", 9000), Key: strings.Repeat("k", 24)},
		"WithHeader: 9103 bytes in all, at most 8192":         {Header: "a", Value: strings.Repeat("x", 9000), Key: strings.Repeat("k", 24), State: "s"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, p.start(t, "headers", c).Get(t.Context(), nil), want)
		})
	}
}
