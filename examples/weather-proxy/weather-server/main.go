// Command weather-server is an MCP server as there are many: it knows nothing of
// Temporal, and lets in only who has its token. ../README.md puts a proxy before it.
package main

import (
	"context"
	"flag"
	"fmt"
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
