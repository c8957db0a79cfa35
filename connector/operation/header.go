package operation

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// TraceContext is the W3C trace context of a request. Empty fields are absent.
type TraceContext struct{ Traceparent, Tracestate, Baggage string }

type headerKey struct{}

// Interceptor sets the Nexus headers of a call. The Go SDK has no other way to
// set them, so every Temporal client that goes to [New] needs it in
// client.Options.Interceptors.
func Interceptor() interceptor.ClientInterceptor { return &headerInterceptor{} }

type headerInterceptor struct {
	interceptor.ClientInterceptorBase
}

func (*headerInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	i := &headerOutbound{}
	i.Next = next
	return i
}

type headerOutbound struct {
	interceptor.ClientOutboundInterceptorBase
}

// probeID asks for a handle that only the interceptor gives. It never reaches a
// server, and works before a lazy client has dialled.
const probeID = "durable-mcp-interceptor-probe"

type probeHandle struct{ client.NexusOperationHandle }

func (h *headerOutbound) GetNexusOperationHandle(in *interceptor.ClientGetNexusOperationHandleInput) client.NexusOperationHandle {
	if in.OperationID == probeID {
		return probeHandle{}
	}
	return h.Next.GetNexusOperationHandle(in)
}

func installed(temporal client.Client) bool {
	_, ok := temporal.GetNexusOperationHandle(client.GetNexusOperationHandleOptions{OperationID: probeID}).(probeHandle)
	return ok
}

func (h *headerOutbound) ExecuteNexusOperation(ctx context.Context, in *interceptor.ClientExecuteNexusOperationInput) (client.NexusOperationHandle, error) {
	headers, _ := ctx.Value(headerKey{}).(map[string]string)
	for k, v := range headers {
		in.NexusHeader.Set(k, v)
	}
	return h.Next.ExecuteNexusOperation(ctx, in)
}

// headers returns what travels with a call: the trace context, the caller's
// hash, the idempotency key, and nothing else. Trace parts that cannot travel
// are dropped, since no call may fail for its trace.
func (c Call) headers() (map[string]string, error) {
	h := map[string]string{}
	if caller := c.Caller.Header(); caller != "" {
		h[contract.HeaderCaller] = caller
	}
	if c.IdempotencyKey != "" {
		if err := checkKey(c.IdempotencyKey); err != nil {
			return nil, err
		}
		h[contract.HeaderIdempotencyKey] = c.Params.RoundKey(c.Tool.Encoding, c.IdempotencyKey)
	}
	size := 0
	for k, v := range h {
		size += len(k) + len(v)
	}
	for _, part := range []struct{ key, value string }{
		{contract.HeaderTraceparent, c.Trace.Traceparent},
		{contract.HeaderTracestate, c.Trace.Tracestate},
		{contract.HeaderBaggage, c.Trace.Baggage},
	} {
		n := len(part.key) + len(part.value)
		if part.value == "" || size+n > contract.MaxHeaderBytes || !printable(part.value) {
			continue
		}
		size += n
		h[part.key] = part.value
	}
	return h, nil
}

const maxKeyBytes = 1024

func checkKey(key string) error {
	switch {
	case len(key) > maxKeyBytes:
		return fmt.Errorf("%s: %d bytes, at most %d are allowed", contract.MetaIdempotencyKey, len(key), maxKeyBytes)
	case !printable(key):
		return fmt.Errorf("%s: it has a control character, or bytes that are not UTF-8", contract.MetaIdempotencyKey)
	}
	return nil
}

// printable reports whether Temporal takes the text as a header's value.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
