package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/temporalnexus"
)

type numbers struct {
	Int   int64           `json:"int,omitempty"`
	Uint  uint64          `json:"uint,omitempty"`
	Any   any             `json:"any,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Float *float64        `json:"float,omitempty"`
	Text  string          `json:"text,omitempty"`
}

var exactInputs = []string{
	`{"int":9007199254740993}`,
	`{"int":-9223372036854775808}`,
	`{"uint":18446744073709551615}`,
	`{"any":9007199254740993}`,
	`{"any":{"a":[1917043659912705296,1.0,1e400,-0,123456789012345678901234567890]}}`,
	`{"raw":1e400}`,
	`{"raw":[-0,1.0,123456789012345678901234567890,{"b":1,"a":2,"b":3}]}`,
	`{"raw":"\ud800 \udfff \u0000"}`,
	`{"text":"<b>&é"}`,
}

func TestNumbersArriveAndLeaveExact(t *testing.T) {
	t.Parallel()

	echo := func(_ context.Context, in numbers) (numbers, error) { return in, nil }
	s := mcptool.NewService("numbers")
	mcptool.Add(s, sync("sync", echo), readOnly("Echo."))
	mcptool.Add(s, mcptool.NewActivityOperation("activity", echo, mcptool.ActivityOptions{}), readOnly("Echo."))
	mcptool.Add(s, sync("raw", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }), readOnly("Echo."))
	c := serve(t, s, "numbers")

	for _, input := range exactInputs {
		require.Equal(t, input, c.ok("sync", input))
		require.Equal(t, input, c.ok("activity", input))
	}
	require.Equal(t, `{"int":1000}`, c.ok("sync", `{"int":1e3}`))
	require.Equal(t, `{"int":3}`, c.ok("sync", `{"int":3.0}`))
	const raw = `{ "b" : 1e400, "a":"\ud800<", "b":-0 , "c":9007199254740993}`
	require.Equal(t, raw, c.ok("raw", raw))

	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	require.Equal(t, `{"any":`+deep+`}`, c.ok("sync", `{"any":`+deep+`}`))

	require.Equal(t, "arguments.uint: type: number 18446744073709551616 does not fit in uint64", c.answers("sync", `{"uint":18446744073709551616}`))
	require.Equal(t, "arguments.float: type: number 1e400 does not fit in float64", c.answers("sync", `{"float":1e400}`))
}

func TestFailuresOfASyncTool(t *testing.T) {
	t.Parallel()

	var runs, retries atomic.Int64
	s := mcptool.NewService("failures")
	mcptool.Add(s, sync("fail", func(_ context.Context, in modeInput) (any, error) {
		runs.Add(1)
		switch in.Mode {
		case "error":
			return nil, fmt.Errorf("outer: %w", errBoom)
		case "panic":
			panic("a bug")
		case "toolerror":
			return nil, fmt.Errorf("wrapped: %w", mcptool.ToolError("try another key"))
		case "application":
			return nil, fmt.Errorf("outer: %w", sdktemporal.NewApplicationError("it broke", "Broken", "a detail", 9007199254740993))
		case "huge":
			return strings.Repeat("x", contract.PayloadLimit), nil
		case "hugeerror":
			return nil, mcptool.ToolError(strings.Repeat("x", contract.PayloadLimit))
		case "unencodable":
			return func() {}, nil
		case "retry":
			if retries.Add(1) < 3 {
				return nil, mcptool.Retry(errBoom)
			}
		case "handler":
			return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeConflict, "in the way")
		case "operation":
			return nil, nexus.NewOperationFailedErrorf("it failed")
		case "canceled":
			return nil, sdktemporal.NewCanceledError()
		case "garbage":
			return nil, fmt.Errorf("bytes \xff%s: %w", strings.Repeat("x", 100<<10), sdktemporal.NewApplicationError("it broke", "Broken"))
		case "unavailable":
			return nil, serviceerror.NewUnavailable("no answer")
		}
		return in.Mode, nil
	}), mcptool.Tool{Description: "Fail.", Annotations: mcptool.Annotations{IdempotentHint: true}})
	c := serve(t, s, "failures")

	require.Equal(t, "try another key", c.answers("fail", `{"mode":"toolerror"}`))
	f := c.fails("fail", `{"mode":"error"}`)
	require.Equal(t, contract.CodeFailed, f.Code)
	require.Equal(t, "outer: boom", f.Message)
	require.False(t, f.Retryable)
	require.Equal(t, "panic: a bug", c.fails("fail", `{"mode":"panic"}`).Message)
	require.Contains(t, c.fails("fail", `{"mode":"unencodable"}`).Message, "cannot be JSON")
	require.Equal(t, "no answer", c.fails("fail", `{"mode":"unavailable"}`).Message)
	f = c.fails("fail", `{"mode":"garbage"}`)
	require.Contains(t, f.Message, "bytes \uFFFDxxx")
	require.Less(t, len(f.Message), 17<<10)

	f = c.fails("fail", `{"mode":"application"}`)
	require.Equal(t, "outer: it broke", f.Message)
	require.Equal(t, "Broken", f.Type)
	chain, details := f.Cause, 0
	for application := new(sdktemporal.ApplicationError); chain != nil && !application.HasDetails(); chain = application.Unwrap() {
		require.ErrorAs(t, chain, &application)
		if application.HasDetails() {
			var detail string
			var exact int64
			require.NoError(t, application.Details(&detail, &exact))
			require.Equal(t, "a detail", detail)
			require.EqualValues(t, 9007199254740993, exact)
			details++
		}
	}
	require.Equal(t, 1, details)

	for _, mode := range []string{"huge", "hugeerror"} {
		f = c.fails("fail", `{"mode":"`+mode+`"}`)
		require.Equal(t, contract.CodePayloadTooLarge, f.Code)
		require.Regexp(t, `^The (error )?result would take 2097\d\d\d bytes`, f.Message)
	}
	f = c.fails("fail", `{"mode":"handler"}`)
	require.Contains(t, f.Message, "in the way")
	require.Equal(t, "CONFLICT", f.Type)
	require.Equal(t, "it failed", c.fails("fail", `{"mode":"operation"}`).Message)
	require.Equal(t, contract.CodeCanceled, c.fails("fail", `{"mode":"canceled"}`).Code)
	require.EqualValues(t, 12, runs.Load(), "none of them ran twice")

	require.Equal(t, `"retry"`, c.ok("fail", `{"mode":"retry"}`))
	require.EqualValues(t, 3, retries.Load())
}

func TestAStartThatTemporalDoesNotAnswerIsRepeated(t *testing.T) {
	t.Parallel()

	var starts atomic.Int64
	op := temporalnexus.MustNewTemporalOperation(temporalnexus.TemporalOperationOptions[nexus.NoValue, string]{
		Name: "start",
		Start: func(context.Context, temporalnexus.NexusClient, nexus.NoValue, temporalnexus.StartTemporalOperationOptions) (temporalnexus.TemporalOperationResult[string], error) {
			switch starts.Add(1) {
			case 1:
				return temporalnexus.TemporalOperationResult[string]{}, serviceerror.NewUnavailable("no answer")
			case 2:
				return temporalnexus.TemporalOperationResult[string]{}, fmt.Errorf("start: %w", &serviceerror.ResourceExhausted{Message: "too much"})
			}
			return temporalnexus.NewSyncResult("started"), nil
		},
	})
	s := mcptool.NewService("starts")
	mcptool.Add(s, op, mcptool.Tool{Description: "Start."})
	c := serve(t, s, "starts")
	require.Equal(t, `"started"`, c.ok("start", `{}`))
	require.EqualValues(t, 3, starts.Load())
}

func TestASlowSyncToolEndsBeforeItRunsAgain(t *testing.T) {
	t.Parallel()

	var runs atomic.Int64
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s := mcptool.NewService("slow", silent)
	mcptool.Add(s, sync("deaf", func(context.Context, nexus.NoValue) (nexus.NoValue, error) {
		runs.Add(1)
		<-release
		return nil, nil
	}), mcptool.Tool{Description: "Be slow."})
	mcptool.Add(s, sync("polite", func(ctx context.Context, _ nexus.NoValue) (nexus.NoValue, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}), readOnly("Be slow."))
	c := serve(t, s, "slow")
	deaf, polite := c.start("deaf", `{}`, callTimeout), c.start("polite", `{}`, callTimeout)

	_, err := c.wait(polite)
	f := failure(err)
	require.Equal(t, string(contract.CodeTimedOut), string(f.Code))
	require.Contains(t, f.Message, `The tool "polite" did not answer within the`)
	_, err = c.wait(deaf)
	f = failure(err)
	require.Equal(t, contract.CodeOutcomeUnknown, f.Code, "%v", err)
	require.Contains(t, f.Message, "may yet happen")
	require.EqualValues(t, 1, runs.Load())
}

func TestResultsOfTheMCPEncoding(t *testing.T) {
	t.Parallel()

	f := func(ctx context.Context, in modeInput) (mcptool.Result, error) {
		switch in.Mode {
		case "error":
			return mcptool.Text("it is closed").WithStructured(map[string]any{"open": false}).AsError(), nil
		case "err":
			return mcptool.Result{}, mcptool.Text("it is closed").WithMeta("example.com/why", "late").Err()
		case "bad":
			return mcptool.Content("no block"), nil
		case "huge":
			return mcptool.Text(strings.Repeat("x", contract.PayloadLimit)), nil
		case "zero":
			return mcptool.Result{}, nil
		}
		return mcptool.Content(
			json.RawMessage(`{"type":"text","text":"<b>"}`),
			map[string]any{"type": "image", "data": "AA==", "mimeType": "image/png"},
		).WithStructured(json.RawMessage(`{"n":9007199254740993,"x":1e400}`)).WithMeta("example.com/meta", mcptool.CallMeta(ctx)), nil
	}
	s := mcptool.NewService("results")
	mcptool.Add(s, sync("sync", f), readOnly("Answer."))
	mcptool.Add(s, mcptool.NewActivityOperation("activity", f, mcptool.ActivityOptions{}), readOnly("Answer."))
	c := serve(t, s, "results")

	for _, tool := range []string{"sync", "activity"} {
		require.Equal(t, `{"content":[{"type":"text","text":"<b>"},{"data":"AA==","mimeType":"image/png","type":"image"}],`+
			`"structuredContent":{"n":9007199254740993,"x":1e400},"_meta":{"example.com/meta":{"a":1.0}}}`,
			c.ok(tool, `{"arguments":{"mode":"x"},"_meta":{"a":1.0}}`))
		require.Equal(t, `{"content":[]}`, c.ok(tool, `{"arguments":{"mode":"zero"}}`))

		fail := c.fails(tool, `{"arguments":{"mode":"error"}}`)
		require.Equal(t, contract.CodeToolError, fail.Code)
		require.JSONEq(t, `{"content":[{"type":"text","text":"it is closed"}],"structuredContent":{"open":false},"isError":true}`, string(fail.Result().JSON()))
		fail = c.fails(tool, `{"arguments":{"mode":"err"}}`)
		require.JSONEq(t, `{"content":[{"type":"text","text":"it is closed"}],"_meta":{"example.com/why":"late"},"isError":true}`, string(fail.Result().JSON()))
		require.Contains(t, c.fails(tool, `{"arguments":{"mode":"bad"}}`).Message, "content[0]: a string, want an object")
		require.Equal(t, contract.CodePayloadTooLarge, c.fails(tool, `{"arguments":{"mode":"huge"}}`).Code)

		require.Contains(t, c.answers(tool, `{"mode":"x"}`), `this tool takes {"arguments": {…}}, and "mode" stands beside`)
		require.Equal(t, "arguments.mode: required: missing", c.answers(tool, `{"arguments":{}}`))
		require.Equal(t, "arguments.mode: required: missing", c.answers(tool, `{"_meta":{}}`))
		require.Equal(t, "arguments.mode: required: missing", c.answers(tool, `null`))
	}
	for _, tool := range c.manifest().Tools {
		require.Equal(t, contract.EncodingMCP, tool.Encoding)
		require.Nil(t, tool.OutputSchema)
	}
}

// headers puts Nexus headers on every call.
type headers struct {
	interceptor.ClientInterceptorBase
	interceptor.ClientOutboundInterceptorBase
	header map[string]string
}

func (h *headers) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	h.Next = next
	return h
}

func (h *headers) ExecuteNexusOperation(ctx context.Context, in *interceptor.ClientExecuteNexusOperationInput) (client.NexusOperationHandle, error) {
	for k, v := range h.header {
		in.NexusHeader.Set(k, v)
	}
	return h.Next.ExecuteNexusOperation(ctx, in)
}

func TestTheCodeKnowsWhoCalls(t *testing.T) {
	t.Parallel()

	f := func(ctx context.Context, _ nexus.NoValue) ([]string, error) {
		return []string{mcptool.IdempotencyKey(ctx), mcptool.Caller(ctx), string(mcptool.CallMeta(ctx))}, nil
	}
	s := mcptool.NewService("who")
	mcptool.Add(s, sync("sync", f), readOnly("Say who."))
	mcptool.Add(s, mcptool.NewActivityOperation("activity", f, mcptool.ActivityOptions{}), readOnly("Say who."))
	s.AddOperation(mcptool.NewActivityOperation("plain", f, mcptool.ActivityOptions{}))
	c := serve(t, s, "who")
	require.Equal(t, `["","",""]`, c.ok("sync", `{}`))

	named, err := client.Dial(client.Options{
		HostPort: server.FrontendHostPort(), Logger: quiet(),
		Interceptors: []interceptor.ClientInterceptor{&headers{header: map[string]string{
			contract.HeaderIdempotencyKey: "k1", contract.HeaderCaller: "0123456789abcdef",
		}}},
	})
	require.NoError(t, err)
	t.Cleanup(named.Close)
	nc, err := named.NewNexusClient(client.NexusClientOptions{Endpoint: c.endpoint, Service: c.service})
	require.NoError(t, err)
	for _, tool := range []string{"sync", "activity", "plain"} {
		handle, err := nc.ExecuteOperation(t.Context(), tool, nil, client.StartNexusOperationOptions{
			ID: "who-" + tool + c.endpoint, ScheduleToCloseTimeout: callTimeout,
		})
		require.NoError(t, err)
		output, err := c.wait(handle)
		require.NoError(t, err)
		require.Equal(t, `["k1","0123456789abcdef",""]`, output)
	}
}

func TestTheManifestComesInPages(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("pages")
	for i := range 5 {
		tool := readOnly(strings.Repeat("x", contract.ManifestPageBytes/2))
		mcptool.Add(s, sync(fmt.Sprintf("tool%d", i), greet), tool)
	}
	c := serve(t, s, "pages")
	require.Len(t, c.manifest().Tools, 5)
	first, err := contract.DecodeManifest(json.RawMessage(c.ok(contract.OperationListTools, `null`)))
	require.NoError(t, err)
	require.NotEmpty(t, first.NextCursor)
	for _, input := range []string{`{"cursor":"other"}`, `{"cursor":1}`, `"x"`} {
		f := c.fails(contract.OperationListTools, input)
		require.Equal(t, "BAD_REQUEST", f.Type)
		require.Contains(t, f.Message, contract.OperationListTools)
	}
}

func TestAServiceHasMoreThanOneWorker(t *testing.T) {
	t.Parallel()

	s := mcptool.NewService("many")
	mcptool.Add(s, sync("greet", greet), readOnly("Greet."))
	for range 2 {
		c := serve(t, s, "many")
		require.Equal(t, `{"text":"Hello, x!"}`, c.ok("greet", `{"name":"x"}`))
	}
}
