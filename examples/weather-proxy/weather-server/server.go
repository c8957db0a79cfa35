package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newHandler serves MCP at /mcp to whoever has the token.
func newHandler(s settings, log io.Writer) (http.Handler, error) {
	if s.token == "" {
		return nil, errors.New("WEATHER_TOKEN is empty: it is the token that callers must have")
	}
	booked, err := openTrips(s.trips)
	if err != nil {
		return nil, err
	}
	server := newServer(&bureau{trips: booked, confirmation: s.confirmation, log: log})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 0 {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	return mux, nil
}

// newServer says what each tool does: the annotations are what a proxy goes by.
func newServer(b *bureau) *mcp.Server {
	no := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	server := mcp.NewServer(&mcp.Implementation{Name: "weather-server", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "Forecasts and alerts of every place, and trips to where the weather is good.",
	})
	mcp.AddTool(server, &mcp.Tool{Name: "forecast", Description: "The weather of a place for the next days.", Annotations: reads}, forecast)
	mcp.AddTool(server, &mcp.Tool{Name: "alerts", Description: "What the weather of a place threatens with.", Annotations: reads}, alerts)
	mcp.AddTool(server, &mcp.Tool{
		Name: "book_trip", Description: "Books a trip to a place. Each call books one more.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no},
	}, b.bookTrip)
	mcp.AddTool(server, &mcp.Tool{Name: "trips", Description: "The trips that a traveller has booked.", Annotations: reads}, b.listTrips)
	addResources(server)
	addPrompt(server)
	return server
}

type forecastInput struct {
	Place string `json:"place" jsonschema:"where"`
	Days  int    `json:"days,omitempty" jsonschema:"how many days, 3 by default, 7 at most"`
}

type day struct {
	Day  int    `json:"day"`
	Sky  string `json:"sky"`
	High int    `json:"high_celsius"`
}

type forecastOutput struct {
	Place string `json:"place"`
	Days  []day  `json:"days"`
}

var skies = []string{"sun", "clouds", "rain", "storm"}

// weather is always the same at a place on a day: it needs no internet.
func weather(place string, n int) day {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", place, n)
	return day{Day: n, Sky: skies[h.Sum32()%4], High: int(h.Sum32()/4%30) + 5}
}

func forecast(_ context.Context, _ *mcp.CallToolRequest, in forecastInput) (*mcp.CallToolResult, forecastOutput, error) {
	out := forecastOutput{Place: in.Place}
	if in.Days == 0 {
		in.Days = 3
	}
	if in.Place == "" || in.Days < 1 || in.Days > 7 {
		return nil, out, errors.New("want a place and 1 to 7 days")
	}
	for n := range in.Days {
		out.Days = append(out.Days, weather(in.Place, n+1))
	}
	return nil, out, nil
}

type placeInput struct {
	Place string `json:"place" jsonschema:"where"`
}

type alertsOutput struct {
	Alerts []string `json:"alerts"`
}

func alerts(_ context.Context, _ *mcp.CallToolRequest, in placeInput) (*mcp.CallToolResult, alertsOutput, error) {
	out := alertsOutput{Alerts: []string{}}
	for n := 1; n <= 7; n++ {
		if weather(in.Place, n).Sky == "storm" {
			out.Alerts = append(out.Alerts, fmt.Sprintf("Day %d: a storm over %s.", n, in.Place))
		}
	}
	return nil, out, nil
}
