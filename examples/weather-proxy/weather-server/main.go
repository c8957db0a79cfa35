// Command weather-server is an MCP server as there are many: it knows nothing of
// Temporal, and lets in only who has its token. ../README.md puts a proxy before it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8070", "the `ADDRESS` to listen on")
	flag.StringVar(&s.trips, "trips", "", "the `FILE` of the trips that are booked; without one they end with the server")
	flag.DurationVar(&s.confirmation, "confirmation", 2*time.Second, "the `TIME` that it takes to confirm a trip that is booked")
	flag.Parse()
	s.token = os.Getenv("WEATHER_TOKEN")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "weather-server:", err)
		os.Exit(1)
	}
}

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
