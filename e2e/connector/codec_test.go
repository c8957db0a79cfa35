package connector_test

import (
	"bytes"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract/contracttest"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

// mask is a codec that leaves nothing readable.
type mask struct{}

func (mask) flip(payloads []*commonpb.Payload, encoding string) []*commonpb.Payload {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data, _ := p.Marshal()
		if encoding == "" {
			data = p.GetData()
		}
		for j := range data {
			data[j] ^= 0x5a
		}
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}
		if encoding == "" {
			out[i] = &commonpb.Payload{}
			_ = out[i].Unmarshal(data)
		}
	}
	return out
}

func (m mask) Encode(p []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return m.flip(p, "binary/masked"), nil
}

func (m mask) Decode(p []*commonpb.Payload) ([]*commonpb.Payload, error) { return m.flip(p, ""), nil }

// A codec endpoint decodes and encodes what the service encodes and decodes:
// arguments, results, failures with their details, and the summaries.
func TestCodecEndpoint(t *testing.T) {
	t.Parallel()
	server := harness.Shared(t)
	codec := httptest.NewServer(converter.NewPayloadCodecHTTPHandler(mask{}))
	t.Cleanup(codec.Close)
	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), mask{})
	c, err := client.Dial(client.Options{
		HostPort: server.Address, DataConverter: dc,
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: dc, EncodeCommonAttributes: true}),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	name := harness.Unique("coded")
	server.CreateEndpoint(t, name, name)
	w := worker.New(c, name, worker.Options{})
	w.RegisterNexusService(contracttest.NewService(name))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	peer := server.StartStdio(t, "--service", name, "--codec-endpoint", codec.URL).Speak(t, harness.Revision2025November)
	res := peer.Tool(t, "echo", `{"secret":"hush","n":9007199254740993}`)
	require.False(t, res.IsError, "%s", res.Text(t))
	require.Contains(t, res.Text(t), "9007199254740993")
	var ops []harness.Operation
	require.Eventually(t, func() bool { ops = peer.Operations(t, `{}`); return len(ops) == 1 }, harness.Patience, 100*time.Millisecond)
	require.Contains(t, ops[0].Arguments, "hush")

	info, err := c.WorkflowService().DescribeNexusOperationExecution(t.Context(), &workflowservice.DescribeNexusOperationExecutionRequest{
		Namespace: harness.Namespace, OperationId: ops[0].OperationID, IncludeInput: true, IncludeOutcome: true,
	})
	require.NoError(t, err)
	stored, err := info.Marshal()
	require.NoError(t, err)
	require.False(t, bytes.Contains(stored, []byte("hush")), "Temporal has the arguments in the clear")
}
