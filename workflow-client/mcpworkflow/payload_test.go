package mcpworkflow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/durable-mcp/durable-mcp/workflow-client/mcpworkflow"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// mask is a codec that leaves nothing readable.
type mask struct{}

func (mask) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	masked := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		masked[i] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/masked")}, Data: flip(data)}
	}
	return masked, nil
}

func (mask) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	plain := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain[i] = &commonpb.Payload{}
		if err := plain[i].Unmarshal(flip(bytes.Clone(p.GetData()))); err != nil {
			return nil, err
		}
	}
	return plain, nil
}

func flip(data []byte) []byte {
	for i := range data {
		data[i] ^= 0x5a
	}
	return data
}

// A codec on both sides encodes arguments, results and the details of failures;
// Temporal sees none of them.
func TestCodec(t *testing.T) {
	t.Parallel()
	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), mask{})
	c, err := client.NewClientFromExisting(temporalServer(t), client.Options{
		DataConverter: dc, Logger: quiet(),
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: dc, EncodeCommonAttributes: true}),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := newPlaceOf(t, c, "codec")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("echo", ""), toolJSON("refuse", "")), echo("echo"),
			tool("refuse", func(_ context.Context, in json.RawMessage, _ nexus.StartOperationOptions) (json.RawMessage, error) {
				return nil, resultmap.OperationError(resultmap.ToolError(contract.TextResult("No: "+string(in), true)))
			})))
		workflowNamed(w, "codec", func(ctx workflow.Context, _ any) (string, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p)})
			args := json.RawMessage(`{"secret":"hush","n":9007199254740993.0}`)
			r, err := tools.Call(ctx, "echo", args)
			if err != nil || string(r.Structured()) != string(args) {
				return "", fmt.Errorf("%s %w", r.JSON(), err)
			}
			_, err = mcpworkflow.CallAs[any](ctx, tools, "refuse", args)
			if f, ok := errors.AsType[*contract.Failure](err); !ok || f.Code != contract.CodeToolError || f.Message != "No: "+string(args) {
				return "", fmt.Errorf("it ended with %w", err)
			}
			return "done", nil
		})
	})
	run := p.start(t, "codec", nil)
	var got string
	require.NoError(t, run.Get(t.Context(), &got))
	require.Equal(t, "done", got)
	stored, err := historyOf(t, p, run).Marshal()
	require.NoError(t, err)
	require.NotContains(t, string(stored), "hush")
	require.NotContains(t, string(stored), "Does echo")
}

// files is a storage driver.
type files struct {
	dir string
	n   *atomic.Int64
}

func (files) Name() string { return "files" }
func (files) Type() string { return "files" }

func (f files) Store(_ converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		data, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		name := strconv.FormatInt(f.n.Add(1), 10)
		if err := os.WriteFile(filepath.Join(f.dir, name), data, 0o600); err != nil {
			return nil, err
		}
		claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{"name": name}}
	}
	return claims, nil
}

func (f files) Retrieve(_ converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, c := range claims {
		data, err := os.ReadFile(filepath.Join(f.dir, c.ClaimData["name"]))
		if err != nil {
			return nil, err
		}
		payloads[i] = &commonpb.Payload{}
		if err := payloads[i].Unmarshal(data); err != nil {
			return nil, err
		}
	}
	return payloads, nil
}

// With external storage on both sides arguments and results may be larger than a
// payload, once the client is told so.
func TestExternalStorage(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	driver := files{dir: t.TempDir(), n: &atomic.Int64{}}
	c, err := client.NewClientFromExisting(temporalServer(t), client.Options{
		Logger: quiet(), ExternalStorage: converter.ExternalStorage{Drivers: []converter.StorageDriver{driver}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := newPlaceOf(t, c, "storage")
	p.serve(t, options(), func(w worker.Worker) {
		w.RegisterNexusService(service(p.name, lists(toolJSON("echo", "")), echo("echo")))
		workflowNamed(w, "storage", func(ctx workflow.Context, limit int) (int, error) {
			tools := mcpworkflow.New(mcpworkflow.Options{Services: only(p), MaxArgumentBytes: limit})
			v, err := mcpworkflow.CallAs[map[string]string](ctx, tools, "echo", map[string]string{"x": strings.Repeat("x", size)})
			return len(v["x"]), err
		})
	})
	var n int
	require.NoError(t, p.start(t, "storage", 8<<20).Get(t.Context(), &n))
	require.Equal(t, size, n)
	require.ErrorContains(t, p.start(t, "storage", 0).Get(t.Context(), nil), "The arguments would take 3145736 bytes")
}
