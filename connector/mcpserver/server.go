package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/catalog"
	"github.com/durable-mcp/durable-mcp/connector/operation"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Server is the MCP server over a catalog. It is safe for concurrent use and
// keeps nothing of a call between requests: any replica can serve any of them.
type Server struct {
	options Options
	ops     *operation.Client
	catalog *catalog.Catalog
	mcp     *mcp.Server
	served  served
	calls   chan struct{} // one token for each call under way

	// ending ends when the server is told to stop: subscriptions end then.
	ending context.Context
	end    context.CancelFunc
	// drained ends when the time for that is up: no wait goes on then, and a
	// request that ends was not cancelled by its client.
	drained context.Context
	drain   context.CancelFunc

	retention struct {
		sync.Mutex
		value time.Duration
	}
}

// New returns a server on top of a Temporal client, which the caller keeps
// owning and which needs [operation.Interceptor]. It dials and binds nothing;
// [Server.Run] keeps its catalog fresh. The error names every fault of the
// options.
func New(temporal client.Client, options Options) (*Server, error) {
	options = options.withDefaults()
	ops, err := operation.New(temporal, operation.Options{Logger: options.Logger})
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: options,
		ops:     ops,
		calls:   make(chan struct{}, options.MaxCalls),
	}
	s.ending, s.end = context.WithCancel(context.Background())
	s.drained, s.drain = context.WithCancel(context.Background())
	s.served.snapshot = &catalog.Snapshot{}
	s.catalog, err = catalog.New(catalog.FromOperations(ops), options.Services, catalog.Options{
		DiscoveryTimeout: options.DiscoveryTimeout,
		RefreshInterval:  options.RefreshInterval,
		Check:            CheckTool,
		OnChange:         s.serve,
		Logger:           options.Logger,
	})
	if err != nil {
		return nil, err
	}
	capabilities := &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{ListChanged: true},
		// What no service has is not shown, see showCapabilities.
		Resources:   &mcp.ResourceCapabilities{ListChanged: true},
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Completions: &mcp.CompletionCapabilities{},
	}
	if !options.DisableTasks {
		capabilities.AddExtension(tasksExtension, nil)
	}
	s.mcp = mcp.NewServer(options.Implementation, &mcp.ServerOptions{
		Capabilities: capabilities,
		Logger:       s.sdkLogger(),
		PageSize:     pageSize,
	})
	if err := s.addTaskMethods(); err != nil {
		return nil, err
	}
	if !options.HidePollTools {
		s.addPollTools()
	}
	s.mcp.AddReceivingMiddleware(s.middleware)
	return s, nil
}

// pageSize is the most tools on one page of tools/list.
const pageSize = 1000

// MCP returns the server of the MCP Go SDK, for a transport or middleware of
// your own.
func (s *Server) MCP() *mcp.Server { return s.mcp }

// Catalog returns the catalog that is served.
func (s *Server) Catalog() *catalog.Catalog { return s.catalog }

// Operations returns the client that runs the calls.
func (s *Server) Operations() *operation.Client { return s.ops }

// ServedTool returns the tool object that tools/list gives to clients of
// 2026-07-28 and later.
func (s *Server) ServedTool(name string) (json.RawMessage, bool) {
	t, ok := s.served.get(name)
	return t.modern, ok
}

// Run keeps the catalog fresh until ctx ends. Calls can be served before it
// runs and after it has ended, from what is known then.
func (s *Server) Run(ctx context.Context) { s.catalog.Run(ctx) }

// Drain makes the server ready to stop within grace: subscriptions end at once,
// and shortly before grace is over every wait does, each call answered with what
// it has or as still running. The operations go on in Temporal. It returns at
// once, and a later call can only shorten the grace.
func (s *Server) Drain(grace time.Duration) {
	s.end()
	// The answers need a moment to go out.
	if wait := grace - min(grace/4, time.Second); wait > 0 {
		time.AfterFunc(wait, s.drain)
		return
	}
	s.drain()
}

// Ready returns nil if Temporal answers and at least one service has given its
// manifest, else what is missing.
func (s *Server) Ready(ctx context.Context) error {
	if _, err := s.ops.Temporal().CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return errors.New("temporal does not answer")
	}
	if !s.catalog.Snapshot().Answered() {
		return errors.New("no service has answered yet")
	}
	return nil
}

// defaultRetention stands in where the namespace does not tell.
const defaultRetention = 24 * time.Hour

func (s *Server) sdkLogger() *slog.Logger { return slog.New(quiet{s.options.Logger.Handler()}) }

// taskRetention is how long the result of a closed operation can be read: the
// namespace's retention.
func (s *Server) taskRetention(ctx context.Context) time.Duration {
	s.retention.Lock()
	defer s.retention.Unlock()
	if s.retention.value == 0 {
		reply, err := s.ops.Temporal().WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{
			Namespace: s.options.Namespace,
		})
		if err != nil {
			return defaultRetention
		}
		if s.retention.value = reply.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); s.retention.value <= 0 {
			s.retention.value = defaultRetention
		}
	}
	return s.retention.value
}

// middleware is the one place where a request does not go the SDK's own way.
func (s *Server) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, done := whileConnected(ctx, req)
		defer done()
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			return s.callTool(ctx, next, r)
		case *mcp.ListToolsRequest:
			return s.listTools(ctx, next, r)
		case *mcp.ServerRequest[*taskParams]:
			if err := s.checkTaskRequest(r); err != nil {
				return nil, err
			}
		case *mcp.ServerRequest[*mcp.InitializeParams]:
			if r.Params != nil { // the SDK keeps what was asked for as what was agreed on
				r.Params.ProtocolVersion = agreed(r.Params.ProtocolVersion)
			}
		case *mcp.SubscriptionsListenRequest:
			openStream(ctx)
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.ending, cancel)()
		}
		if f, ok := features[method]; ok {
			return s.serveFeature(ctx, f, method, req)
		}
		if method == "initialize" || method == "server/discover" {
			s.waitForInstructions(ctx)
		}
		res, err := next(ctx, method, req)
		s.describe(res)
		return res, err
	}
}

// greeting is how long the first answer may wait for the services'
// instructions: a stdio client asks right after the start, and only once.
const greeting = time.Second

func (s *Server) waitForInstructions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	s.catalog.Ready(ctx)
}

// describe puts what the services are in the answers that have room for it.
func (s *Server) describe(res mcp.Result) {
	snapshot := s.catalog.Snapshot()
	switch r := res.(type) {
	case *mcp.InitializeResult:
		if r != nil {
			r.Instructions = snapshot.Instructions()
			showCapabilities(r.Capabilities, snapshot)
		}
	case *mcp.DiscoverResult:
		if r != nil {
			r.Instructions = snapshot.Instructions()
			showCapabilities(r.Capabilities, snapshot)
		}
	}
}

// rawTool is a served tool as bytes: for the revisions from 2026-07-28 on, and
// for those before.
type rawTool struct{ modern, legacy json.RawMessage }

// served is what tools/list answers from, beside the SDK's own registry.
type served struct {
	sync.RWMutex
	tools    map[string]rawTool
	snapshot *catalog.Snapshot // that is served
}

func (s *served) get(name string) (rawTool, bool) {
	s.RLock()
	defer s.RUnlock()
	t, ok := s.tools[name]
	return t, ok
}
