package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type settings struct {
	listen, trips, token string
	confirmation         time.Duration
}

// grace is what the answers under way get when the server stops.
const grace = 5 * time.Second

// run serves until ctx ends.
func run(ctx context.Context, s settings, log io.Writer) error {
	handler, err := newHandler(s, log)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	fmt.Fprintf(log, "weather-server: serving MCP at http://%s/mcp; Ctrl-C stops it\n", listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return web.Shutdown(end)
}
