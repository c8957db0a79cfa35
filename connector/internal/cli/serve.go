package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/mcpserver"
	"github.com/urfave/cli/v2"
	"go.temporal.io/sdk/client"
)

// open returns the server over a Temporal client that dials at its first use,
// with its catalog being kept fresh until done is called.
func (s settings) open(ctx context.Context) (server *mcpserver.Server, done func(), err error) {
	temporalClient, err := client.NewLazyClient(s.client)
	if err != nil {
		return nil, nil, usageError{err}
	}
	server, err = mcpserver.New(temporalClient, s.server)
	if err != nil {
		temporalClient.Close()
		return nil, nil, usageError{err}
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { server.Run(ctx) })
	return server, func() {
		cancel()
		background.Wait()
		temporalClient.Close()
	}, nil
}

func (e env) serve(c *cli.Context) error {
	s, err := e.serveSettings(c)
	if err != nil {
		return err
	}
	// The catalog goes on while the answers under way are finished.
	server, done, err := s.open(context.WithoutCancel(c.Context))
	if err != nil {
		return err
	}
	defer done()
	paceCollections()
	grace := c.Duration(flagShutdownTimeout)
	if c.String(flagTransport) == "stdio" {
		s.logger.Info("serving MCP over stdio", "temporal", s.client.HostPort, "namespace", s.client.Namespace)
		return server.ServeStdio(c.Context, e.in, e.out, grace)
	}
	return s.serveHTTP(c.Context, server, c.String(flagListen), grace)
}

func (s settings) serveHTTP(ctx context.Context, server *mcpserver.Server, address string, grace time.Duration) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return usagef("--%s: %w", flagListen, err)
	}
	// No WriteTimeout: it would cut long calls. The body is read under the
	// handler's own size limit.
	srv := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	s.logger.Info("serving MCP over HTTP", "url", "http://"+listener.Addr().String()+"/mcp",
		"temporal", s.client.HostPort, "namespace", s.client.Namespace)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.logger.Info("stopping; the operations under way go on in Temporal")
	server.Drain(grace)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		server.Drain(0)
		return errors.Join(err, srv.Close())
	}
	return nil
}
