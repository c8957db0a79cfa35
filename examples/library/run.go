package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/durable-mcp/durable-mcp/connector/operation"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
)

// grace is what the answers under way get when the service stops.
const grace = 10 * time.Second

// run serves until ctx ends.
func run(ctx context.Context, listen, userList string, logs io.Writer) error {
	logger := slog.New(slog.NewTextHandler(logs, nil))
	users, err := parseUsers(userList)
	if err != nil {
		return err
	}
	options, err := clientOptions(logger)
	if err != nil {
		return err
	}
	temporal, err := client.NewLazyClient(options) // dials at its first use: Temporal may come up later
	if err != nil {
		return err
	}
	defer temporal.Close()
	server, handler, err := newHandler(temporal, options.Namespace, users, logger)
	if err != nil {
		return err
	}

	// The catalog is kept fresh for as long as answers go out.
	fresh, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { server.Run(fresh) })
	defer background.Wait()
	defer stop()

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	// No WriteTimeout: it would cut long calls.
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	logger.Info(fmt.Sprintf("serving MCP at http://%s/tools/mcp", listener.Addr()))
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Calls that take longer are answered as running, and go on in Temporal.
	server.Drain(grace)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return web.Shutdown(end)
}

// clientOptions are the place for your credentials, namespace and data converter.
func clientOptions(logger *slog.Logger) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return client.Options{}, err
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Interceptors = append(options.Interceptors, operation.Interceptor()) // the connector needs it
	options.Logger = sdklog.NewStructuredLogger(logger)
	return options, nil
}
