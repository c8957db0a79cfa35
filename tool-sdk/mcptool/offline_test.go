package mcptool_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/mcptool"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/nexus-rpc/sdk-go/nexus"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
)

// registry keeps what a service registers.
type registry struct {
	service    *nexus.Service
	activities []string
}

func (r *registry) RegisterNexusService(s *nexus.Service) { r.service = s }

func (r *registry) RegisterActivity(any) {}

func (r *registry) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.activities = append(r.activities, o.Name)
}

func (r *registry) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}

var silent = mcptool.ServiceOptions{Logger: slog.New(slog.DiscardHandler)}

// offline registers a service without Temporal.
func offline(t *testing.T, s *mcptool.Service) *registry {
	t.Helper()
	r := &registry{}
	require.NoError(t, s.Register(r))
	return r
}

// call calls a sync operation.
func (r *registry) call(t *testing.T, operation, input string) (string, error) {
	t.Helper()
	return r.callWithin(t, context.Background(), nil, operation, input)
}

// callWithin calls a sync operation with a context and the headers of a delivery.
func (r *registry) callWithin(t *testing.T, ctx context.Context, header nexus.Header, operation, input string) (string, error) {
	t.Helper()
	op, ok := r.service.Operation(operation).(nexus.OperationHandler[converter.RawValue, converter.RawValue])
	require.True(t, ok)
	ctx = nexus.WithHandlerContext(ctx, nexus.HandlerInfo{Service: r.service.Name, Operation: operation})
	result, err := op.Start(ctx, resultmap.RawValue(json.RawMessage(input)), nexus.StartOperationOptions{Header: header})
	if err != nil {
		return "", err
	}
	sync, ok := result.(*nexus.HandlerStartOperationResultSync[converter.RawValue])
	require.True(t, ok)
	data, err := resultmap.JSON(sync.Value)
	require.NoError(t, err)
	return string(data), nil
}

// manifest returns the tools by name.
func (r *registry) manifest(t *testing.T) map[string]contract.Tool {
	t.Helper()
	data, err := r.call(t, contract.OperationListTools, "null")
	require.NoError(t, err)
	m, err := contract.DecodeManifest(json.RawMessage(data))
	require.NoError(t, err)
	require.Empty(t, m.Warnings)
	tools := map[string]contract.Tool{}
	for _, tool := range m.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

// only returns the tool of a service that has one operation.
func only(t *testing.T, op nexus.RegisterableOperation, tool mcptool.Tool) contract.Tool {
	t.Helper()
	s := mcptool.NewService("one", silent)
	mcptool.Add(s, op, tool)
	return offline(t, s).manifest(t)[op.Name()]
}

// fault returns what registering a service says; it must register nothing.
func fault(t *testing.T, s *mcptool.Service) string {
	t.Helper()
	r := &registry{}
	err := s.Register(r)
	require.Error(t, err)
	require.Nil(t, r.service)
	require.Empty(t, r.activities)
	return err.Error()
}
