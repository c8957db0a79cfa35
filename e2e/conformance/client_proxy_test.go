package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/durable-mcp/durable-mcp/e2e/harness"
	"github.com/durable-mcp/durable-mcp/proxy-worker/mcpproxy"
	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/durable-mcp/durable-mcp/tool-sdk/resultmap"
	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// play puts a proxy in front of a scenario's server and makes its calls.
func (s *stage) play(ctx context.Context, a arrival) error {
	script, ok := scripts[a.Scenario]
	if !ok {
		return fmt.Errorf("there is no script for the scenario %q", a.Scenario)
	}
	name := harness.Unique("suite")
	if err := s.temporal.TryCreateEndpoint(ctx, name, name); err != nil {
		return err
	}
	nexus, err := s.client.NewNexusClient(sdk.NexusClientOptions{Endpoint: name, Service: name})
	if err != nil {
		return err
	}
	start := s.startBinary
	if script.oauth != nil {
		start = s.startLibrary
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log, stop, err := start(name, script, a, cancel)
	if err == nil {
		if err = script.calls(ctx, &service{nexus}, a); err != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		stop()
	}
	if err != nil {
		return fmt.Errorf("%w\nThe proxy's log:\n%s", err, log)
	}
	return nil
}

// text is a log that several write.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// startBinary starts the command with a file that has the scenario's server.
func (s *stage) startBinary(name string, script script, a arrival, ended context.CancelCauseFunc) (*text, func(), error) {
	entry := map[string]any{"url": a.URL}
	if script.entry != nil {
		maps.Copy(entry, script.entry(a.Context))
	}
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: entry}})
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(s.dir, name+".json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, nil, err
	}
	log := &text{}
	cmd := harness.Command(s.proxy, "--temporal-address", s.temporal.Address, "--config", path, "--task-queue", name, "--log-level", "debug")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended(errors.Join(errors.New("the proxy has ended"), cmd.Wait()))
	}()
	return log, func() { _ = cmd.Process.Kill(); <-done }, nil
}

// told writes why there is no token to the log. The proxy does not: it cannot know
// what is secret in an error of a handler that is not its own.
type told struct {
	auth.OAuthHandler
	log *slog.Logger
}

func (h *told) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	err := h.OAuthHandler.Authorize(ctx, req, resp)
	h.log.Debug("authorized", "error", err)
	return err
}

// startLibrary starts a Worker with a proxy that has an OAuth handler of its own.
func (s *stage) startLibrary(name string, script script, a arrival, _ context.CancelCauseFunc) (*text, func(), error) {
	log := &text{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	handler, err := script.oauth(a)
	if err != nil {
		return log, nil, err
	}
	proxy, err := mcpproxy.New(name, mcpproxy.HTTP(a.URL, mcpproxy.HTTPOptions{OAuthHandler: &told{handler, logger}}), mcpproxy.Options{Logger: logger})
	if err != nil {
		return log, nil, err
	}
	c, err := sdk.Dial(sdk.Options{
		HostPort: s.temporal.Address, Namespace: harness.Namespace, Plugins: []sdk.Plugin{proxy}, Logger: sdklog.NewStructuredLogger(logger),
	})
	if err != nil {
		return log, nil, err
	}
	w := worker.New(c, name, worker.Options{})
	if err := w.Start(); err != nil {
		c.Close()
		return log, nil, err
	}
	return log, func() { w.Stop(); c.Close() }, nil
}

// service is a server of the suite as the Nexus service that the proxy makes of it.
type service struct{ nexus sdk.NexusClient }

func (s *service) operation(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	handle, err := s.nexus.ExecuteOperation(ctx, name, resultmap.RawValue(input), sdk.StartNexusOperationOptions{
		ID: harness.Unique("suite"), ScheduleToCloseTimeout: harness.Patience,
	})
	if err != nil {
		return nil, err
	}
	var output converter.RawValue
	if err := handle.Get(ctx, &output); err != nil {
		return nil, fmt.Errorf("%s: %w", name, resultmap.FromError(err))
	}
	return resultmap.JSON(output)
}

// tools lists the tools.
func (s *service) tools(ctx context.Context) ([]contract.Tool, error) {
	m, err := contract.Collect(ctx, func(ctx context.Context, cursor string) (json.RawMessage, error) {
		return s.operation(ctx, contract.OperationListTools, contract.ListInput(cursor))
	})
	return m.Tools, err
}

// call calls a tool.
func (s *service) call(ctx context.Context, tool string, params contract.CallParams) (contract.Object, error) {
	input, err := params.Encode(contract.EncodingMCP)
	if err != nil {
		return contract.Object{}, err
	}
	result, err := s.operation(ctx, tool, input)
	if err != nil {
		return contract.Object{}, err
	}
	return contract.ParseObject(result)
}

// first makes a list request and returns a member of the first item.
func (s *service) first(ctx context.Context, method, list, member string) (json.RawMessage, error) {
	result, err := s.operation(ctx, contract.MethodOperation(method), json.RawMessage("{}"))
	if err != nil {
		return nil, err
	}
	o, err := contract.ParseObject(result)
	if err != nil {
		return nil, err
	}
	items, err := contract.ParseArray(o.Get(list))
	if err != nil || len(items) == 0 {
		return nil, fmt.Errorf("%s: there is no item: %w", method, err)
	}
	item, err := contract.ParseObject(items[0])
	return item.Get(member), err
}
